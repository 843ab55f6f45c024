"""The table: a field for each setting. A model of LangChain inherits from the class with the settings that it has.

A field's annotation, default and docstring are the setting's. ``Setting`` beside the annotation has its check and where
it goes. A field without one is no setting of a call, but of the model alone.
"""

# The annotations are values, not texts: pydantic evaluates texts again for each class that inherits them.
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, fields
from types import MappingProxyType
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from langchain_gemma_jax.dialects import NAMES
from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.models.configuration.how_to_load import ACTIVATIONS, CACHE_DTYPES, DTYPES, WEIGHTS, HowToLoad
from langchain_gemma_jax.routing.route import Sizes
from langchain_gemma_jax.settings import checks


@dataclass(frozen=True)
class Setting:
    """Facts about a setting that its field does not show."""

    check: checks.Check | None = None  # None: ``Sampling`` checks it
    _: KW_ONLY
    other_names: tuple[str, ...] = ()  # which are taken too
    elsewhere: tuple[str, ...] = ()  # names in other packages, for which this one is suggested
    unit: str = ""  # of its number, for the command's help
    sent: bool = True  # to a server, with a call's options; False: it is for this machine, or sent otherwise
    owned: bool = False  # by a server's operator: its clients may not change it
    personal: bool = False  # each caller's own: a server sets none for all


class ModelSettings(BaseModel):
    """Settings of every model: which one it is, and how it is loaded and kept."""

    model_config = ConfigDict(use_attribute_docstrings=True, defer_build=True)

    model: Annotated[
        str, Setting(checks.model_place, other_names=("model_name", "model_id", "model_path", "repo_id"))
    ] = Field(default_factory=str)  # for type checkers: __init__ always says which
    """An embedded model's name, a folder, a GGUF file, an id on the Hub (":Q8_0" for that file of it), "ollama:..." or
    "torchax:...", or "auto" with a ``route``. The default is GEMMA_JAX_MODEL, or "sprout-m"."""
    dtype: Annotated[str | None, Setting(checks.one_of(*DTYPES), elsewhere=("torch_dtype",), owned=True)] = None
    """The weights' dtype: "bfloat16", "float32" or "float16". None: the checkpoint's own."""
    weights: Annotated[
        str | None, Setting(checks.one_of(*WEIGHTS), elsewhere=("quantization", "quantization_config"), owned=True)
    ] = None
    """The storage of a dense checkpoint's matrices: "int8" or "int4". None: as they are in its files."""
    activations: Annotated[str | None, Setting(checks.one_of(*ACTIVATIONS, none="what is fastest"), owned=True)] = None
    """The activations for packed matrices: "float32" or "int8". None: "int8" where the package's kernels do it."""
    revision: Annotated[str | None, Setting(checks.text, owned=True)] = None
    """A branch, tag or commit of the model on the Hub. None: its main branch."""
    token: SecretStr | None = None
    """A token of the Hugging Face Hub, which is sent only there. None: HF_TOKEN, or that of ``hf auth login``."""
    timeout: Annotated[float | None, Setting(checks.seconds, elsewhere=("request_timeout",), unit="seconds")] = None
    """Seconds that the whole call may take, loading included, until ``DeadlineError``. None: no limit."""
    keep_alive: Annotated[float | str | None, Setting(checks.stay, unit="seconds", owned=True)] = None
    """Seconds that an idle model stays in memory, or a text such as "5m" or "1h30m". None: until memory is needed."""


class TextSettings(ModelSettings):
    """Settings of every model that reads text in a context."""

    devices: Annotated[
        int | str | None, Setting(checks.device_count, elsewhere=("tensor_parallel_size",), unit="count", owned=True)
    ] = None
    """The number of devices that the model is divided among, or "auto": the fewest on which it fits. None: one."""
    cache_dtype: Annotated[
        str | None,
        Setting(
            checks.one_of(*CACHE_DTYPES, none="that of the model"),
            elsewhere=("kv_cache_dtype", "type_k", "type_v", "cache_type_k", "cache_type_v"),
            owned=True,
        ),
    ] = None
    """The storage of keys and values: "int8" nearly halves the memory of long conversations. None: the model's own
    type. See docs/choosing.md."""
    drafter: Annotated[
        str | None, Setting(checks.text, elsewhere=("draft_model", "assistant_model", "speculative_model"), owned=True)
    ] = None
    """A drafter for a Gemma 4, a folder or an id on the Hub; "off": none. None: the one in or next to
    the model's folder, if any."""
    adapter: Annotated[
        str | None, Setting(checks.adapter_place, elsewhere=("lora", "lora_path", "lora_request"), owned=True)
    ] = None
    """A LoRA adapter: PEFT's folder, a GGUF file, or an id on the Hub. None: none. See docs/adapters.md."""
    max_context: Annotated[
        int | None,
        Setting(
            checks.tokens(2, "what the model allows"),
            other_names=("n_ctx",),  # as llama.cpp's users know it
            elsewhere=("num_ctx",),
            unit="tokens",
        ),
    ] = None
    """Tokens of prompt and answer, from 2. Longer prompts are refused. None: what the model allows."""
    scope: Annotated[str, Setting(checks.text, personal=True)] = ""
    """A tenant's name. Conversations of different scopes share nothing, not even how long something takes."""


class DialogueSettings(TextSettings):
    """Settings of every model that reads conversations."""

    app: Annotated[str, Setting(checks.text, personal=True)] = ""
    """Your application's name, by which reports, metrics and guards count. For separate tenants, use ``scope``."""
    dialect: Annotated[str | None, Setting(checks.one_of(*NAMES))] = None
    """The chat format: "gemma", "function_gemma" or "gemma4". None: the one that the checkpoint was trained in."""


class SamplingSettings(BaseModel):
    """Settings by which tokens are chosen, and an answer ends."""

    model_config = ConfigDict(use_attribute_docstrings=True, defer_build=True)

    temperature: Annotated[float | None, Setting()] = None
    """From 0 to 100: 0 takes the most likely token, 1 draws from the model's own distribution. None, here and for other
    settings of sampling: as the checkpoint's ``generation_config.json`` recommends."""
    top_k: Annotated[int | None, Setting()] = None
    """Draw from this many of the most likely tokens only. 0: from all of them."""
    top_p: Annotated[float | None, Setting()] = None
    """Above 0, up to 1. Draw from the fewest tokens that have this probability together."""
    min_p: Annotated[float | None, Setting()] = None
    """From 0 to below 1. Leave out tokens that are less likely than this share of the most likely one's probability."""
    repetition_penalty: Annotated[float | None, Setting(elsewhere=("repeat_penalty",))] = None
    """Above 0, up to 100. More than 1 discourages tokens that the prompt or the answer has."""
    presence_penalty: Annotated[float | None, Setting()] = None
    """From -100 to 100. Subtracted from the scores of tokens that the answer has."""
    frequency_penalty: Annotated[float | None, Setting()] = None
    """From -100 to 100. Subtracted from a token's score once for each time that the answer has it."""
    logit_bias: Annotated[dict[int, float] | None, Setting()] = None
    """Added to the scores of these token ids: from -100 to 100, where -100 bans the token."""
    seed: Annotated[int | None, Setting()] = None
    """A seed for sampling: with the same one, a conversation gets the same answer. None: a new seed each time."""
    stop: Annotated[list[str] | None, Setting(elsewhere=("stop_sequences",))] = None
    """Texts that end the answer and are not part of it, up to 64. They cut no tool call and no object of a schema."""
    max_tokens: Annotated[
        int | None, Setting(elsewhere=("max_new_tokens", "max_completion_tokens", "num_predict"), unit="N")
    ] = None
    """The most tokens of an answer, thoughts included. A call that is cut off is invalid, an object a ``CutOffError``.
    None: until the context is full."""


class ChatSettings(DialogueSettings, SamplingSettings):
    """Settings of a chat model, which has the others too."""

    logprobs: Annotated[bool | None, Setting()] = None
    """Report each token's log-probability in ``response_metadata["logprobs"]``, in OpenAI's form."""
    top_logprobs: Annotated[int | None, Setting()] = None
    """From 0 to 20. With ``logprobs=True``: also report this number of the most likely tokens at each place."""
    thinking: Annotated[bool, Setting(checks.truth, elsewhere=("reasoning", "reasoning_effort", "enable_thinking"))] = (
        False
    )
    """Let the model think before it answers, if it can: Gemma 4. Thoughts are content blocks of type "reasoning"."""
    strict: Annotated[bool | None, Setting(checks.truth)] = None
    """The way to treat keywords of a schema that no grammar enforces: an error (True) or ignored (False). None:
    calls are checked when they are complete, and for structured output it is an error."""
    max_soft_tokens: Annotated[int | None, Setting(checks.tokens(1, "what the model's files say"))] = None
    """The most tokens that an image becomes, with Gemma 4. None: as the model's files say."""
    pan_and_scan: Annotated[bool | dict[str, int | float], Setting(checks.scan_limits)] = False
    """True: also show Gemma 3 crops of long images. A dictionary sets the limits. See docs/images.md."""
    media_folders: Annotated[list[str] | None, Setting(checks.folders, sent=False)] = None
    """Folders whose files messages may name: {"type": "image", "path": ...}. None: no files. See docs/images.md."""
    allow_urls: Annotated[bool, Setting(checks.truth, sent=False)] = False
    """Fetch http and https links to images, sounds and documents, only from public addresses."""
    parallel_tool_calls: Annotated[bool, Setting(checks.truth)] = True
    """Let the model call several tools at once. False ends its answer after the first call."""
    route: Annotated[Sizes | None, Setting(checks.route)] = None
    """The models that ``model="auto"`` chooses from, smallest first, as in ``Route(light=..., heavy=...)``."""
    session: Annotated[str | None, Setting(checks.text, sent=False)] = None
    """The conversation's name, for routers in front of servers. None: a digest of its thread or its beginning."""
    guards: Annotated[str | dict[str, str] | None, Setting(checks.guard_policies, owned=True)] = None
    """The action of guards that a call trips: "off", "warn", "raise" or "callback", for all or by name."""
    replicas: Annotated[int | str | None, Setting(checks.device_count, unit="count", owned=True)] = None
    """The number of copies of the model in memory, each on devices of its own, or "auto". None: one."""
    trust_remote_code: Annotated[bool | None, Setting(checks.truth, personal=True)] = None
    """True: run Python files in the folder of a "torchax:..." model, if it needs them. Otherwise they never run."""


SETTINGS: Mapping[str, Setting] = MappingProxyType(
    {
        name: fact
        for name, field in ChatSettings.model_fields.items()
        for fact in field.metadata
        if isinstance(fact, Setting)
    }
)
OF_A_MODEL = tuple(name for name in SETTINGS if name != "model")
"""The settings besides the model itself, all of which a verb that asks one takes as options."""
OF_A_SERVER = tuple(name for name in OF_A_MODEL if SETTINGS[name].sent and not SETTINGS[name].personal)
"""The settings that a server's operator may set for all clients that do not set them."""
SAMPLED = tuple(field.name for field in fields(Sampling) if field.name in SETTINGS)
OTHER_NAMES = {other: name for name, setting in SETTINGS.items() for other in setting.other_names}


def checked_setting(name: str, value: object) -> object:
    """Return a setting's value as it is stored.

    Raises:
        InputError: the value is not possible. The message says which are.
    """
    check = SETTINGS[name].check
    return check(name, value) if check is not None else getattr(Sampling(**{name: value}), name)  # type: ignore[arg-type]


def how_to_load(settings: ModelSettings) -> HowToLoad:
    """Return the settings of loading that a model has, with the Hub's token in plain text if there is one."""
    named = {each.name: getattr(settings, each.name, None) for each in fields(HowToLoad)}
    given = {name: value for name, value in named.items() if value is not None}
    return HowToLoad(**given | ({} if settings.token is None else {"token": settings.token.get_secret_value()}))

"""LangChain's own tests of a chat model that answers: what random weights can show of them."""

from __future__ import annotations

import inspect
from functools import cached_property

import httpx
import pytest
from langchain_core.messages import AIMessage
from langchain_tests.integration_tests import ChatModelIntegrationTests

from langchain_gemma_jax import ChatGemmaJax, engine
from langchain_gemma_jax.engine.requests.prompt import MediaSpan
from langchain_gemma_jax.media.web_links import LinkReader
from langchain_gemma_jax.models.seams.media_support import MediaSupport
from tests.chat.deferring import Deferring
from tests.chat.sensing import HeardSounds
from tests.media.samples import encoded, pdf, tone, wav

ABLE = "a model that has learned something"
NOT_WITH_RANDOM_WEIGHTS = {
    "test_agent_loop": ABLE,
    "test_bind_runnables_as_tools": ABLE,
    "test_no_overrides_DO_NOT_OVERRIDE": "a suite that runs by itself",
    "test_stream_time": "a recorded conversation with a server",
    "test_tool_calling": ABLE,
    "test_tool_calling_async": ABLE,
    "test_unicode_tool_call_integration": ABLE,
}
SEEN = ("test_image_inputs", "test_image_tool_message", "test_pdf_inputs", "test_pdf_tool_message")
HEARD = ("test_audio_inputs",)
IN_BOTH_VERSIONS = {"test_stream", "test_astream"}
NAMES = [name for name in dir(ChatModelIntegrationTests) if name.startswith("test_")]
SHOWN = [
    (name, version)
    for name in NAMES
    if name not in {*NOT_WITH_RANDOM_WEIGHTS, *SEEN, *HEARD} and "structured_output" not in name
    for version in (None, "v1")
    if version is None or name in IN_BOTH_VERSIONS
]
OF_A_TYPE = {"test_structured_output", "test_structured_output_async"}
STRUCTURED = [
    (name, kind)
    for name in NAMES
    if "structured_output" in name
    for kind in (("pydantic", "typeddict", "json_schema") if name in OF_A_TYPE else ("",))
]


class Suite(ChatModelIntegrationTests):
    """The other suite, on a tiny model. It is not collected: what it can show is called below."""

    method = "json_schema"

    def __init__(self, model: ChatGemmaJax, other: str) -> None:
        self.model_under_test = model
        self.model_override = other

    @property
    def chat_model_class(self):
        return ChatGemmaJax

    @property
    def chat_model_params(self):
        return {"model": self.model_under_test.model}

    @property
    def model_override_value(self):
        return self.model_override

    @property
    def supports_anthropic_inputs(self):
        return True

    @property
    def supports_json_mode(self):
        return True

    @property
    def structured_output_kwargs(self):
        return {"method": self.method}

    @cached_property
    def supported_usage_metadata_details(self):
        details = ["cache_read_input", "reasoning_output"]
        return {"invoke": details, "stream": details}

    def invoke_with_cache_read_input(self, *, stream: bool = False) -> AIMessage:
        question = "WHAT IS BETWEEN THE EARTH AND THE MOON?"
        _ask(self.model_under_test, question, stream=False)
        return _ask(self.model_under_test, question, stream=stream)

    def invoke_with_reasoning_output(self, *, stream: bool = False) -> AIMessage:
        # Weights that learned nothing do not think by themselves: they are made to begin.
        begin = _control_id(self.model_under_test, "<|channel>")
        return _ask(self.model_under_test, "HELLO", stream=stream, thinking=True, logit_bias={begin: 100})


class SeeingSuite(Suite):
    """The same, on a model that takes all that there is but videos."""

    supports_image_inputs = supports_image_urls = supports_image_tool_message = True
    supports_pdf_inputs = supports_pdf_tool_message = supports_audio_inputs = True


def _ask(model: ChatGemmaJax, question: str, *, stream: bool, **given: object) -> AIMessage:
    if not stream:
        return model.invoke(question, **given)
    first, *rest = model.stream(question, **given)
    return first + rest


def _control_id(model: ChatGemmaJax, name: str) -> int:
    return engine().load(model.model).model.tokenizer.control_id(name)


@pytest.fixture
def suite(chat_of, folder_of) -> Suite:
    return Suite(chat_of(), str(folder_of(seed=1)))


def test_all_that_the_suite_has_is_shown_or_named():
    assert set(NOT_WITH_RANDOM_WEIGHTS) <= set(NAMES)
    shown = {name for name, _ in SHOWN} | {name for name, _ in STRUCTURED} | {*SEEN, *HEARD}
    assert len(NAMES) == len(NOT_WITH_RANDOM_WEIGHTS) + len(shown)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::langchain_core._api.beta_decorator.LangChainBetaWarning")
@pytest.mark.parametrize(("name", "version"), SHOWN)
async def test_what_random_weights_can_show(name, version, suite, chat_of, whole_of):
    test = getattr(suite, name)
    model = (whole_of if name in {"test_json_mode", "test_tool_choice"} else chat_of)(output_version=version)
    given = {"model": model} if "model" in inspect.signature(test).parameters else {}
    if "my_adder_tool" in inspect.signature(test).parameters:
        given["my_adder_tool"] = type(suite).my_adder_tool.__wrapped__(suite)
    result = test(**given)
    if inspect.isawaitable(result):
        await result


OF_TOOLS = [name for name, version in SHOWN if "tool" in name and version is None]


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::langchain_core._api.beta_decorator.LangChainBetaWarning")
@pytest.mark.parametrize("name", OF_TOOLS)
async def test_tools_that_are_deferred(name, suite, whole_of):
    """Each tool is behind a search: the model finds it first, where a choice makes it call one."""
    model = Deferring(**{field: value for field, value in whole_of() if field in whole_of().model_fields_set})
    test = getattr(suite, name)
    given = {"my_adder_tool": type(suite).my_adder_tool.__wrapped__(suite)}
    result = test(model, **{key: value for key, value in given.items() if key in inspect.signature(test).parameters})
    if inspect.isawaitable(result):
        await result


@pytest.mark.long
@pytest.mark.parametrize("method", ["json_schema", "function_calling", "json_mode"])
@pytest.mark.parametrize(("name", "kind"), STRUCTURED)
async def test_objects_by_each_method(name, kind, method, suite, whole_of):
    suite.method = method
    result = getattr(suite, name)(whole_of(), *([kind] if kind else []))
    if inspect.isawaitable(result):
        await result


@pytest.fixture
def from_the_internet(monkeypatch) -> list[str]:
    """The files that the suite and the model fetch, made up here. The model fetches nothing unless it may."""
    fetched: list[str] = []
    kinds = {".png": encoded, ".pdf": pdf, ".wav": lambda: wav(tone(440, rate=44_100), rate=44_100)}

    def content(link: str) -> bytes:
        return next(make for end, make in kinds.items() if link.endswith(end))()

    class Response:
        def __init__(self, link: str) -> None:
            self.content = content(link)

        def raise_for_status(self) -> None: ...

    monkeypatch.setenv("LANGCHAIN_TESTS_USER_AGENT", "langchain-gemma-jax's tests, which fetch nothing")
    monkeypatch.setattr(httpx, "get", lambda link, **_: Response(link))
    monkeypatch.setattr(LinkReader, "read", lambda _, link, **how: fetched.append(link) or content(link))
    return fetched


@pytest.mark.long
@pytest.mark.parametrize("name", [*SEEN, "test_anthropic_inputs"])
def test_what_is_shown_to_a_model_that_sees(name, seeing_folder_of, running, from_the_internet):
    for module in ("PIL", *(["pypdfium2"] if "pdf" in name else [])):
        pytest.importorskip(module)
    model = ChatGemmaJax(model=str(seeing_folder_of()), max_tokens=8, temperature=0, allow_urls=True)
    for can in ("image_inputs", "image_url_inputs", "image_tool_message", "pdf_inputs", "pdf_tool_message"):
        assert model.profile[can] is True, can
    test = getattr(SeeingSuite(model, ""), name)
    test(**({"model": model} if "model" in inspect.signature(test).parameters else {}))
    assert len(from_the_internet) == (name == "test_image_inputs")


def test_what_is_played_to_a_model_that_hears(scripted, from_the_internet):
    model, engine = scripted("A bird.<turn|>", "A bird.<turn|>", support=MediaSupport(sounds=HeardSounds()))
    SeeingSuite(model, "").test_audio_inputs(model)
    first, second = (each["spans"] for each in engine.submitted)
    assert first == second
    assert [len(span.ids) for span in first.spans if isinstance(span, MediaSpan)] == [5]

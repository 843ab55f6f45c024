"""A loaded model, for one call: its prompt, and the sampling of its answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from langchain_gemma_jax.chat.answering.cut_off import AnswerLimits
from langchain_gemma_jax.chat.asking.answer_grammar import grammar_of
from langchain_gemma_jax.chat.asking.options import Options
from langchain_gemma_jax.chat.asking.tool_offer import Offer
from langchain_gemma_jax.chat.calling.base_models import BaseModels
from langchain_gemma_jax.chat.calling.served_model import load
from langchain_gemma_jax.chat.history.generated_ids import ConversationMemory, conversation_memory
from langchain_gemma_jax.chat.history.history import History
from langchain_gemma_jax.chat.model_choice.route_step import is_judged
from langchain_gemma_jax.dialects import (
    Dialect,
    EncodedPrompt,
    MediaPart,
    Message,
    ModelFacts,
    RenderedPrompt,
    RenderOptions,
    TemplateDialect,
    dialect_for,
)
from langchain_gemma_jax.dialects.templated.picture_question import picture_question
from langchain_gemma_jax.engine.base.checks import no_writer
from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.engine.requests.clock import Clock, Parts
from langchain_gemma_jax.engine.requests.prompt import MediaSpan, Prompt, Span, TokenSpan
from langchain_gemma_jax.errors import ContextLengthError, InputError, UnsupportedModelError

if TYPE_CHECKING:
    from langchain_gemma_jax.chat.history.media_in import MediaPlacing
    from langchain_gemma_jax.engine.residency.served import Served
    from langchain_gemma_jax.models.configuration.chat_format import PictureJudge
    from langchain_gemma_jax.models.seams.media_support import PlacedMedium
    from langchain_gemma_jax.models.tokenizer import Tokenizer

FAR_TOO_LONG = 4  # times the context: a longer prompt is refused, and not counted to its end


@dataclass(frozen=True)
class Prepared:
    """What the engine is asked in a call, and the limits of the answer."""

    rendered: RenderedPrompt
    encoded: EncodedPrompt
    sampling: Sampling
    limits: AnswerLimits
    tools: tuple[str, ...] = ()  # names of which a call is one: of tools that can be called, and of deferred ones
    unfound: frozenset[str] = frozenset()  # deferred tools that cannot be called yet, by name


@dataclass(frozen=True)
class ReadyModel:
    """A model that is loaded, and the format that it speaks."""

    served: Served
    dialect: Dialect
    remembered: ConversationMemory = field(repr=False)

    @property
    def tokenizer(self) -> Tokenizer:
        return self.served.model.tokenizer

    def prepare(self, history: History, options: Options, parts: Parts) -> Prepared:
        """Return what the engine is asked in a call. ``parts``: those of the call's time.

        Raises:
            InputError, ContextLengthError: there is no room for an answer, or for as much context as was asked for.
        """
        parts.now("encoding the prompt")
        offer = Offer.of(options.tools, options.choice, options.with_schema(history.messages))
        rendered, encoded = self.prompt(history, options, offer)
        parts.now("compiling the grammar")
        sampling = options.sampling(self.served.model.generation_defaults, self.served.name)
        limits = AnswerLimits(sampling.max_tokens, self._room(options, len(encoded.ids)))
        sampling = sampling.with_checked(
            stop_ids=tuple(self._stop_ids()),
            grammar=None if options.ahead else grammar_of(options, self.dialect, rendered, offer.callable),
            max_tokens=limits.most,
            confidence=is_judged(options),
        )
        callable_now = () if options.choice == "none" else (*(tool.name for tool in offer.callable), *offer.unfound)
        return Prepared(rendered, encoded, sampling, limits, callable_now, offer.unfound)

    def _stop_ids(self) -> Iterator[int]:
        """Yield the tokens that end an answer in this format."""
        for name in self.dialect.stops:
            if (token := self.tokenizer.control_id(name)) is not None:
                yield token

    def prompt(
        self, history: History, options: Options, offer: Offer | None = None, *, counts: bool = False
    ) -> tuple[RenderedPrompt, EncodedPrompt]:
        """Return the model's prompt. In it, its own answers have the ids that were generated, if these are still known.

        ``counts``: the prompt is counted only, so it may have any length.

        Raises:
            ContextLengthError: the prompt is much longer than the context. A little longer one is counted to its end.
        """
        limit = None if counts else min(options.max_context or self.served.max_context, self.served.max_context)

        def counted(tokens: int) -> None:
            """Refuse prompts of at least N tokens: each message has one, and each token has few characters at most."""
            if limit is not None and tokens > FAR_TOO_LONG * limit:
                raise ContextLengthError(tokens, limit - 1, self._longer(limit), at_least=True)

        if offer is None:
            offer = Offer.of(options.tools, options.choice, options.with_schema(history.messages))
        messages = offer.messages
        counted(len(messages))
        # Where calls are words, only the lack of declarations keeps a model from them.
        shown = offer.declared if options.choice != "none" or self.dialect.opener_is_control else ()
        prompt = self.dialect.render(messages, shown, RenderOptions(thinking=options.thinking))
        counted(prompt.characters // self.tokenizer.longest_token)
        known = self.remembered.answers_of(self.served.model).of(self.dialect.name, history)
        if before := len(messages) - len(history.messages):  # a system message was put in front
            known = {number + before: ids for number, ids in known.items()}
        if not any(message.media for message in messages):
            return prompt, prompt.encode(self.tokenizer, known, counted=counted)
        placed = self._placing(options).placed(messages)
        return prompt, prompt.encode(self.tokenizer, known, lambda part: placed[part.block.digest], counted)

    def judged(self, judge: PictureJudge, picture: MediaPart, policy: str, options: Options) -> EncodedPrompt:
        """Return the prompt in which a model that judges pictures is asked about one. ``policy``: its name or text.

        Raises:
            InputError: there is no policy of this name. UnsupportedModelError: the model's files have no template.
        """
        if judge.template is None:
            raise UnsupportedModelError(
                f"{self.served.name} has no chat template in its files (chat_template.jinja, or in "
                "tokenizer_config.json), and the words in which it was trained to be asked are in it. Download the "
                "model again, with all of its files."
            )
        if policy not in judge.policies and " " not in policy:
            known = ", ".join(judge.policies) or "none, so say the policy in full"
            raise InputError(
                f"instructions: expected the text of a policy, or the name of one that {self.served.name} has "
                f"({known}), found {policy!r}."
            )
        asked, names = judge.policies.get(policy, policy), judge.template.names
        control = self.tokenizer.control_tokens
        prompt = picture_question(judge.template.source, names, control, picture, asked)
        placed = self._placing(options).placed([Message.user(picture)])
        return prompt.encode(self.tokenizer, None, lambda part: placed[part.block.digest])

    def _placing(self, options: Options) -> MediaPlacing:
        from langchain_gemma_jax.chat.history.media_in import MediaPlacing  # which needs NumPy
        from langchain_gemma_jax.media.media_reader import MediaAccess, MediaReader
        from langchain_gemma_jax.models.seams.media_support import Scan

        access = MediaAccess(tuple(options.media_folders or ()), options.allow_urls)
        apart = self.dialect.media_apart
        ids = tuple(self.tokenizer.encode_text(apart)) if apart else ()
        reader, asked = MediaReader(access), options.pan_and_scan
        how = None if asked is False else Scan() if asked is True else Scan(**asked)  # type: ignore[arg-type]
        return MediaPlacing(self.served.model, options.scope, reader, options.max_soft_tokens, how, ids)

    def _room(self, options: Options, tokens: int) -> int:
        """Return the number of tokens that there is room for in the answer."""
        limit = options.max_context or self.served.max_context
        if limit > self.served.max_context:
            raise InputError(
                f"max_context: {self.served.name} can have up to {self.served.max_context} tokens here; found {limit}. "
                "configure(max_context=...) limits it for the whole process."
            )
        if tokens >= limit:
            raise ContextLengthError(tokens, limit - 1, self._longer(limit))
        return limit - tokens

    def _longer(self, limit: int) -> str:
        """Return advice on how to allow a longer prompt. It depends on where the limit comes from."""
        here, own = self.served.max_context, self.served.model.architecture.max_context
        if limit < here:
            return f"allow more: this model was given max_context={limit}, and up to {here} are possible"
        if here < own:
            return f"allow more: configure(max_context=...), where the process has {here} and the model {own}"
        return f"take a model with a longer context: {self.served.name} has no more than {own} tokens"


def engine_prompt(encoded: EncodedPrompt) -> Prompt:
    """Return a prompt as the engine reads it: spans of ids, which are not copied, and of the media between them."""
    if not encoded.media:
        return Prompt.of_tokens(encoded.ids)
    spans: list[Span] = []
    at = 0
    for start, _, found in encoded.media:
        placed = cast("PlacedMedium", found)
        end = start + len(placed.placeholders)
        words = tuple(encoded.ids[end : encoded.both_ways])
        medium = MediaSpan((*placed.placeholders, *words), placed.digest, placed.inputs, words=len(words))
        spans += [TokenSpan(encoded.ids[at:start]), medium]
        at = start + len(medium.ids)
    return Prompt((*spans, TokenSpan(encoded.ids[at:])))


def media_tokens(encoded: EncodedPrompt) -> Mapping[str, int]:
    """Return how many tokens of a prompt stand for images, and how many for sounds; neither if there are none."""
    found: dict[str, int] = {}
    for _, kind, placed in encoded.media:
        found[kind] = found.get(kind, 0) + len(placed.placeholders)
    return found


def ready(options: Options, clock: Clock) -> ReadyModel:
    """Return the model that the options name, loaded if it is not yet, and if there is time for that."""
    return ready_model(load(options.model, options.how_to_load, options.keep_alive, clock), options)


def ready_model(served: Served, options: Options) -> ReadyModel:
    """Return a model that is loaded, with the format that it speaks."""
    from langchain_gemma_jax.engine.api.process import engine

    if served.model.architecture.embeds:
        raise no_writer(served.name)
    dialect = dialect_for(_facts(served), options.dialect or served.model.chat_format.name)
    engine().companion(BaseModels).warn(served, dialect)
    return ReadyModel(served, dialect, conversation_memory())


def _facts(served: Served) -> ModelFacts:
    """Return what a model's chat format depends on."""
    model, tokens = served.model, served.model.tokenizer.control_tokens
    if (own := model.chat_format.template) is not None:
        ends = tuple(name for token in sorted(served.stop_ids) if (name := model.tokenizer.control_name(token)))
        names = tuple(sorted(own.names.items()))
        return ModelFacts(
            "", tokens, template=TemplateDialect(own.source, frozenset(tokens), ends, own.with_tools, names)
        )
    if (config := model.architecture.gemma) is None:
        return ModelFacts("", tokens)
    per_layer_input, images_apart = config.per_layer_input is not None, model.chat_format.images_apart
    both_ways = any(encoder.most_words for encoder in model.architecture.encoders)
    return ModelFacts(config.generation, tokens, per_layer_input, images_apart, both_ways)

from __future__ import annotations

import pytest

from langchain_gemma_jax.dialects import Message, PromptPiece, RenderedPrompt, RenderOptions, Tool, ToolCall
from langchain_gemma_jax.dialects.conversation.rendered_prompt import PromptWriter
from langchain_gemma_jax.dialects.gemma import GemmaDialect
from langchain_gemma_jax.dialects.gemma4 import Gemma4Dialect
from langchain_gemma_jax.errors import UnsupportedModelError
from tests.dialects.cases import render
from tests.dialects.vocabulary import tokenizer
from tests.goldens_dialects.corpus import CONVERSATIONS

ENCODE = tokenizer()
EACH = [(name, title) for title, case in CONVERSATIONS.items() for name in case.formats]
BELL = Tool("ring", "Rings")
RING = ToolCall("ring", {"times": 2}, "1")


def ids(*parts: str) -> list[int]:
    return [token for part in parts for token in ENCODE.encode_scaffold(part)]


class Joined:
    """An encoder that shows which texts are encoded in one go."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def control_id(self, name: str) -> int:
        return 0 if name.startswith("<") else 1

    def encode_text(self, text: str) -> list[int]:
        self.texts.append(text)
        return [7] * len(text)


def test_the_tokens_say_what_the_text_says():
    for name, title in EACH:
        prompt = render(name, CONVERSATIONS[title])
        assert ENCODE.decode(prompt.encode(ENCODE).ids, keep_control=True) == prompt.text


def test_text_between_control_tokens_is_encoded_in_one_go():
    encoder = Joined()
    prompt = GemmaDialect().render([Message.user("Hi"), Message.assistant("Hello"), Message.user("Bye")])
    prompt.encode(encoder)
    assert encoder.texts == ["user\nHi", "\n", "model\nHello", "\n", "user\nBye", "\n", "model\n"]


def test_the_end_of_the_system_prompt_is_a_place_between_tokens():
    for dialect in (GemmaDialect(), Gemma4Dialect()):
        prompt = dialect.render([Message.system("Be kind."), Message.user("Hi")], [BELL])
        told = "".join(piece.text for piece in prompt.pieces[: prompt.system])
        assert told.endswith(("\n\n", "<turn|>\n"))
        assert "ring" in told
        assert "Hi" not in told
        encoded = prompt.encode(ENCODE)
        assert list(encoded.ids[: encoded.system]) == ENCODE.encode_scaffold(told)


def test_a_prompt_without_a_system_prompt_says_so():
    prompt = Gemma4Dialect().render([Message.user("Hi")])
    assert prompt.system == 0
    assert prompt.encode(ENCODE).system == 0


@pytest.mark.parametrize(("dialect", "count"), [(GemmaDialect(), 3), (Gemma4Dialect(), 4)])
def test_marks_are_behind_complete_turns(dialect, count):
    messages = [Message.system("Hm"), Message.user("Hi"), Message.assistant("Hello"), Message.user("Bye")]
    prompt = dialect.render(messages)
    encoded = prompt.encode(ENCODE)
    ends = [ENCODE.decode(encoded.ids[:mark], keep_control=True) for mark in encoded.marks]
    assert [text.endswith(("<turn|>\n", "<end_of_turn>\n")) for text in ends] == [True] * count
    assert ends[-1] + ENCODE.decode(encoded.ids[encoded.marks[-1] :], keep_control=True) == prompt.text


def test_a_longer_conversation_begins_with_the_tokens_of_the_shorter_one():
    turns = [Message.system("Hm"), Message.user("Hi"), Message.assistant("Hello"), Message.user("Bye")]
    for dialect in (GemmaDialect(), Gemma4Dialect()):
        shorter = dialect.render(turns[:2]).encode(ENCODE).ids
        longer = dialect.render(turns).encode(ENCODE).ids
        assert longer[: len(shorter)] == shorter


def test_a_vocabulary_of_another_format_is_refused():
    class Lacking(Joined):
        def control_id(self, name):
            return None if name == "<|tool>" else 0

    with pytest.raises(UnsupportedModelError, match=r"<\|tool>"):
        Gemma4Dialect().render([Message.user("Hi")], [BELL]).encode(Lacking())


# What the model generated takes the place of what it is rendered as.


def conversation(**assistant: object) -> list[Message]:
    return [Message.user("Hi"), Message.assistant(**assistant), Message.user("Bye")]


@pytest.mark.parametrize("end", [[], ids("<turn|>"), ids("<eos>")])
def test_generated_tokens_are_kept_as_they_were(end):
    made = [*ENCODE.encode_text("  Hel"), *ENCODE.encode_text("lo\n")]  # rendered, it would be trimmed
    prompt = Gemma4Dialect().render(conversation(text="  Hello\n"))
    encoded = prompt.encode(ENCODE, {1: [*made, *end]})
    before, behind = "<bos><|turn>user\nHi<turn|>\n<|turn>model\n", "<turn|>\n<|turn>user\nBye<turn|>\n<|turn>model\n"
    assert list(encoded.ids) == [*ids(before), *made, *ids(behind)]
    shown = [ENCODE.decode(encoded.ids[:mark], keep_control=True)[-8:] for mark in encoded.marks]
    assert shown == ["<turn|>\n"] * 3


def test_generated_calls_are_kept_with_their_results_behind_them():
    call = "<|tool_call>call:ring{  times: 2}<tool_call|>"
    messages = [
        Message.user("Hi"), Message.assistant("Ringing.", calls=[RING]), Message.tool("dong", id="1")
    ]  # fmt: skip
    made = ids("Ringing.\n\n", call, "<|tool_response>")
    expected = (
        f"<bos><|turn>user\nHi<turn|>\n<|turn>model\nRinging.\n\n{call}"
        '<|tool_response>response:ring{value:<|"|>dong<|"|>}<tool_response|>'
    )
    for options in (RenderOptions(), RenderOptions(text_after_calls=True)):
        encoded = Gemma4Dialect().render(messages, [], options).encode(ENCODE, {1: made})
        end = "<turn|>\n" if options.text_after_calls else ""
        assert ENCODE.decode(encoded.ids, keep_control=True) == expected + end


def test_generated_thoughts_come_back_only_where_the_format_shows_them():
    made = ids("<|channel>thought\nHm.\n<channel|>Hello")
    earlier = Gemma4Dialect().render(conversation(text="Hello")).encode(ENCODE, {1: made})
    assert "Hm." not in ENCODE.decode(earlier.ids)
    told = Gemma4Dialect().render(conversation(text="Hello", thinking="Hm.")).encode(ENCODE, {1: ids("Hello")})
    assert "Hm." not in ENCODE.decode(told.ids)
    now = [Message.user("Hi"), Message.assistant("Hello", calls=[RING]), Message.tool("dong")]
    kept = Gemma4Dialect().render(now).encode(ENCODE, {1: [*made, *ids("<|tool_call>call:ring{times:2}<tool_call|>")]})
    assert "Hm." in ENCODE.decode(kept.ids)


def test_a_thought_that_was_cut_off_stays_hidden():
    told = conversation(text="", thinking="Hm. Let me")
    assert "Hm" not in ENCODE.decode(Gemma4Dialect().render(told).encode(ENCODE, {1: ids("Hm. Let me")}).ids)


def test_a_thought_that_the_prompt_began_keeps_its_beginning():
    messages = [
        *(Message.user("Hi"), Message.assistant(calls=[RING]), Message.tool("dong")),
        *(Message.assistant(thinking="It rang.", calls=[RING]), Message.tool("dong")),
    ]
    opener, rest = "<|channel>thought\n", "It  rang.<channel|><|tool_call>call:ring{}<tool_call|>"
    prompt = Gemma4Dialect().render(messages, [], RenderOptions(thinking=True))
    for made in (ids(rest), ids(opener, rest)):
        shown = ENCODE.decode(prompt.encode(ENCODE, {3: made}).ids, keep_control=True)
        assert f"<tool_response|>{opener}{rest}<|tool_response>" in shown


def test_two_empty_answers_after_each_other_can_both_be_replaced():
    messages = [Message.user("Hi"), Message.assistant(""), Message.assistant(""), Message.user("Bye")]
    encoded = Gemma4Dialect().render(messages).encode(ENCODE, {1: ids("one"), 2: ids("two")})
    assert "model\nonetwo" in ENCODE.decode(encoded.ids)


def test_turns_of_several_messages_are_never_replaced():
    messages = [Message.user("Hi"), Message.assistant("a"), Message.assistant("b"), Message.user("Bye")]
    assert GemmaDialect().render(messages).written == ()


# How pieces are written.


def test_text_joins_text_but_not_across_a_cut():
    out = PromptWriter()
    out.text("a")
    out.text("b")
    out.control("<x>", "<y>")
    out.text("c")
    out.mark()
    out.text("")
    out.text("d")
    assert out.pieces == [
        PromptPiece("ab"),
        PromptPiece("<x>", True),
        PromptPiece("<y>", True),
        PromptPiece("c"),
        PromptPiece("d"),
    ]
    assert out.marks == [4]


def test_an_empty_prompt_encodes_to_nothing():
    assert not RenderedPrompt(()).encode(ENCODE).ids

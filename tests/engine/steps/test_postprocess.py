"""From tokens to text, the end and the next draft, on letters: token 65 is an A."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.engine.drafting.drafter import Drafter
from langchain_gemma_jax.engine.drafting.prompt_lookup import PromptLookup
from langchain_gemma_jax.engine.requests.prompt import Prompt
from langchain_gemma_jax.engine.requests.request import FinishReason, Piece, Request, RequestSpec, TokenLogprobs
from langchain_gemma_jax.engine.steps import postprocess
from langchain_gemma_jax.engine.steps.postprocess import End


class Letters:
    """A small letter is the first half of a character: it comes with the token behind it, or as "?" at the end."""

    def __init__(self):
        self.half = ""

    def push(self, token_id: int) -> str:
        whole, self.half = self.half + chr(token_id), ""
        if whole[-1].islower():
            self.half, whole = whole[-1], whole[:-1]
        return whole

    def finish(self) -> str:
        return "?" if self.half else ""


def request(*, max_context=100, stop_ids=(), **sampling):
    asked = RequestSpec("m", Prompt.of_tokens([1, 2, 3]), Sampling(**sampling), 0, frozenset(stop_ids), max_context)
    return Request(asked, Letters())


def tokens(text):
    return [ord(letter) for letter in text]


def pieces(one):
    found = []
    while one.mailbox._items:
        found.append(one.mailbox.get(0))
    return found


LENGTH, STOP = FinishReason.LENGTH, FinishReason.STOP


@pytest.mark.parametrize(
    ("options", "given", "taken", "text", "end"),
    [
        ({}, "ABC", "ABC", "ABC", None),
        ({"max_tokens": 2}, "ABC", "AB", "AB", End(LENGTH)),
        ({"max_tokens": 3}, "ABC", "ABC", "ABC", End(LENGTH)),
        ({"max_context": 5}, "ABC", "AB", "AB", End(LENGTH)),
        ({"stop_ids": tokens("B")}, "ABC", "AB", "AB", End(STOP, ord("B"))),
        ({"stop": "BC"}, "ABCD", "ABC", "A", End(STOP, "BC")),
        ({"stop": "CX"}, "ABC", "ABC", "AB", None),  # held back
        ({"stop": "CX", "max_tokens": 3}, "ABC", "ABC", "ABC", End(LENGTH)),  # and let go
        ({"stop": "CX", "stop_ids": tokens("C")}, "ABCX", "ABC", "ABC", End(STOP, ord("C"))),
        ({"stop": "C", "stop_ids": tokens("C")}, "ABC", "ABC", "AB", End(STOP, "C")),  # the text without it
        ({"stop": "C", "max_tokens": 3}, "ABC", "ABC", "AB", End(STOP, "C")),
        ({"max_tokens": 2}, "AbC", "Ab", "A?", End(LENGTH)),  # half a character
        ({"max_tokens": 2, "stop": "?"}, "AbC", "Ab", "A", End(STOP, "?")),
        ({"max_tokens": 2, "stop": "A?"}, "AbC", "Ab", "", End(STOP, "A?")),
    ],
)
def test_what_is_taken_and_shown_of_a_dispatch(options, given, taken, text, end):
    one = request(**options)
    assert postprocess.accept(one, tokens(given)) == end
    assert one.progress.context == [1, 2, 3, *tokens(taken)]
    (piece,) = pieces(one)
    assert piece == Piece(tuple(tokens(taken)), text)
    assert "".join(one.progress.text) == text
    decoder = Letters()  # what each token completed, whether it is shown or not, so that nobody decodes it again
    assert piece.decoded == tuple(map(decoder.push, tokens(taken))) == one.completion(LENGTH, None, 0.0).decoded


def test_token_by_token_is_the_same_as_all_at_once():
    for stop in ("", "CD", "FG", "DEX"):
        split, whole = (request(stop=stop or (), max_tokens=6) for _ in range(2))
        ends = [postprocess.accept(split, [token]) for token in tokens("ABCDEF")]
        end = next((end for end in ends if end is not None), None)
        assert end == postprocess.accept(whole, tokens("ABCDEF"))
        if stop != "CD":  # a request that is over gets no more tokens
            assert "".join(split.progress.text) == "".join(whole.progress.text)
            assert split.progress.context == whole.progress.context
    assert "".join(whole.progress.text) == "ABCDEF"


def test_logprobs_come_with_the_tokens_that_were_taken():
    one = request(max_tokens=2)
    details = [TokenLogprobs(token, -1.0, ()) for token in tokens("ABC")]
    postprocess.accept(one, tokens("ABC"), details)
    (piece,) = pieces(one)
    assert piece.logprobs == tuple(details[:2])
    assert one.progress.logprobs == details[:2]


def test_the_moment_of_the_first_token_is_kept():
    one = request()
    postprocess.accept(one, tokens("A"))
    first = one.progress.first_token_at
    assert first is not None
    postprocess.accept(one, tokens("B"))
    assert one.progress.first_token_at == first


# Drafts


class Flat:
    """A pass of any rows costs what one costs."""

    def of(self, rows):
        return 1.0


def drafter(most):
    return Drafter({"prompt": PromptLookup()}, most, Flat())


def drafting(repeated, room):
    one = request(max_tokens=room + len(repeated))
    one.drafter = drafter(7)
    postprocess.accept(one, tokens(repeated))
    postprocess.draft(one)
    return one


@pytest.mark.parametrize(("room", "drafted"), [(50, "DEFGABC"), (8, "DEFGABC"), (7, "DEFGAB"), (2, "D"), (1, "")])
def test_a_draft_fits_the_room_with_one_token_behind_it(room, drafted):
    assert drafting("ABCDEFGABC", room).progress.draft == tuple(tokens(drafted))


def test_a_draft_is_forgotten_when_nothing_is_repeated_any_more():
    one = drafting("ABCDEFGABC", 50)
    postprocess.accept(one, tokens("Z"))
    postprocess.draft(one)
    assert one.progress.draft == ()


def test_without_a_drafter_nothing_is_drafted():
    one = request()
    postprocess.draft(one)
    assert one.progress.draft == ()


def test_what_nobody_streams_is_not_delivered_piece_by_piece():
    made = request()
    made.streamed = False
    postprocess.accept(made, [65])
    with pytest.raises(TimeoutError):
        made.mailbox.get(0)
    assert made.progress.text == ["A"]


def test_of_a_draft_a_grammar_lets_the_legal_part_be_checked():
    one = request()
    one.drafter = drafter(4)
    one.progress.context += tokens("ABCDEFGABC")
    one.constraint = SimpleNamespace(allowed=None, legal=lambda draft: draft[:2])
    postprocess.draft(one)
    assert one.progress.draft == tuple(tokens("DE"))

"""Chats with a tiny PaliGemma: a picture and a task, an answer with places in it, and no second turn."""

from __future__ import annotations

import warnings

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_gemma_jax import ChatGemmaJax, engine
from langchain_gemma_jax.errors import ContextLengthError, InputError
from tests.family_folder import add_tokens, write
from tests.media.samples import base64_of, encoded, pixels
from tests.own_engine import own_engine

pytest.importorskip("PIL")

MARKERS = ("<image>", "<loc0007>", "<loc0012>", "<start_of_turn>", "<end_of_turn>")
IMAGE = {"type": "image", "base64": base64_of(encoded(array=pixels(30, 50, 1))), "mime_type": "image/png"}


def asked(text):
    return [HumanMessage([IMAGE, {"type": "text", "text": text}])]


@pytest.fixture
def folder(tmp_path):
    """A PaliGemma 2 whose vocabulary has tokens for pictures and places."""
    write(tmp_path, "paligemma-2")
    add_tokens(tmp_path, MARKERS, image_token_index=287)
    return tmp_path


@pytest.mark.long
def test_a_task_is_answered_and_a_second_turn_is_refused(folder, monkeypatch):
    with own_engine(), warnings.catch_warnings():
        warnings.simplefilter("error")  # it is no base model, though its files have no chat template
        llm = ChatGemmaJax(model=str(folder), dtype="float32", temperature=0, max_tokens=12)
        assert (llm.profile["image_inputs"], llm.profile["tool_calling"]) == (True, False)
        seen, submit = [], engine().submit

        def watched(served, prompt, *rest, **how):
            seen.append((served, prompt))
            return submit(served, prompt, *rest, **how)

        monkeypatch.setattr(engine(), "submit", watched)
        answer = llm.invoke(asked("detect <loc0012> cat"))
        served, prompt = seen[-1]
        (span,) = [span for span in prompt.spans if len(getattr(span, "ids", ()))]
        tokenizer = served.model.tokenizer
        words = [2, *tokenizer.encode_text("detect "), 289, *tokenizer.encode_text(" cat\n")]
        assert list(span.ids) == [287] * 36 + words
        assert span.words == len(words)
        usage = answer.usage_metadata
        assert (usage["input_tokens"], usage["input_token_details"]["image"]) == (36 + len(words), 36)
        assert llm.invoke(asked("detect <loc0012> cat")).content == answer.content
        streamed = "".join(chunk.text for chunk in llm.stream(asked("detect <loc0012> cat")))
        assert streamed == answer.content
        assert llm.get_num_tokens_from_messages(asked("detect <loc0012> cat")) == usage["input_tokens"]
        with pytest.raises(InputError, match="A PaliGemma has no conversations"):
            llm.invoke([*asked("caption en"), AIMessage("a cat"), HumanMessage("Where?")])
        with pytest.raises(InputError, match="expected one picture"):
            llm.invoke("caption en")
        with pytest.raises(InputError, match="expected from 1 to 512 tokens of text"):
            llm.invoke(asked("a" * 600))
        with pytest.raises(ContextLengthError):
            llm.invoke(asked("a" * 1100))
        engine().close(30)

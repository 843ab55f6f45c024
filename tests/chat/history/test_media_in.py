"""Images, sounds and documents in conversations: what a model reads of them, and what is refused."""

from __future__ import annotations

import re

import numpy as np
import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_gemma_jax import ChatGemmaJax
from langchain_gemma_jax.chat.history.history import History
from langchain_gemma_jax.chat.history.media_in import MediaMemory
from langchain_gemma_jax.chat.history.messages_in import conversation
from langchain_gemma_jax.dialects import MediaPart, Message
from langchain_gemma_jax.dialects.gemma import GemmaDialect
from langchain_gemma_jax.engine.requests.prompt import MediaSpan, TokenSpan
from langchain_gemma_jax.errors import (
    ContextLengthError,
    InputError,
    MediaAccessError,
    MediaError,
    MediaLimitError,
    UnreadableMediaError,
)
from langchain_gemma_jax.media import pictures as picture_reading
from langchain_gemma_jax.media.block_forms import media_block
from langchain_gemma_jax.media.medium import Picture
from langchain_gemma_jax.models.seams.media_support import MediaSupport, PlacedMedium
from langchain_gemma_jax.models.vision.gemma3_pictures import SquarePictures
from tests.chat.sensing import HeardSounds, SeenPictures, control
from tests.dialects.vocabulary import tokenizer
from tests.media.samples import base64_of, encoded, pdf, pixels, png, tone, wav

pytest.importorskip("PIL")

IMAGE = {"type": "image", "base64": base64_of(encoded()), "mime_type": "image/png"}
OTHER = {"type": "image", "base64": base64_of(encoded(array=pixels(seed=9))), "mime_type": "image/png"}
SOUND = {"type": "audio", "base64": base64_of(wav(tone(440))), "mime_type": "audio/wav"}
CALL = AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "c1"}])


SUPPORT = {"gemma": MediaSupport(SeenPictures("\n\n")), "gemma4": MediaSupport(SeenPictures(), HeardSounds())}


@pytest.fixture
def seeing(scripted):
    def seeing(*answers: str, dialect: str = "gemma4", **settings: object):
        answers = answers or ("Yes.<turn|>" if dialect == "gemma4" else "Yes.<end_of_turn>",) * 9
        return scripted(*answers, support=SUPPORT[dialect], dialect=dialect, **settings)

    return seeing


def shown(spans) -> str:
    """A prompt as text, with media as ``[...]`` of their number of tokens."""
    parts = [
        f"[{len(span.ids)}]" if isinstance(span, MediaSpan) else tokenizer().decode(span.ids, keep_control=True)
        for span in spans.spans
    ]
    return "".join(parts)


def last(engine) -> str:
    return shown(engine.submitted[-1]["spans"])


READ = [
    (
        "gemma",
        [HumanMessage(["Look at ", IMAGE, OTHER, {"type": "text", "text": "these"}])],
        ("<bos><start_of_turn>user\nLook at\n\n<start_of_image>[3]<end_of_image>\n\n"
        "\n\n<start_of_image>[3]<end_of_image>\n\nthese<end_of_turn>\n<start_of_turn>model\n"),
    ),
    (
        "gemma4",
        [HumanMessage(["Look at ", IMAGE, SOUND, {"type": "text", "text": "these"}])],
        "<bos><|turn>user\nLook at<|image>[3]<image|><|audio>[5]these<turn|>\n<|turn>model\n",
    ),
    (
        "gemma4",
        [SystemMessage("Be brief."), HumanMessage("Look"), CALL, ToolMessage([IMAGE], tool_call_id="c1")],
        ("<bos><|turn>system\nBe brief.<turn|>\n<|turn>user\nLook<turn|>\n<|turn>model\n<|tool_call>call:look{}"
        '<tool_call|><|tool_response>response:look{value:<|"|><|"|>}<tool_response|><|image>[3]<image|>'),
    ),
    (
        "gemma4",
        [HumanMessage("Look"), CALL, ToolMessage(["A map", IMAGE, {"type": "text", "text": "and"}], tool_call_id="c1"),
         AIMessage("I see."), HumanMessage([OTHER])],
        ("<bos><|turn>user\nLook<turn|>\n<|turn>model\n<|tool_call>call:look{}<tool_call|><|tool_response>"
        'response:look{value:<|"|>A map\nand<|"|>}<tool_response|><|image>[3]<image|>I see.<turn|>\n'
        "<|turn>user\n<|image>[3]<image|><turn|>\n<|turn>model\n"),
    ),
    (
        "gemma",
        [HumanMessage("Look"), CALL, ToolMessage([IMAGE], tool_call_id="c1")],
        ('<bos><start_of_turn>user\nLook<end_of_turn>\n<start_of_turn>model\n```tool_call\n{"name": "look", '
        '"parameters": {}}\n```<end_of_turn>\n<start_of_turn>user\n```tool_result\n{"name": "look", "result": ""}\n```'
        "\n\n<start_of_image>[3]<end_of_image>\n\n<end_of_turn>\n<start_of_turn>model\n"),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("dialect", "messages", "expected"), READ)
def test_what_a_model_reads(dialect, messages, expected, seeing):
    model, engine = seeing(dialect=dialect)
    answer = model.invoke(messages)
    assert last(engine) == expected
    assert model.get_num_tokens_from_messages(messages) == answer.usage_metadata["input_tokens"]
    media = [span for span in engine.submitted[-1]["spans"].spans if isinstance(span, MediaSpan)]
    details = answer.usage_metadata["input_token_details"]
    for kind, key in (("image", "pixels"), ("audio", "samples")):
        assert details.get(kind, 0) == sum(len(span.ids) for span in media if key in span.inputs)


def test_text_beside_an_image_is_encoded_as_its_processor_does():
    """Between two control tokens text is encoded in one go, what the processor adds around images included."""
    part = MediaPart(media_block(IMAGE, "a"))
    prompt = GemmaDialect().render([Message.user(part, "What is this?", part)])
    assert prompt.text == (
        "<bos><start_of_turn>user\n<start_of_image>What is this?<start_of_image><end_of_turn>\n<start_of_turn>model\n"
    )
    told: list[str] = []

    class Spy:
        def control_id(self, name: str) -> int:
            return 1

        def encode_text(self, text: str) -> list[int]:
            told.append(text)
            return [2]

    placed = PlacedMedium((7,), (8, 8), (9,), b"x", {})
    encoded_prompt = prompt.encode(Spy(), placing=lambda _: [("image", placed)])
    assert told == ["user\n\n\n", "\n\nWhat is this?\n\n", "\n\n", "\n", "model\n"]
    assert tuple(encoded_prompt.ids) == (1, 1, 2, 7, 8, 8, 9, 2, 7, 8, 8, 9, 2, 1, 2, 1, 2)
    assert [(at, kind) for at, kind, _ in encoded_prompt.media] == [(4, "image"), (9, "image")]


def test_control_strings_beside_images_stay_text(seeing):
    model, engine = seeing()
    model.invoke([HumanMessage(["<|image|><image|><turn|>", IMAGE, "<start_of_image>"])])
    spans = engine.submitted[-1]["spans"].spans
    assert [len(span.ids) for span in spans if isinstance(span, MediaSpan)] == [3]
    text = [span for span in spans if isinstance(span, TokenSpan)]
    assert control("<|image|>") not in [token for span in text for token in span.ids]
    assert [token for span in text for token in span.ids].count(control("<turn|>")) == 1
    assert "<|image|><image|><turn|>" in tokenizer().decode(text[0].ids)


def test_every_page_of_a_document_is_an_image(seeing):
    pytest.importorskip("pypdfium2")
    pages = {"type": "file", "base64": base64_of(pdf(2, 40)), "mime_type": "application/pdf"}
    for dialect, expected in (
        ("gemma4", "Read:<|image>[3]<image|><|image>[3]<image|><turn|>"),
        ("gemma", "Read:" + "\n\n<start_of_image>[3]<end_of_image>\n\n" * 2 + "<end_of_turn>"),
    ):
        model, engine = seeing(dialect=dialect)
        answer = model.invoke([HumanMessage(["Read:", pages])])
        assert expected in last(engine)
        assert answer.usage_metadata["input_token_details"]["image"] == 6


def test_how_many_tokens_an_image_takes_is_said_with_the_model_or_the_call(seeing):
    model, engine = seeing(max_soft_tokens=5)
    model.invoke([HumanMessage([IMAGE])])
    assert "[5]" in last(engine)
    model.invoke([HumanMessage([IMAGE])], max_soft_tokens=7)
    assert "[7]" in last(engine)
    with pytest.raises(MediaError, match=r"messages\[0\].content\[0\]: max_soft_tokens: expected at most 8"):
        model.invoke([HumanMessage([IMAGE])], max_soft_tokens=9)
    with pytest.raises(InputError, match="max_soft_tokens: expected a whole number"):
        ChatGemmaJax(max_soft_tokens=0)


class ScannedPictures(SeenPictures):
    """Long ones are shown in pieces too, as Gemma 3 is shown them."""

    scanned = SquarePictures.scanned


def test_pieces_of_long_images_are_shown_where_they_are_asked_for(scripted):
    answers = ("Yes.<end_of_turn>",) * 9
    support = MediaSupport(ScannedPictures("\n\n"))
    model, engine = scripted(*answers, support=support, dialect="gemma", pan_and_scan={"min_crop_size": 8})
    long = {"type": "image", "base64": base64_of(encoded(array=pixels(10, 40))), "mime_type": "image/png"}
    asked = [HumanMessage(["Look at ", long])]
    one = "\n\n<start_of_image>[3]<end_of_image>\n\n"
    answer = model.invoke(asked)
    assert f"here are some crops to help you see better {one} {one} {one} {one}<end_of_turn>" in last(engine)
    assert f"user\nLook atHere is the original image {one} and" in last(engine)
    assert answer.usage_metadata["input_token_details"]["image"] == 15
    assert model.get_num_tokens_from_messages(asked) == answer.usage_metadata["input_tokens"]
    spans = [span for span in engine.submitted[-1]["spans"].spans if isinstance(span, MediaSpan)]
    assert len({span.digest for span in spans}) == 5
    model.invoke(asked, pan_and_scan={"min_crop_size": 8, "max_num_crops": 2})
    assert last(engine).count("[3]") == 3
    model.invoke(asked, pan_and_scan=False)
    assert "crops" not in last(engine)
    model.invoke(asked, pan_and_scan=True)
    assert "crops" not in last(engine), "pieces would have less than 256 pixels a side"


def test_pieces_are_refused_by_models_that_know_none_and_limits_are_checked(seeing):
    model, _ = seeing(pan_and_scan=True)
    with pytest.raises(MediaError, match=r"messages\[0\].content\[0\]: pan_and_scan: this model takes a"):
        model.invoke([HumanMessage([IMAGE])])
    model.invoke("No image is cut here.")
    for wrong in ("yes", {"crops": 4}, {"max_num_crops": 0}, {"max_num_crops": 1.5}, {"min_ratio_to_activate": True}):
        with pytest.raises(InputError, match="pan_and_scan"):
            ChatGemmaJax(pan_and_scan=wrong)
    kept = ChatGemmaJax(pan_and_scan={"min_crop_size": 128, "min_ratio_to_activate": 1.5})
    assert kept.pan_and_scan == {"min_crop_size": 128, "min_ratio_to_activate": 1.5}


def test_a_block_of_an_earlier_turn_is_decoded_and_prepared_once(seeing, monkeypatch):
    model, engine = seeing()
    decoded, placed = [], []
    read, place = picture_reading.picture_header, SeenPictures.place
    monkeypatch.setattr(picture_reading, "picture_header", lambda *given: decoded.append(1) or read(*given))
    monkeypatch.setattr(SeenPictures, "place", lambda *given: placed.append(1) or place(*given))
    messages = [HumanMessage(["Look", IMAGE])]
    for turn in range(4):
        answer = model.invoke(messages)
        messages += [answer, HumanMessage(["And", OTHER] if turn == 1 else "And now?")]
    assert (len(decoded), len(placed)) == (2, 2)
    digests = [
        [span.digest for span in each["spans"].spans if isinstance(span, MediaSpan)] for each in engine.submitted
    ]
    assert digests[0] == digests[1] == digests[3][:1]
    assert len(set(digests[3])) == 2
    model.invoke([HumanMessage(["Look", IMAGE])], scope="another tenant")
    assert (len(decoded), len(placed)) == (3, 3), "tenants share nothing, not even how long something takes"


def test_what_is_remembered_of_media_is_bounded():
    memory = MediaMemory(most_decoded=5_000, most_placed=5_000)
    for number in range(20):
        memory.decoded.keep(bytes([number]), (Picture(np.zeros((20, 20, 3), np.uint8)),))
        placed = PlacedMedium((), (1,), (), b"x", {"pixels": np.zeros((20, 20, 3), np.uint8)})
        memory.placed.keep(bytes([number]), (placed,))
    assert (len(memory.decoded), len(memory.placed)) == (3, 3)
    memory.decoded.keep(b"large", (Picture(np.zeros((90, 90, 3), np.uint8)),))
    assert memory.decoded.get(b"large") is None


def test_an_answer_about_one_image_is_not_taken_for_one_about_another(seeing):
    """Answers come back as the ids that they were; which answer it was depends on the image, too."""
    model, _ = seeing("A.<turn|>")
    first = model.invoke([HumanMessage([IMAGE])])
    one, other = (History("", conversation([HumanMessage([image]), first])).digests for image in (IMAGE, OTHER))
    assert one[0] != other[0]
    assert one[1] != other[1]
    again = History("", conversation([HumanMessage([dict(IMAGE)]), first])).digests
    assert again == one


PNG = {"type": "image", "mime_type": "image/png"}  # without which LangChain itself refuses base64
BOMB, LONG = png(50_000, 50_000, b"x" * 900), wav(np.zeros(700 * 1_000), 1_000)
BAD = [
    ({**PNG, "base64": base64_of(b"hello")}, UnreadableMediaError, "", "no image of a kind"),
    ({**PNG, "base64": base64_of(encoded()[:90])}, UnreadableMediaError, "", "truncated"),
    ({**PNG, "base64": base64_of(BOMB)}, MediaLimitError, "pixels", "50,000 x 50,000"),
    ({**PNG, "base64": base64_of(b"II*\0" + b"\0" * 200)}, UnreadableMediaError, "", "expected PNG"),
    ({**PNG, "base64": "***"}, UnreadableMediaError, "", "base64"),
    ({"type": "image", "path": "/etc/passwd"}, MediaAccessError, "", "media_folders"),
    ({"type": "image", "url": "https://example.org/a.png"}, MediaAccessError, "", "allow_urls"),
    ({"type": "audio", "base64": base64_of(wav(np.zeros(31 * 16_000)))}, MediaError, "", "at most 30 seconds"),
    ({"type": "audio", "base64": base64_of(LONG)}, MediaLimitError, "seconds", "700 seconds"),
    ({"type": "video", "url": "https://example.org/a.mp4"}, MediaError, "", "video"),
    ({"type": "image", "source": {"type": "base64"}}, MediaError, "", "found none"),
    ({"type": "image_url", "image_url": {"detail": "high"}}, MediaError, "", "found none"),
]  # fmt: skip


@pytest.mark.parametrize(("block", "error", "limit", "said"), BAD)
@pytest.mark.parametrize("by", ["human", "tool"])
def test_bad_input_gets_an_error_that_names_the_block_and_the_limit(block, error, limit, said, by, seeing):
    model, engine = seeing()
    content = [{"type": "text", "text": "Look"}, block]
    messages = {
        "human": [SystemMessage("a"), HumanMessage("b"), HumanMessage(content)],
        "tool": [HumanMessage("a"), CALL, ToolMessage(content, tool_call_id="c1")],
    }[by]
    with pytest.raises(MediaError) as found:
        model.invoke(messages)
    assert type(found.value) is error
    assert (found.value.at, found.value.limit) == ("messages[2].content[1]", limit)
    assert said in str(found.value)
    assert engine.submitted == []


def test_links_and_paths_only_where_they_are_allowed(seeing, tmp_path):
    (tmp_path / "a.png").write_bytes(encoded())
    by_path = [HumanMessage([{"type": "image", "path": str(tmp_path / "a.png")}])]
    model, engine = seeing(media_folders=[tmp_path], allow_urls=True)
    model.invoke(by_path)
    assert "[3]" in last(engine)
    with pytest.raises(MediaAccessError, match="none of the folders"):
        model.invoke([HumanMessage([{"type": "image", "url": "file:///etc/passwd"}])])
    with pytest.raises(MediaAccessError, match="no address of the public internet"):
        model.invoke([HumanMessage([{"type": "image_url", "image_url": {"url": "http://127.0.0.1:9/a.png"}}])])
    with pytest.raises(MediaAccessError, match="media_folders"):
        model.invoke(by_path, media_folders=[])
    for wrong in ("/tmp", [7], [""]):
        with pytest.raises(InputError, match="media_folders: expected a list of folders"):
            ChatGemmaJax(media_folders=wrong)
    with pytest.raises(InputError, match="allow_urls: expected True or False"):
        ChatGemmaJax(allow_urls="yes")


def test_a_model_that_reads_text_alone_says_so(scripted):
    for dialect, said in (("gemma4", "scripted reads text alone"), ("function_gemma", "no place for images")):
        model, engine = scripted("never", dialect=dialect)
        for content in ([IMAGE], [OTHER, "Look"]):
            with pytest.raises(MediaError, match=rf"messages\[0\].content\[0\]: .*{said}"):
                model.invoke([HumanMessage(content)])
        assert engine.submitted == []


def test_what_cannot_be_shown_is_called_what_it_is_and_the_advice_is_about_that(scripted):
    model, _ = scripted("never")
    for kind, mime, says in (
        ("image", "image/png", "this is an image, and .*Describe it .*Gemma 3 from 4B on, or Gemma 4; of GGUF"),
        ("audio", "audio/wav", "this is a sound, and .*Write down what is said.* hears: Gemma 4 E2B or E4B; of GGUF"),
        ("file", "application/pdf", "this is a file, and .*Put its text into the message.*Gemma 3 from 4B on, or Gem"),
    ):
        with pytest.raises(MediaError, match=rf"messages\[0\].content\[0\]: {says}"):
            model.invoke([HumanMessage([{"type": kind, "base64": "AAAA", "mime_type": mime}])])


def test_nothing_is_decoded_for_a_model_that_reads_text_alone(scripted, monkeypatch):
    monkeypatch.setattr(picture_reading, "picture_header", lambda *_: pytest.fail("decoded"))
    model, _ = scripted("never")
    with pytest.raises(MediaError):
        model.invoke([HumanMessage([IMAGE])])


def test_gemma_3_hears_nothing(seeing):
    model, _ = seeing(dialect="gemma")
    with pytest.raises(MediaError, match="'gemma' has no place for sounds"):
        model.invoke([HumanMessage([SOUND])])


@pytest.mark.parametrize("message", [SystemMessage([IMAGE]), AIMessage([IMAGE])])
def test_only_users_and_tools_show_images(message, seeing):
    model, _ = seeing()
    with pytest.raises(MediaError, match=re.escape("messages[1].content[0]: images and sounds are shown")):
        model.invoke([HumanMessage("a"), message, HumanMessage("b")])


def test_more_than_fits_the_context(seeing):
    model, _ = seeing(room=64)
    with pytest.raises(ContextLengthError, match="too many"):
        model.invoke([HumanMessage([IMAGE] * 30)])
    model, _ = seeing()
    with pytest.raises(MediaLimitError, match="64 images") as found:
        model.invoke([HumanMessage([IMAGE] * 65)])
    assert found.value.at == "messages[0].content[64]"


async def test_answers_in_pieces_and_in_an_event_loop_tell_the_same(seeing):
    model, engine = seeing()
    messages = [HumanMessage(["Look", IMAGE])]
    whole = [model.invoke(messages), await model.ainvoke(messages)]
    first, *rest = model.stream(messages)
    for chunk in rest:
        first += chunk
    assert {each.usage_metadata["input_token_details"]["image"] for each in (*whole, first)} == {3}
    assert len({each["prompt"] for each in engine.submitted}) == 1

"""ShieldGemma 2 as a decision model: how likely it is that a picture violates a policy."""

from __future__ import annotations

import json
import math
from importlib.util import find_spec

import pytest
from langchain_core.messages import HumanMessage

from langchain_gemma_jax import engine
from langchain_gemma_jax.errors import InputError, InstallationError, MediaError, UnsupportedModelError
from tests.chat.decision_models import Choice, Noul, decisions, ours
from tests.family_folder import add_tokens, write
from tests.media.samples import base64_of, encoded, pixels
from tests.own_engine import own_engine

pytest.importorskip("PIL")

MARKERS = ("<start_of_turn>", "<end_of_turn>", "<start_of_image>", "<end_of_image>")
IMAGE = {"type": "image", "base64": base64_of(encoded(array=pixels(30, 50, 1))), "mime_type": "image/png"}
OTHER = {"type": "image", "base64": base64_of(encoded(array=pixels(30, 50, 2))), "mime_type": "image/png"}
TEMPLATE = (
    "{{ bos_token }}<start_of_turn>USER {% for part in messages[0]['content'] %}"
    "{% if part.type == 'image' %}<start_of_image>{% else %}RULE: {{ part.text }}{% endif %}{% endfor %}<end_of_turn>"
)
POLICIES = {"fire": "NO FIRE <end_of_turn>", "water": "NO WATER"}


@pytest.fixture
def folder(tmp_path):
    write(tmp_path, "shieldgemma-2")
    ids = {"boi_token_index": 289, "eoi_token_index": 290, "yes_token_index": 270, "no_token_index": 280}
    add_tokens(tmp_path, MARKERS, **ids)
    (tmp_path / "chat_template.json").write_text(json.dumps({"chat_template": TEMPLATE}))
    (tmp_path / "processor_config.json").write_text(json.dumps({"policy_definitions": POLICIES}))
    return tmp_path


@pytest.fixture
def judge(folder):
    with own_engine():
        yield ours.GemmaDecisionModel(model=str(folder), dtype="float32")
        engine().close(30)


@pytest.mark.long
@pytest.mark.skipif(find_spec("transformers") is None, reason="transformers renders chat templates")
def test_a_picture_is_judged_by_policies_in_the_words_of_the_template(judge, monkeypatch):
    seen, submit = [], engine().submit

    def watched(served, prompt, sampling, **how):
        seen.append((served, prompt, sampling))
        return submit(served, prompt, sampling, **how)

    monkeypatch.setattr(engine(), "submit", watched)
    asked = {"fire": Noul(instructions="fire"), "smoke": Noul(instructions="NO SMOKE")}
    found = judge.invoke({"state": [IMAGE], "questions": asked})
    shares = {name: each.noul for name, each in found.nouls.items()}
    assert all(0 < share < 1 for share in shares.values())
    assert shares["fire"] != shares["smoke"]
    served, prompt, sampling = seen[0]
    text = served.model.tokenizer.encode_text
    # The end of a turn in the policy's text is no control token. The picture has empty lines around it.
    begun, ended = [2, 287, *text("USER \n\n"), 289], [290, *text("\n\nRULE: NO FIRE <end_of_turn>"), 288]
    assert list(prompt.ids) == [*begun, *[151] * 4, *ended]
    assert sampling.scored == (270, 280)
    first = dict(submit(served, prompt, sampling).result().logprobs[0].top)
    yes, no = (math.exp(first[token]) for token in sampling.scored)
    assert shares["fire"] == pytest.approx(yes / (yes + no), abs=1e-5)
    again = judge.invoke({"state": HumanMessage([IMAGE]), "questions": asked})
    assert {name: each.noul for name, each in again.nouls.items()} == pytest.approx(shares, abs=1e-5)
    assert judge.invoke({"state": OTHER, "questions": asked}).nouls["fire"].noul != shares["fire"]
    assert engine().report().media_encoded == 2
    with pytest.raises(InputError, match=r"expected the text of a policy, or the name of one .*fire, water.*'wind'"):
        judge.invoke({"state": IMAGE, "questions": {"a": Noul(instructions="wind")}})


@pytest.mark.long
def test_what_it_cannot_judge_is_refused(judge, folder):
    fire = {"a": Noul(instructions="fire")}
    for state, questions, error, said in (
        ("a picture of fire", fire, InputError, "state: expected one picture and nothing else"),
        (IMAGE, {"a": Choice(instructions="fire", criteria={"x": None})}, InputError, "a policy, with yes or no"),
        (IMAGE, {"a": decisions.Box(instructions="Where?")}, InputError, "judged by a policy"),
        ([IMAGE, OTHER], fire, InputError, "reads text alone"),
        (HumanMessage([IMAGE, {"type": "text", "text": "Look."}]), fire, MediaError, "words alone"),
    ):
        with pytest.raises(error, match=said):
            judge.invoke({"state": state, "questions": questions})
    if find_spec("transformers") is None:
        with pytest.raises(InstallationError, match="pip install transformers"):
            judge.invoke({"state": IMAGE, "questions": fire})
    config = json.loads((folder / "config.json").read_text())
    for said in ("no chat template in its files", r"expected the tokens of yes and no \(300 and 280"):
        engine().close(30)
        with own_engine():
            (folder / "chat_template.json").unlink(missing_ok=True)
            with pytest.raises(UnsupportedModelError, match=said):
                judge.invoke({"state": IMAGE, "questions": fire})
            engine().close(30)
            (folder / "config.json").write_text(json.dumps(config | {"yes_token_index": 300}))


def test_a_model_of_words_says_that_it_judges_none(scripted):
    scripted()
    with pytest.raises(MediaError, match=r"answers questions of words alone.* take a ShieldGemma 2"):
        ours.GemmaDecisionModel(model="judge").invoke({"state": IMAGE, "questions": {"a": Noul(instructions="fire")}})

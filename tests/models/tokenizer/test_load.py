"""``load_tokenizer``: which file it takes, and that nothing but a ``TokenizerError`` comes of a bad one."""

from __future__ import annotations

import copy
import json
import os
import pickle
import random
import subprocess
import sys
from pathlib import Path

import pytest

from langchain_gemma_jax.errors import TokenizerError, UnsafeCheckpointError
from langchain_gemma_jax.models.tokenizer import hf_json, load, load_tokenizer
from langchain_gemma_jax.models.tokenizer.hf_json import HfJsonTokenizer
from langchain_gemma_jax.models.tokenizer.sentencepiece import SentencePieceTokenizer


@pytest.fixture
def model(tmp_path):
    folder = tmp_path / "models" / "gemma"
    folder.mkdir(parents=True)
    return folder


def save_json(folder, content):
    (folder / "tokenizer.json").write_text(json.dumps(content), "utf-8")
    return folder


# Which file


def test_tokenizer_json_goes_first(model, gemma_json, sentencepiece_model):
    save_json(model, gemma_json)
    (model / "tokenizer.model").write_bytes(sentencepiece_model)
    assert isinstance(load_tokenizer(model), HfJsonTokenizer)


def test_a_bad_tokenizer_json_is_not_passed_over(model, sentencepiece_model):
    (model / "tokenizer.json").write_text("{")
    (model / "tokenizer.model").write_bytes(sentencepiece_model)
    with pytest.raises(TokenizerError, match=r"tokenizer\.json"):
        load_tokenizer(model)


@pytest.mark.parametrize("name", ["tokenizer.model", "gemma3_cleaned_262144.model"])
@pytest.mark.parametrize("place", [".", ".."])
def test_a_sentencepiece_model_in_the_folder_or_the_one_around_it(model, sentencepiece_model, name, place):
    (model / place / name).write_bytes(sentencepiece_model)
    assert isinstance(load_tokenizer(model), SentencePieceTokenizer)


def test_the_folder_around_a_relative_one(model, sentencepiece_model, monkeypatch):
    (model.parent / "tokenizer.model").write_bytes(sentencepiece_model)
    monkeypatch.chdir(model)
    assert isinstance(load_tokenizer(Path()), SentencePieceTokenizer)


@pytest.mark.parametrize("place", [".", ".."])
def test_of_several_models_one_has_to_be_called_tokenizer_model(model, sentencepiece_model, place):
    for name in ("a.model", "b.model"):
        (model / place / name).write_bytes(sentencepiece_model)
    with pytest.raises(TokenizerError, match=r"2 files that it could be: \['a\.model', 'b\.model'\]"):
        load_tokenizer(model)
    (model / place / "tokenizer.model").write_bytes(sentencepiece_model)
    assert isinstance(load_tokenizer(model), SentencePieceTokenizer)


def test_a_tokenizer_json_in_the_folder_around_is_another_models(model, gemma_json):
    save_json(model.parent, gemma_json)
    with pytest.raises(TokenizerError):
        load_tokenizer(model)


def test_none_at_all(model):
    with pytest.raises(TokenizerError, match=r"expected a tokenizer\.json or a tokenizer\.model, found neither"):
        load_tokenizer(model)


def test_no_folder(model):
    with pytest.raises(TokenizerError, match="found no such folder"):
        load_tokenizer(model / "not" / "there")


def test_a_file_for_a_folder(model, gemma_json):
    with pytest.raises(TokenizerError, match="found no such folder"):
        load_tokenizer(save_json(model, gemma_json) / "tokenizer.json")


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer.model", "tokenizer_config.json"])
def test_links_that_lead_out_of_the_folder_are_refused(model, tmp_path, gemma_json, name):
    elsewhere = save_json(tmp_path, gemma_json) / "tokenizer.json"
    if name == "tokenizer_config.json":
        save_json(model, gemma_json)
    (model / name).symlink_to(elsewhere)
    with pytest.raises(TokenizerError, match="a link to") as raised:
        load_tokenizer(model)
    assert isinstance(raised.value.__cause__, UnsafeCheckpointError)


def test_the_hubs_cache_is_made_of_links(tmp_path, gemma_json):
    repository = tmp_path / "models--google--gemma"
    snapshot, blobs = repository / "snapshots" / "abc", repository / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    save_json(blobs, gemma_json).joinpath("tokenizer.json").rename(blobs / "0123")
    (snapshot / "tokenizer.json").symlink_to(Path("..", "..", "blobs", "0123"))
    assert load_tokenizer(snapshot).bos_id == 2


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer.model"])
def test_a_link_to_nothing(model, name):
    (model / name).symlink_to("not-there")
    with pytest.raises(TokenizerError, match="which is not there"):
        load_tokenizer(model)


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer.model"])
def test_a_folder_or_a_pipe_with_the_files_name(model, name):
    (model / name).mkdir()
    with pytest.raises(TokenizerError, match="found a folder"):
        load_tokenizer(model)
    (model / name).rmdir()
    os.mkfifo(model / name)
    with pytest.raises(TokenizerError, match="not a regular file"):
        load_tokenizer(model)


def test_a_file_of_gigabytes_is_not_read(model, monkeypatch, gemma_json):
    save_json(model, gemma_json)
    with (model / "tokenizer.json").open("ab") as file:
        file.truncate(load.MAX_BYTES + 1)  # a hole: it takes no space
    monkeypatch.setattr(Path, "read_bytes", lambda path: pytest.fail(f"{path} was read"))
    with pytest.raises(TokenizerError, match="268,435,457 bytes"):
        load_tokenizer(model)


# Begin and end


def test_names_from_tokenizer_config(model, gemma_json):
    config = {
        "bos_token": "<start_of_turn>",
        "eos_token": {"content": "<end_of_turn>", "lstrip": False},
        "pad_token": None,
    }
    (save_json(model, gemma_json) / "tokenizer_config.json").write_text(json.dumps(config))
    tokenizer = load_tokenizer(model)
    assert tokenizer.bos_id == tokenizer.control_id("<start_of_turn>")
    assert tokenizer.eos_ids == tuple(tokenizer.control_id(name) for name in ("<end_of_turn>", "<eos>", "<turn|>"))
    assert tokenizer.pad_id == 0


def test_a_name_from_tokenizer_config_is_control(model, gemma_json):
    config = {"eos_token": "<b>"}
    (save_json(model, gemma_json) / "tokenizer_config.json").write_text(json.dumps(config))
    tokenizer = load_tokenizer(model)
    assert tokenizer.eos_ids[0] == tokenizer.control_id("<b>") == gemma_json["model"]["vocab"]["<b>"]
    assert tokenizer.eos_ids[0] not in tokenizer.encode_text("<b>")


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ('{"bos_token": 2}', "expected a string as bos_token, found 2"),
        ('{"eos_token": {"content": ["<eos>"]}}', r"expected a string as eos_token, found \['<eos>'\]"),
        ('{"bos_token": "<not there>"}', "expected control tokens for the begin and the end of a text, <not there>"),
        ('{"bos_token": "<bos>", "bos_token": "<eos>"}', "'bos_token' twice"),
        ("[]", "tokenizer_config.json: expected a JSON object"),
        ("{", "tokenizer_config.json: expected a JSON object"),
        ("[" * 100_000, "tokenizer_config.json: expected a JSON object"),
    ],
)
def test_bad_tokenizer_config(model, gemma_json, config, message):
    (save_json(model, gemma_json) / "tokenizer_config.json").write_text(config)
    with pytest.raises(TokenizerError, match=message):
        load_tokenizer(model)


def test_without_padding_it_is_the_end(train_sentencepiece_model, load_content):
    tokenizer = load_content(train_sentencepiece_model(pad_id=-1))
    assert tokenizer.pad_id == tokenizer.eos_ids[0] == 1


def test_sentencepiece_names_its_own(train_sentencepiece_model, load_content):
    tokenizer = load_content(train_sentencepiece_model(bos_piece="<s>", eos_piece="</s>"))
    assert tokenizer.control_name(tokenizer.bos_id) == "<s>"
    assert tokenizer.control_name(tokenizer.eos_ids[0]) == "</s>"


def test_without_an_end_a_text_could_not_end(train_sentencepiece_model, load_content):
    with pytest.raises(TokenizerError, match="control tokens for the begin and the end"):
        load_content(train_sentencepiece_model(eos_id=-1, pad_id=1))


# Bad content


def broken(gemma_json, **changes):
    content = copy.deepcopy(gemma_json)
    for path, value in changes.items():
        *parents, last = path.split("__")
        place = content
        for parent in parents:
            place = place[parent]
        place[last] = value
    return content


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}}, "the model WordLevel"),
        ({"model__vocab": {"a": 0}, "model__merges": []}, "a token for each of the 256 bytes"),
        ({"model__merges": [["no", "such"]]}, "tokenizer.json"),
        ({"model": 5}, "tokenizer.json"),
        ({"decoder": None}, "found none"),
        ({"decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True}}, "found WordPiece"),
        (
            {"decoder": {"type": "ByteFallback"}, "normalizer": {"type": "Lowercase"}},
            "found 'Hello' spelled as 'hello'",
        ),
        ({"normalizer": {"type": "Prepend", "prepend": "\u2581"}}, "spelled as ' Hello'"),
        ({"normalizer": {"type": "Strip", "strip_left": True, "strip_right": True}}, "' two  spaces ' spelled as"),
        (
            {
                "pre_tokenizer": {
                    "type": "Metaspace",
                    "replacement": "\u2581",
                    "prepend_scheme": "always",
                    "split": True,
                }
            },
            "spelled as ' Hello'",
        ),
    ],
)
def test_a_vocabulary_that_is_not_of_gemmas_kind(gemma_json, load_content, changes, message):
    with pytest.raises(TokenizerError) as raised:
        load_content(broken(gemma_json, **changes))
    assert message in str(raised.value)
    assert raised.value.path.endswith("tokenizer.json")


def test_replacing_something_else_than_spaces(gemma_json, load_content):
    content = copy.deepcopy(gemma_json)
    content["decoder"]["decoders"][0]["content"] = "-"
    with pytest.raises(TokenizerError, match="expected a decoder of Gemma's kind"):
        load_content(content)


def test_a_decoder_that_takes_spaces_away(gemma_json, load_content):
    content = copy.deepcopy(gemma_json)
    content["decoder"]["decoders"].append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
    with pytest.raises(TokenizerError, match="found Sequence, Replace, ByteFallback, Fuse, Strip"):
        load_content(content)


def test_an_id_in_the_billions_makes_no_table(gemma_json, load_content):
    content = copy.deepcopy(gemma_json)
    content["model"]["vocab"]["far"] = 4_000_000_000
    with pytest.raises(TokenizerError, match="the id 4,000,000,000"):
        load_content(content)


def test_byte_pieces_that_are_control_tokens_spell_nothing(gemma_json, load_content):
    content = copy.deepcopy(gemma_json)
    special = dict(content["added_tokens"][0], id=content["model"]["vocab"]["<0x80>"], content="<0x80>", special=True)
    content["added_tokens"].append(special)
    with pytest.raises(TokenizerError, match="none for 1 of them, the first 0x80"):
        load_content(content)


@pytest.mark.parametrize(
    "options",
    [
        {"add_dummy_prefix": True},
        {"remove_extra_whitespaces": True},
        {"normalization_rule_name": "nmt_nfkc"},  # newlines to spaces
    ],
)
def test_sentencepiece_that_changes_spaces(train_sentencepiece_model, load_content, options):
    with pytest.raises(TokenizerError, match="spells ordinary text just as it is"):
        load_content(train_sentencepiece_model(**options))


def test_sentencepiece_without_bytes(train_sentencepiece_model, load_content):
    with pytest.raises(TokenizerError, match="a token for each of the 256 bytes"):
        load_content(train_sentencepiece_model(byte_fallback=False, vocab_size=300))


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer.model"])
def test_an_empty_file_never_reaches_a_library(model, name, monkeypatch):
    """Releases of sentencepiece took it for no file, and crashed the process at the first question."""
    (model / name).write_bytes(b"")
    monkeypatch.setattr(Path, "read_bytes", lambda path: pytest.fail(f"{path} was read"))
    with pytest.raises(TokenizerError, match=f"{name}: expected between 1 and .* bytes, found 0 bytes"):
        load_tokenizer(model)


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer.model"])
@pytest.mark.parametrize("data", [b"\0", b"\xff\xfe\xff", b"[]", b"{}", b"null", b"\x80\x04N.", b"[" * 100_000])
def test_rubbish(model, name, data):
    (model / name).write_bytes(data)
    with pytest.raises(TokenizerError) as raised:
        load_tokenizer(model)
    assert raised.value.path == str(model / name)
    assert len(str(raised.value)) < 600


def test_files_that_break_off(model, gemma_json, sentencepiece_model):
    for name, data in (("tokenizer.json", json.dumps(gemma_json).encode()), ("tokenizer.model", sentencepiece_model)):
        for length in (1, len(data) // 4, len(data) // 2, len(data) - 1):
            (model / name).write_bytes(data[:length])
            with pytest.raises(TokenizerError):
                load_tokenizer(model)
        (model / name).unlink()


def test_damaged_files_are_refused_or_safe(model, gemma_json, sentencepiece_model, capfd):
    rng = random.Random(27)
    text = "Hi <start_of_turn>\u2581<unused3> é\n\n🙂"
    outcomes = {True: 0, False: 0}
    for name, data in (("tokenizer.model", sentencepiece_model), ("tokenizer.json", json.dumps(gemma_json).encode())):
        for _ in range(60):
            damaged = bytearray(data)
            for _ in range(rng.choice([1, 1, 3])):
                damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
            (model / name).write_bytes(damaged)
            try:
                tokenizer = load_tokenizer(model)
            except TokenizerError:
                outcomes[False] += 1
            else:
                outcomes[True] += 1
                assert tokenizer.decode(tokenizer.encode_text(text)) == text
    assert min(outcomes.values()) > 5, outcomes
    capfd.readouterr()  # the libraries report on stderr what they stumble over


# What the libraries raise


def test_a_panic_in_rust_is_an_error_like_any_other(gemma_json, load_content, capfd, monkeypatch):
    """It is no ``Exception``: unguarded, it would get past every handler and end a server."""
    monkeypatch.setattr(hf_json, "check_components", lambda *_: None)  # which lets nothing pass that is known to panic
    with pytest.raises(TokenizerError, match="a file that the library breaks on: PanicException") as raised:
        load_content(broken(gemma_json, normalizer={"type": "Precompiled", "precompiled_charsmap": "YWJj"}))
    assert not isinstance(raised.value.__cause__, Exception)
    assert "panicked" in capfd.readouterr().err


def test_so_is_one_that_comes_only_with_the_first_text(gemma_json, load_content, capfd, monkeypatch):
    monkeypatch.setattr(hf_json, "check_components", lambda *_: None)
    with pytest.raises(TokenizerError, match=r"tokenizer\.json: .*PanicException"):
        load_content(broken(gemma_json, pre_tokenizer={"type": "FixedLength", "length": 0}))
    assert "panicked" in capfd.readouterr().err


def test_so_is_what_goes_wrong_later(folders, monkeypatch):
    tokenizer = load_tokenizer(folders["gemma_json"])

    def fail(text):
        raise RuntimeError("something inside")

    monkeypatch.setattr(tokenizer, "_spell", fail)
    with pytest.raises(TokenizerError, match="RuntimeError: something inside"):
        tokenizer.encode_text("text")


def test_the_error_can_be_sent_to_another_process(model):
    with pytest.raises(TokenizerError) as raised:
        load_tokenizer(model)
    twin = pickle.loads(pickle.dumps(raised.value))
    assert (str(twin), twin.path, twin.expected) == (str(raised.value), raised.value.path, raised.value.expected)


# Cost


def test_importing_it_imports_neither_jax_nor_the_libraries():
    code = (
        "import sys, langchain_gemma_jax.models.tokenizer as t; "
        "print([m for m in ('jax', 'numpy', 'tokenizers', 'sentencepiece', 'google.protobuf') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"

"""The public test suite for JSON schemas, which stands in the source archive of ``jsonschema``, against grammars.

Whatever is made under a grammar is valid as ``jsonschema`` has it, and nothing that is not valid is let through.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from langchain_gemma_jax.dialects import json_grammar
from langchain_gemma_jax.errors import SchemaError
from tests.dialects.vocabulary import tokenizer
from tests.dialects.walks import takes, walk

DRAFTS = {
    "draft2020-12": jsonschema.Draft202012Validator,
    "draft7": jsonschema.Draft7Validator,
    "draft4": jsonschema.Draft4Validator,
}
ENDLESS = "null valued instance properties"  # its names have no end, so a random walk does not find one


@pytest.fixture(scope="module")
def suite(tmp_path_factory) -> Path:
    """The suite's folder."""
    folder = tmp_path_factory.mktemp("suite")
    wanted = ["download", "--quiet", "--no-deps", "--no-binary", "jsonschema", "--dest", str(folder), "jsonschema"]
    done = subprocess.run([sys.executable, "-m", "pip", *wanted], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"jsonschema's source archive cannot be had here: {done.stderr[-300:]}")
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(folder, filter="data")
    (found,) = folder.glob("*/json/tests")
    return found


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("draft", DRAFTS)
def test_grammars_keep_to_what_the_suite_says(suite, draft):
    seen: Counter[str] = Counter()
    for path in sorted((suite / draft).rglob("*.json")):
        if "optional" not in path.parts or path.parent.name == "format":
            for group in json.loads(path.read_text("utf-8")):
                seen["schemas"] += 1
                compare(group, DRAFTS[draft], seen)
    assert seen["accepted"] > seen["schemas"] / 2
    assert seen["taken"] > seen["valid"] / 3  # the others have no type, so that values of other kinds are valid too


def compare(group: dict[str, Any], kind: Any, seen: Counter[str]) -> None:
    """See that the grammar of a group's schema tells valid values from others, and count."""
    schema = group["schema"]
    try:
        grammar = json_grammar(schema)
    except SchemaError:
        return
    seen["accepted"] += 1
    validator = kind(schema, format_checker=kind.FORMAT_CHECKER)
    rng = random.Random(group["description"])
    for _ in range(0 if ENDLESS in group["description"] else 6):
        value = json.loads(tokenizer().decode(walk(grammar, rng, rng.choice([1, 20, 60]))))
        assert not list(validator.iter_errors(value)), (group["description"], schema, value)
        seen["generated"] += 1
    for test in group["tests"]:
        taken = takes(grammar, json.dumps(test["data"], ensure_ascii=False))
        if list(validator.iter_errors(test["data"])):
            assert not taken, (group["description"], schema, test["data"])
        else:
            seen["valid"] += 1
            seen["taken"] += taken

"""Recipes on disk: kept whole, refused when damaged, and never a reason to fail."""

import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from langchain_gemma_jax.models.recipes import AttentionForm, BetweenForm, Form, Plan, Recipe, store
from langchain_gemma_jax.models.recipes.store import recall, recipe_file, remember

RECIPE = Recipe(
    "float32",
    Plan(out_first=False, one_row=Form.PAD_ROWS),
    Plan(few_rows=Form.KERNEL, many_rows=Form.KERNEL, kernel_rows=8),
    AttentionForm.KERNEL,
    BetweenForm.KERNEL,
)
PLANS = '"layers": {"out_first": true, "one_row": "dot", "few_rows": "dot", "many_rows": "dot", "kernel_rows": 64}, "embed": {"out_first": true, "one_row": "dot", "few_rows": "dot", "many_rows": "dot", "kernel_rows": 64}'  # noqa: E501
ATTENTION = '"kernel"'


def test_a_recipe_comes_back_as_it_was():
    assert recall("float32") is None
    remember(RECIPE)
    assert recall("float32") == RECIPE
    assert recall("float32").source == "disk"
    assert recall("bfloat16") is None


def test_the_file_is_the_users_own():
    remember(RECIPE)
    path = recipe_file("float32")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [p.name for p in path.parent.iterdir()] == [path.name], "a temporary file was left"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "{}",
        '{"dtype": "bfloat16"}',
        '{"dtype": "float32", "layers": 3, "embed": 4}',
        '{"dtype": "float32", "layers": {"out_first": 1, "one_row": "dot", "few_rows": "dot"}, "embed": {}}',
        '{"dtype": "float32", "layers": {"out_first": true, "one_row": "fast", "few_rows": "dot"}, "embed": {}}',
        f'{{"dtype": "float32", "complete": true, {PLANS.replace("64", "0")}, "attention": {ATTENTION}, "between": "xla"}}',  # noqa: E501
        f'{{"dtype": "float32", "complete": true, {PLANS.replace("64", "8.0")}, "attention": {ATTENTION}, "between": "xla"}}',  # noqa: E501
        f'{{"dtype": "float32", "complete": true, {PLANS}}}',
        f'{{"dtype": "float32", "complete": true, {PLANS}, "attention": "kernel"}}',
        f'{{"dtype": "float32", "complete": true, {PLANS}, "attention": "x", "between": "xla"}}',
        f'{{"dtype": "float32", "complete": true, {PLANS}, "attention": {{"few": "kernel"}}, "between": "xla"}}',
        f'{{"dtype": "float32", "complete": true, {PLANS}, "attention": {ATTENTION}}}',
        f'{{"dtype": "float32", "complete": true, {PLANS}, "attention": {ATTENTION}, "between": "fast"}}',
        "\x00\xff",
    ],
)
def test_a_damaged_file_counts_as_absent_and_is_healed(text):
    path = recipe_file("float32")
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert recall("float32") is None
    remember(RECIPE)
    assert recall("float32") == RECIPE


def test_a_recipe_for_another_dtype_is_not_taken():
    remember(RECIPE)
    path = recipe_file("float32")
    path.write_text(json.dumps({**json.loads(path.read_text()), "dtype": "bfloat16"}))
    assert recall("float32") is None


def test_another_jax_or_processor_has_another_file(monkeypatch):
    here = recipe_file("float32")
    monkeypatch.setattr(store, "_cpu_features", lambda: "flags: none")
    elsewhere = recipe_file("float32")
    assert here != elsewhere
    monkeypatch.setattr(store.jax, "__version__", "99.0")
    assert recipe_file("float32") not in {here, elsewhere}


def test_a_folder_that_cannot_be_written_is_not_an_error(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("GEMMA_JAX_CACHE_DIR", str(tmp_path / "file"))
    remember(RECIPE)
    assert recall("float32") is None


def test_a_full_disk_leaves_no_half_file(monkeypatch):
    remember(RECIPE)
    path = recipe_file("float32")

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    remember(Recipe("float32"))
    assert recall("float32") == RECIPE
    assert len(list(path.parent.iterdir())) == 1


def test_folders_and_files_of_others_are_neither_trusted_nor_changed(tmp_path, monkeypatch):
    remember(RECIPE)
    kept = recipe_file("float32").read_bytes()
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / recipe_file("float32").name).write_bytes(kept)
    home = tmp_path / "home"
    monkeypatch.setenv("GEMMA_JAX_CACHE_DIR", str(home))
    home.mkdir()
    (home / "recipes").symlink_to(theirs)
    remember(Recipe("float32"))
    with store.alone("float32"):
        assert recall("float32") is None, "it is somebody else's"
    assert [path.read_bytes() for path in theirs.iterdir()] == [kept]
    (home / "recipes").unlink()
    (home / "recipes").mkdir()
    (home / "recipes").chmod(0o777)
    remember(RECIPE)
    assert (recall("float32"), list((home / "recipes").iterdir())) == (None, [])
    assert stat.S_IMODE((home / "recipes").stat().st_mode) == 0o777


def test_whatever_is_made_above_it_is_private_too(tmp_path, monkeypatch):
    monkeypatch.setenv("GEMMA_JAX_CACHE_DIR", str(tmp_path / "a" / "b"))
    remember(RECIPE)
    made = [tmp_path / "a", tmp_path / "a" / "b", recipe_file("float32").parent]
    assert {stat.S_IMODE(path.stat().st_mode) for path in made} == {0o700}


def test_writers_at_the_same_time_leave_one_whole_file():
    recipes = [Recipe("float32", Plan(out_first=bool(i % 2))) for i in range(64)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(remember, recipes))
    assert recall("float32") in recipes

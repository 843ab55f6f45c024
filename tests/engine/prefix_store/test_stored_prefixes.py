"""One model's prefixes: the longest that a prompt begins with, of its own scope and model, whoever wrote it."""

from __future__ import annotations

import dataclasses
from array import array

from langchain_gemma_jax.engine.prefix_store.prefix_names import family_name
from tests.engine.prefix_store.example_prefixes import blocks_of, found_right, header_of, keys_of, put, store_in


def length_of(stored, scope, keys, more_than=0):
    found = stored.find(scope, keys, more_than)
    return 0 if found is None else found.mark.length


def test_the_longest_beginning_is_found_and_one_token_is_left_to_read(tmp_path):
    stored = store_in(tmp_path / "prefixes")
    put(stored, 1)
    keys = keys_of(1)
    assert length_of(stored, "somebody", keys) == 5
    assert length_of(stored, "somebody", keys + array("q", [1, 2, 3])) == 5
    assert length_of(stored, "somebody", keys[:5]) == 3, "the last token is read, for its scores"
    assert length_of(stored, "somebody", keys[:3]) == 0
    assert length_of(stored, "somebody", keys, more_than=4) == 5
    assert length_of(stored, "somebody", keys, more_than=5) == 0
    for at in range(5):
        other = keys[:]
        other[at] += 1
        assert length_of(stored, "somebody", other) == (3 if at >= 3 else 0)


def test_no_other_scope_and_no_other_model_finds_it(tmp_path):
    folder = tmp_path / "prefixes"
    put(store_in(folder), 1, scope="a")
    stored = store_in(folder)
    assert [length_of(stored, scope, keys_of(1)) for scope in ("a", "b", "", "A", "a ")] == [5, 0, 0, 0, 0]
    assert length_of(store_in(folder, family=family_name("another", "its programs")), "a", keys_of(1)) == 0


def test_a_file_under_another_name_or_of_another_model_is_refused(tmp_path):
    folder = tmp_path / "prefixes"
    name = put(store_in(folder), 1)
    (folder / name).rename(folder / (name[:20] + "0" * 37 + ".prefix"))
    stored = store_in(folder)
    assert length_of(stored, "somebody", keys_of(1)) == 0
    assert list(folder.glob("*.prefix")) == []
    other = store_in(folder, family=family_name("another", "its programs"))
    foreign = put(other, 2)
    (folder / foreign).rename(folder / (stored.names.family_part + foreign[17:]))
    assert length_of(store_in(folder), "somebody", keys_of(2)) == 0
    assert list(folder.glob("*.prefix")) == []


def test_what_another_process_writes_and_deletes_is_noticed(tmp_path):
    folder = tmp_path / "prefixes"
    mine, theirs = store_in(folder), store_in(folder)
    assert mine.fresh
    name = put(theirs, 1)
    assert not mine.fresh
    assert length_of(mine, "somebody", keys_of(1)) == 0
    mine.refresh()
    assert found_right(mine, 1)
    theirs.forget(name)
    assert mine.find("somebody", keys_of(1), 0) is not None
    assert not found_right(mine, 1), "it was gone when it was to be read"
    mine.refresh()
    assert (mine._files, mine._marks, mine._lengths) == ({}, {}, [])


def test_a_file_that_was_replaced_meanwhile_is_not_taken_for_the_old_one(tmp_path):
    folder = tmp_path / "prefixes"
    mine, theirs = store_in(folder), store_in(folder)
    put(mine, 1)
    found = mine.find("somebody", keys_of(1), 0)
    blocks = blocks_of(2)
    assert theirs.write(dataclasses.replace(header_of(theirs.names, 1, blocks), label="newer"), blocks) == found.file
    assert mine.read(found) is None
    assert (folder / found.file).exists()


def test_a_beginning_that_two_files_have_is_there_as_long_as_one_is(tmp_path):
    stored = store_in(tmp_path / "prefixes")
    first = put(stored, 1)
    keys, blocks = keys_of(1), blocks_of(1)
    short = header_of(stored.names, 1, blocks[:2] + blocks[4:])
    mark = dataclasses.replace(short.marks[0], ring=0)
    second = stored.write(dataclasses.replace(short, marks=(mark,)), blocks[:2] + blocks[4:])
    assert second not in {first, None}
    for gone, left in ((first, 3), (second, 0)):
        assert length_of(stored, "somebody", keys[:5]) == 3
        stored.forget(gone)
        assert length_of(stored, "somebody", keys) == left

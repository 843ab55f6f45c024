import dataclasses
from itertools import count, islice

import numpy as np
import pytest
import tokenizers

from training import tokenizer
from training.attend import seen
from training.data import stream
from training.data.drill import ASIDES, Text
from training.data.mixture import conversation
from training.data.pointers import LOOKS, MARKS, PLACES
from training.data.render import pieces
from training.data.side import Side
from training.data.stream import Maker, Plan, batches


@pytest.fixture
def plan(tokenizer_folder):
    return Plan(tokenizer_folder, "seed", rows=3, length=640)


def same(first, second):
    return all(np.array_equal(first[name], second[name]) for name in first)


def test_a_batch_depends_on_its_number_alone(plan):
    from_the_start = list(islice(batches(plan), 3))
    assert same(from_the_start[2], next(batches(plan, first=2)))
    assert not same(from_the_start[1], from_the_start[2])


def test_other_processes_make_the_same_batches(plan):
    others = batches(plan, workers=1)
    assert all(same(ours, theirs) for ours, theirs in zip(islice(batches(plan), 2), others, strict=False))
    others.close()


def test_a_packed_batch_holds_whole_conversations(plan):
    batch = Maker(plan).batch(0)
    assert batch["tokens"].shape == batch["weights"].shape == (3, 640)
    assert (batch["segments"] > 0).mean() > 0.9  # what is left of a row is a drill
    for row, ids in zip(batch["segments"], batch["tokens"], strict=True):
        starts = np.flatnonzero(np.diff(row // ASIDES, prepend=0) > 0)
        assert set(ids[starts]) == {tokenizer.CONTROL.index("<bos>")}


def test_targets_are_the_next_tokens_and_weigh_by_who_writes_them(plan, monkeypatch):
    monkeypatch.setattr(stream, "share", lambda _: 0.0)  # or it might begin with a drill

    def first(seed):
        maker = Maker(dataclasses.replace(plan, seed=seed))
        made = (maker.encode(conversation(f"{seed}/0/{index}", Side.TRAIN)) for index in count())
        return maker, next(fitting for each in made if (fitting := each.within(641)) is not None)

    seeds = (f"seed {number}" for number in count())
    maker, text = next((maker, text) for maker, text in map(first, seeds) if len(text.ids) < 640)  # another one follows
    batch = maker.batch(0)
    assert batch["segments"][0, 0] == ASIDES
    ids, by_model, n = text.ids, text.follows, len(text.ids)
    assert batch["tokens"][0, :n].tolist() == ids
    assert batch["targets"][0, : n - 1].tolist() == ids[1:]
    begins = np.diff(text.asides or [0] * n) != 0  # of an aside: what it is nothing foretells
    foretold = np.where(begins, 0.0, np.where(by_model[1:], 1.0, 0.1))
    assert batch["weights"][0, : n - 1].tolist() == pytest.approx(foretold)
    assert batch["weights"][0, n - 1] == 0  # the next conversation's first token


def test_what_is_too_long_for_a_row_ends_after_something_of_the_models(plan):
    maker = Maker(plan)
    texts = [maker.encode(conversation(f"cut/{index}", Side.TRAIN)) for index in range(100)]
    cut = [(text, fitting) for text in texts if len(text.ids) > 300 and (fitting := text.within(300)) is not None]
    assert len(cut) > 5
    turn_end, result = map(tokenizer.CONTROL.index, ("<turn|>", "<|tool_response>"))
    for text, fitting in cut:
        n = len(fitting.ids)
        assert n <= 300
        assert (fitting.ids, fitting.follows, fitting.asides) == (text.ids[:n], text.follows[:n], text.asides[:n])
        last = -1 if fitting.asides[-1] else -2  # a turn that is over ends its line
        assert fitting.ids[last] in {turn_end, result}
        assert fitting.follows[last]


def test_an_aside_comes_after_what_the_conversation_begins_with_and_after_nothing_else(plan):
    maker = Maker(plan)
    made = next(each for index in count() if len((each := conversation(f"beside/{index}", Side.TRAIN)).asides) > 3)
    text, library = maker.encode(made), tokenizer.load(plan.tokenizer)
    assert sorted(set(text.asides)) == list(range(len(made.asides) + 2))
    assert text.asides == sorted(text.asides)
    for number, turns in enumerate((made.turns, *made.asides), 1):
        kept = [token for token, aside in zip(text.ids, text.asides, strict=True) if aside in {0, number}]
        alone = dataclasses.replace(made, turns=turns, asides=())
        whole = "".join(piece.text for piece in pieces(alone))
        assert whole.startswith(library.decode(kept, skip_special_tokens=False))
    batch = maker.batch(0)
    asides = batch["segments"] % ASIDES
    assert asides.max() > 1


def test_only_what_another_row_has_room_for_waits_for_it(plan, monkeypatch):
    def text(length):
        return Text([5] * length, [True] * length, [length])

    maker, waiting = Maker(plan), []
    made = iter([text(60), text(300), text(90), text(300), text(300)])
    monkeypatch.setattr(maker, "_text", lambda *_: next(made))
    row = maker._row(map(str, count()), 1.0, 0.0, 100, waiting)
    assert len(next(row).ids) == 60
    next(row)  # a drill: nothing else fits
    assert [len(each.ids) for each in waiting] == [90]


def test_all_that_the_model_writes_is_scored_and_some_of_the_rest(plan):
    maker = Maker(plan)
    for number in range(3):
        batch = maker.batch(number)
        assert batch["scored"].shape == (3, 256)
        for weights, places in zip(batch["weights"], batch["scored"], strict=True):
            assert len(set(places)) == 256
            own = set(np.flatnonzero(weights == 1))
            assert own <= set(places) or set(places) <= own
            if not weights[places].all():  # what weighs nothing is there for want of anything better
                assert set(np.flatnonzero(weights)) <= set(places)


def test_where_to_look_comes_with_each_row(plan):
    batch = Maker(plan).batch(0)
    assert batch["looks"].shape == (3, LOOKS, max(PLACES), 4)
    assert batch["marks"].shape == (3, MARKS, 640)
    for segments, looks in zip(batch["segments"], batch["looks"], strict=True):
        place, first, stop, _ = looks[looks[..., 2] > 0].T
        assert len(place)
        for looked_at in (first, stop - 1):
            assert seen(segments[place], segments[looked_at]).all()


def test_what_values_look_like_comes_with_each_row(tokenizer_folder):
    batch = Maker(Plan(tokenizer_folder, "shapes", rows=4, length=1024)).batch(0)
    said, wanted = np.moveaxis(batch["marks"][:, -2:], 1, 0)
    assert all(row.any() for row in said)
    assert set(said[said > 0]) <= set(wanted[wanted > 0])
    assert len(set(wanted.ravel())) > 3


def test_what_a_model_that_goes_on_reads_is_something_else(plan):
    later = dataclasses.replace(plan, stage=2)
    assert not all(same(Maker(plan).batch(number), Maker(later).batch(number)) for number in range(3))


def test_drills_come_first_and_then_only_where_there_is_room(tokenizer_folder):
    maker = Maker(Plan(tokenizer_folder, "seed", rows=1, length=1024, ramp_tokens=100 * 1024))
    turn = tokenizer.CONTROL.index("<|turn>")

    def drilled(numbers):
        drills = texts = 0
        for number in numbers:
            batch = maker.batch(number)
            conversations = batch["segments"] // ASIDES
            for held in range(1, conversations.max() + 1):
                texts += 1
                drills += batch["tokens"][conversations == held][1] != turn  # as conversations begin
        return drills / texts

    assert drilled(range(4)) > 0.6
    assert drilled(range(100, 108)) < 0.6


def test_tokens_in_pieces_are_the_tokens_of_the_whole(plan, tokenizer_folder):
    whole, maker = tokenizer.load(tokenizer_folder), Maker(plan)
    for index in range(100):
        made = conversation(f"whole/{index}", Side.HELD_OUT)
        text = "".join(piece.text for piece in pieces(made))
        assert maker.encode(made).ids == whole.encode(text, add_special_tokens=False).ids


def test_rows_get_longer_and_fewer_at_the_end(tokenizer_folder):
    stream = batches(Plan(tokenizer_folder, "seed", rows=8, length=320, long_from=1))
    assert [next(stream)["tokens"].shape for _ in range(2)] == [(8, 320), (2, 1280)]


def test_tokens_inside_a_word_may_weigh_less(plan):
    plain = Maker(plan).batch(0)
    less = Maker(dataclasses.replace(plan, inner_weight=0.5)).batch(0)
    changed = plain["weights"] != less["weights"]
    assert set(plain["weights"][changed]) == {1.0}
    assert set(less["weights"][changed]) == {0.5}
    library = tokenizers.Tokenizer.from_file(str(plan.tokenizer / "tokenizer.json"))
    for row, place in zip(*np.nonzero(changed), strict=True):
        before, inside = (library.id_to_token(int(less[name][row, place])) for name in ("tokens", "targets"))
        assert (before.isalpha() and inside.isalpha()) or (before.isdigit() and inside.isdigit())
    begins = less["tokens"] == tokenizer.CONTROL.index('<|"|>')
    assert not (changed & begins).any()

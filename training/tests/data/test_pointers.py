"""Where a model should look in what its own tokenizer makes of a conversation."""

import numpy as np
import pytest
import tokenizers

from training.data import pointers as looks
from training.data.drill import ASIDES
from training.data.pointers import (
    BEHIND,
    CHOSEN,
    DECLARED,
    KEY,
    KEY_BEGINS,
    LABEL,
    LABELLED,
    LABELS,
    LED_HERE,
    LOOKS,
    NAME,
    NAME_BEGINS,
    NUMBERED,
    NUMBERS,
    PLACES,
    SAME_WORD,
    VALUE,
    VALUE_BEFORE,
    VALUE_BEGINS,
    WITHIN,
    WRITTEN,
    pointers,
)
from training.data.spelling import Spelling

TOOLS = (
    "<bos><|turn>system\n"
    '<|tool>declaration:add_invoice{description:<|"|>Adds one.<|"|>,'
    "parameters:{properties:{total:{},user_name:{}}}}<tool|>"
    '<|tool>declaration:delete_photo{description:<|"|>Deletes it.<|"|>,parameters:{properties:{number:{}}}}<tool|>'
    "<turn|>\n"
)


@pytest.fixture(scope="module")
def tokenizer(tokenizer_folder):
    return tokenizers.Tokenizer.from_file(str(tokenizer_folder / "tokenizer.json"))


@pytest.fixture(scope="module")
def encode(tokenizer):
    """A function: the tokens of a text."""
    return lambda text: tokenizer.encode(text, add_special_tokens=False).ids


@pytest.fixture(scope="module")
def spelling(tokenizer, encode):
    vocabulary = tokenizer.get_vocab()
    return Spelling.of(sorted(vocabulary, key=vocabulary.__getitem__), encode)


@pytest.fixture(scope="module")
def found(encode, spelling):
    """A function: of a text, for each look, from which tokens to which, as texts in order."""

    def find(text, *, look):
        ids = encode(text)
        table, marks = pointers(ids, [1] * len(ids), spelling, 0)
        pairs = {}
        for place, first, stop, mark in table[look].tolist():
            if stop:
                there = marks[look][first:stop]
                chosen = there & -mark if mark < 0 else there == mark
                pairs[place] = (first + np.flatnonzero(chosen)).tolist()
        return ids, pairs

    return find


def text_of(tokenizer, ids, places):
    return tokenizer.decode([ids[at] for at in places], skip_special_tokens=False)


def test_what_is_declared_looks_at_its_own_tools_name(tokenizer, found):
    ids, pairs = found(TOOLS, look=NAME)
    last = [text_of(tokenizer, ids, pairs[at]) for at, token in enumerate(ids) if token == 7]  # <tool|>
    assert last == ["add_invoice", "delete_photo"]
    assert all(max(targets) <= place for place, targets in pairs.items())


def test_a_word_that_is_said_looks_at_the_same_word_wherever_it_is_declared(tokenizer, found):
    ids, pairs = found(f"{TOOLS}<|turn>user\nPhoto, please!<turn|>\n", look=SAME_WORD)
    found_in_tools = {said: targets for said, targets in pairs.items() if targets != [0]}
    assert text_of(tokenizer, ids, sorted(found_in_tools)) in "Photo"
    assert found_in_tools
    for said, targets in found_in_tools.items():
        word = text_of(tokenizer, ids, [said]).lower()
        for at in targets:  # a word with a capital may be of other tokens
            assert text_of(tokenizer, ids, [at]).lower().endswith(word) or word.endswith(
                text_of(tokenizer, ids, [at]).lower()
            )


def test_a_word_that_no_tool_has_looks_at_the_start_where_nothing_is(tokenizer, found):
    ids, pairs = found(f"{TOOLS}<|turn>user\nI would like what should be your kind.<turn|>\n", look=SAME_WORD)
    nowhere = [at for at, targets in pairs.items() if targets == [0]]
    assert nowhere
    declared = ids[: min(nowhere)]
    assert not any(ids[at] in declared for at in nowhere)


def test_a_word_that_only_begins_or_ends_like_one_of_a_tool_looks_at_the_start(found):
    _, pairs = found(f"{TOOLS}<|turn>user\nphotoblorn invoiceblorn zudelete<turn|>\n", look=SAME_WORD)
    assert len(pairs) >= 3
    assert all(targets == [0] for targets in pairs.values())


def test_a_word_that_has_not_ended_yet_leads_nowhere(tokenizer, found):
    ids, pairs = found(f"{TOOLS}<|turn>user\nadd zorblatquim invoice<turn|>\n", look=SAME_WORD)
    said = next(at for at, token in enumerate(ids) if token == 4 and at > ids.index(7))  # <|turn>
    pieces = tokenizer.encode("zorblatquim", add_special_tokens=False).ids
    assert len(pieces) > 2
    start = next(at for at in range(said, len(ids)) if ids[at : at + len(pieces)] == pieces)
    assert all(pairs[at] == [0] for at in range(start, start + len(pieces)))


def test_a_name_looks_at_the_words_that_led_to_it(tokenizer, found):
    call = "<|tool_call>call:delete_photo{number:7}<tool_call|>"
    text = f"{TOOLS}<|turn>user\nPhoto, please!<turn|>\n<|turn>model\n{call}"
    ids, pairs = found(text, look=LED_HERE)
    assert text_of(tokenizer, ids, sorted({at + 1 for at in pairs})) == "delete_photo"
    led = text_of(tokenizer, ids, pairs[min(pairs)])
    assert led in "Photo"
    assert led


def test_arguments_look_at_where_their_names_are_declared_and_their_values_said(tokenizer, found):
    said = "Add 48 for Zorblat Quim, 4823 is another number.<turn|>\n<|turn>model\n"
    call = '<|tool_call>call:add_invoice{total:48,user_name:<|"|>Zorblat Quim<|"|>}<tool_call|>'
    ids, keys = found(f"{TOOLS}<|turn>user\n{said}{call}", look=KEY)
    assert text_of(tokenizer, ids, [at + 1 for at in sorted(keys)]) == "totaluser_name"
    assert all(ids[place + 1] == ids[target] for place, (target,) in keys.items())
    ids, values = found(f"{TOOLS}<|turn>user\n{said}{call}", look=VALUE)
    assert text_of(tokenizer, ids, [values[at][0] for at in sorted(values)]) == "48 Zorblat Quim,"


def test_an_answer_in_json_looks_at_its_schema_and_at_what_was_said(tokenizer, found):
    text = (
        '<bos><|turn>system\nThe schema:\n{"properties":{"city":{"type":"string"}}}<turn|>\n'
        '<|turn>user\nIn Oslo.<turn|>\n<|turn>model\n{"city": "Oslo"}<turn|>\n'
    )
    ids, keys = found(text, look=KEY)
    assert text_of(tokenizer, ids, [keys[at][0] for at in sorted(keys)]) == "city"
    ids, values = found(text, look=VALUE)
    assert text_of(tokenizer, ids, [values[at][0] for at in sorted(values)]) == "Oslo."


THIRD = '<|tool>declaration:show_photo{description:<|"|>Shows it.<|"|>,parameters:{}}<tool|>'


def test_a_word_that_two_of_three_tools_share_looks_at_both_and_leads_to_either(tokenizer, found):
    text = f"{TOOLS.removesuffix('<turn|>' + chr(10))}{THIRD}<turn|>\n<|turn>user\nphoto<turn|>\n<|turn>model\n"
    ids, pairs = found(text, look=SAME_WORD)
    said, targets = next((at, targets) for at, targets in pairs.items() if targets != [0])
    third = max(at for at, token in enumerate(ids) if token == 6)  # <|tool>
    assert min(targets) < third < max(targets) < said
    for name in ("delete_photo{number:7}", "show_photo{}"):
        called = f"{text}<|tool_call>call:{name}<tool_call|>"
        assert all(said in targets for targets in found(called, look=LED_HERE)[1].values())
        assert found(called, look=LED_HERE)[1]


def test_a_name_looks_at_where_it_is_declared_as_it_is_written(tokenizer, found):
    call = "<|tool_call>call:delete_photo{number:7}<tool_call|>"
    ids, pairs = found(f"{TOOLS}<|turn>user\nPhoto, please!<turn|>\n<|turn>model\n{call}", look=WRITTEN)
    # How it begins cannot be looked up so: there nothing is known yet of what comes behind it.
    _first, *rest = tokenizer.encode("delete_photo{", add_special_tokens=False).ids
    assert [ids[at + 1] for at in sorted(pairs)] == [ids[pairs[at][0]] for at in sorted(pairs)] == rest
    assert all(target < ids.index(7, target) < place for place, (target,) in pairs.items())  # <tool|>


def test_a_name_looks_inside_its_declaration_where_it_is_known_whose_that_is(tokenizer, found):
    call = "<|tool_call>call:delete_photo{number:7}<tool_call|>"
    ids, pairs = found(f"{TOOLS}<|turn>user\nPhoto, please!<turn|>\n<|turn>model\n{call}", look=CHOSEN)
    assert text_of(tokenizer, ids, [at + 1 for at in sorted(pairs)]) == "delete_photo"
    declared = '{description:<|"|>Deletes it.<|"|>,parameters:{properties:{number:{}}}}'
    assert {text_of(tokenizer, ids, targets) for targets in pairs.values()} == {declared}


def test_a_value_looks_at_its_label_in_front_of_it_or_else_at_itself(tokenizer, found):
    said = "Add one with user name as Zorblat Quim, 48 the total.<turn|>\n<|turn>model\n"
    call = '<|tool_call>call:add_invoice{total:48,user_name:<|"|>Zorblat Quim<|"|>}<tool_call|>'
    ids, pairs = found(f"{TOOLS}<|turn>user\n{said}{call}", look=LABELLED)
    (name, (label,)), (total, (itself,)) = sorted(pairs.items())
    assert text_of(tokenizer, ids, [label]) in "name"
    assert tokenizer.decode(ids[name:]).startswith("Zorblat")
    assert tokenizer.decode(ids[total:]).startswith("48 the")
    assert itself == total
    far = "The user name, " + "very " * 20 + "far: Zorblat Quim.<turn|>\n<|turn>model\n"
    (pair,) = found(f"{TOOLS}<|turn>user\n{far}{call}", look=LABELLED)[1].items()
    assert pair == (pair[0], [pair[0]])


def test_a_label_looks_at_its_value_in_front_of_it_or_else_at_the_start_and_who_writes_it_at_the_label(
    tokenizer, found
):
    said = "Add one with user name as Zorblat Quim, 48 the total.<turn|>\n<turn|>user\nNot 7.<turn|>\n<|turn>model\n"
    call = '<|tool_call>call:add_invoice{total:48,user_name:<|"|>Zorblat Quim<|"|>}<tool_call|>'
    ids, pairs = found(f"{TOOLS}<|turn>user\n{said}{call}", look=LABELS)
    (name, nowhere), (total, (value,)) = sorted(pairs.items())
    assert text_of(tokenizer, ids, [name]) in "name"
    assert nowhere == [0]
    assert "total".endswith(text_of(tokenizer, ids, [total]))
    assert tokenizer.decode(ids[value:]).startswith("48 the")
    ids, pairs = found(f"{TOOLS}<|turn>user\n{said}{call}", look=LABEL)
    assert [text_of(tokenizer, ids, targets) for targets in pairs.values()] == [
        text_of(tokenizer, ids, [total]),
        "name",
    ]
    written = [tokenizer.decode(ids[place + 1 :]) for place in pairs]
    assert [text[:2] for text in written] == ["48", "Zo"]


def test_who_writes_a_value_that_has_no_label_looks_at_itself_and_at_no_other_label(tokenizer, found):
    said = "Add one for Zorblat Quim, 48 the total.<turn|>\n<|turn>model\n"
    call = '<|tool_call>call:add_invoice{total:48,user_name:<|"|>Zorblat Quim<|"|>}<tool_call|>'
    ids, pairs = found(f"{TOOLS}<|turn>user\n{said}{call}", look=LABEL)
    total, name = sorted(pairs)
    assert "total".endswith(text_of(tokenizer, ids, pairs[total]))
    assert pairs[name] == [name]
    assert tokenizer.decode(ids[name + 1 :]).startswith("Zorblat")
    _, pairs = found(f"{TOOLS}<|turn>user\n{said}{call}".replace("user_name", "u"), look=LABEL)
    assert len(pairs) == 1, "a letter is no word, so nobody knows whether it was said"


def test_of_two_labels_that_end_alike_the_one_that_is_said_more_fully_is_looked_at(tokenizer, found):
    tools = TOOLS.replace("total:{}", "home_name:{}")
    said = "Oslo goes into home name. Zorblat Quim goes into user name.<turn|>\n<|turn>model\n"
    call = '<|tool_call>call:add_invoice{home_name:<|"|>Oslo<|"|>,user_name:<|"|>Zorblat Quim<|"|>}<tool_call|>'
    ids, pairs = found(f"{tools}<|turn>user\n{said}{call}", look=LABELS)
    labels = sorted(pairs)
    assert [tokenizer.decode(ids[: at + 1]).split()[-2] for at in labels] == ["home", "user"]
    values = [tokenizer.decode(ids[pairs[at][0] :]).split()[0] for at in labels]
    assert values == ["Oslo", "Zorblat"]


def test_a_value_that_is_said_looks_at_its_beginning_and_who_writes_it_at_what_stands_behind_it(tokenizer, found):
    said = "Add one with user name as Zorblat Quim.<turn|>\n<|turn>model\n"
    call = '<|tool_call>call:add_invoice{user_name:<|"|>Zorblat Quim<|"|>}<tool_call|>'
    ids, pairs = found(f"{TOOLS}<|turn>user\n{said}{call}", look=WITHIN)
    ((value,),) = {tuple(targets) for targets in pairs.values()}
    assert text_of(tokenizer, ids, [value, *sorted(pairs)]) == "Zorblat Quim."
    _, pairs = found(f"{TOOLS}<|turn>user\n{said}{call}", look=BEHIND)
    ((behind,),) = {tuple(targets) for targets in pairs.values()}
    assert tokenizer.decode(ids[value:behind]) == "Zorblat Quim"
    assert text_of(tokenizer, ids, [at + 1 for at in sorted(pairs)]) == 'Zorblat Quim<|"|>'


def test_the_label_of_another_argument_with_a_word_in_common_is_not_looked_at(tokenizer, found):
    tools = TOOLS.replace("total:{}", "user_place:{}")
    said = "Add one with user name as Zorblat Quim, Oslo goes into user place.<turn|>\n<|turn>model\n"
    call = '<|tool_call>call:add_invoice{user_place:<|"|>Oslo<|"|>,user_name:<|"|>Zorblat Quim<|"|>}<tool_call|>'
    ids, pairs = found(f"{tools}<|turn>user\n{said}{call}", look=LABEL)
    assert [text_of(tokenizer, ids, targets) for targets in pairs.values()] == ["place", "name"]


def test_a_value_whose_label_is_behind_it_is_begun_by_a_head_of_its_own(tokenizer, found):
    said = "Add one with user name as Zorblat Quim, 48 the total.<turn|>\n<|turn>model\n"
    call = '<|tool_call>call:add_invoice{total:48,user_name:<|"|>Zorblat Quim<|"|>}<tool_call|>'
    ids, before = found(f"{TOOLS}<|turn>user\n{said}{call}", look=VALUE_BEFORE)
    _, begins = found(f"{TOOLS}<|turn>user\n{said}{call}", look=VALUE_BEGINS)
    _, goes_on = found(f"{TOOLS}<|turn>user\n{said}{call}", look=VALUE)
    total, name = sorted(before)
    assert sorted(begins) == [total, name]
    assert tokenizer.decode(ids[before[total][0] :]).startswith("48 the")
    assert begins[total] == [0], "the other one looks at the start"
    assert total not in goes_on
    assert tokenizer.decode(ids[goes_on[total + 1][0] :]).startswith("8 the")
    assert before[name] == [0]
    assert begins[name] == goes_on[name]
    assert tokenizer.decode(ids[begins[name][0] :]).startswith("Zorblat")


def test_of_a_list_only_what_comes_first_has_a_label(tokenizer, found):
    said = "Add one, Oslo and Zorblat Quim as user name.<turn|>\n<|turn>model\n"
    call = '<|tool_call>call:add_invoice{user_name:[<|"|>Oslo<|"|>,<|"|>Zorblat Quim<|"|>]}<tool_call|>'
    text = f"{TOOLS}<|turn>user\n{said}{call}"
    for look in (LABELS, LABELLED):
        ids, ((_, (value,)),) = found(text, look=look)[0], found(text, look=look)[1].items()
        assert tokenizer.decode(ids[value:]).startswith("Oslo and")
    ids, before = found(text, look=VALUE_BEFORE)
    first, second = (before[at] for at in sorted(before))
    assert tokenizer.decode(ids[first[0] :]).startswith("Oslo and")
    assert second == [0]
    _, begins = found(text, look=VALUE_BEGINS)
    assert tokenizer.decode(ids[begins[max(begins)][0] :]).startswith("Zorblat")


def test_what_is_inside_a_call_looks_at_its_tools_name_as_in_the_declaration(tokenizer, found):
    call = "<|tool_call>call:delete_photo{number:7}<tool_call|>"
    ids, pairs = found(f"{TOOLS}<|turn>user\nPhoto, please!<turn|>\n<|turn>model\n{call}", look=NAME)
    called = ids.index(8)  # <|tool_call>
    inside = {place: targets for place, targets in pairs.items() if place > called}
    assert text_of(tokenizer, ids, sorted(inside)) == "{number:7}"
    assert {text_of(tokenizer, ids, targets) for targets in inside.values()} == {"delete_photo"}
    assert min(map(min, inside.values())) > called


DECLARED_TWICE = (
    '<bos><|turn>system\n<|tool>declaration:add_invoice{description:<|"|>Adds {one}.<|"|>,parameters:{properties:{'
    'inner:{description:<|"|>A } b<|"|>,items:{type:<|"|>STRING<|"|>},type:<|"|>ARRAY<|"|>},total:{type:<|"|>X<|"|>}'
    "}}}<tool|><turn|>\n<|turn>user\nAdd 48 for Oslo!<turn|>\n<|turn>model\n"
)


def test_a_value_looks_at_all_that_is_declared_of_it_and_at_no_more(tokenizer, found):
    call = '<|tool_call>call:add_invoice{inner:[<|"|>Oslo<|"|>],total:48}<tool_call|>'
    ids, pairs = found(f"{DECLARED_TWICE}{call}", look=DECLARED)
    told = [text_of(tokenizer, ids, pairs[at]) for at in sorted(pairs)]
    assert told == [
        'inner:{description:<|"|>A } b<|"|>,items:{type:<|"|>STRING<|"|>},type:<|"|>ARRAY<|"|>}',
        'total:{type:<|"|>X<|"|>}',
    ]


def test_where_a_name_an_argument_or_a_value_begins_is_looked_at_by_itself(tokenizer, found):
    ids, names = found(TOOLS, look=NAME_BEGINS)
    starts = [names[at] for at, token in enumerate(ids) if token == 7]  # <tool|>
    colon = tokenizer.token_to_id(":")
    assert starts == [[ids.index(colon, at) + 1] for at, token in enumerate(ids) if token == 6]  # <|tool>
    call = "<|tool_call>call:add_invoice{total:48}<tool_call|>"
    ids, values = found(f"{TOOLS}<|turn>user\nAdd 48!<turn|>\n<|turn>model\n{call}", look=VALUE_BEGINS)
    assert text_of(tokenizer, ids, [target for (target,) in values.values()]) == "4"
    ids, keys = found(f"{TOOLS}<|turn>user\nAdd 48!<turn|>\n<|turn>model\n{call}", look=KEY_BEGINS)
    ((begins,),) = keys.values()  # one look, at one token: of "total" the first one, which may be all of it
    assert begins == ids.index(tokenizer.encode("{total:", add_special_tokens=False).ids[1])
    assert "total".startswith(text_of(tokenizer, ids, [begins]))


def test_tools_are_known_by_their_numbers_in_what_is_declared_said_and_called(tokenizer, encode, spelling):
    call = "<|tool_call>call:delete_photo{number:7}<tool_call|>"
    ids = encode(f"{TOOLS}<|turn>user\nPhoto, please!<turn|>\n<|turn>model\n{call}")
    _, marks = pointers(ids, [1] * len(ids), spelling, 0)
    declared, said, called = marks[NUMBERED : NUMBERED + 3]
    assert text_of(tokenizer, ids, np.flatnonzero(declared == 1 << 2)).startswith("delete_photo{description")
    assert text_of(tokenizer, ids, np.flatnonzero(called) + 1) == "delete_photo"
    assert set(called) == {0, 1 << 2}
    words = text_of(tokenizer, ids, np.flatnonzero(said))
    assert words == "Photoplease"
    (photo,) = np.flatnonzero(said == 1 << 2)
    assert text_of(tokenizer, ids, [photo]).lower() in "photo"
    assert set(said) == {0, 1, 1 << 2}


def test_tools_that_are_too_many_to_be_numbered_are_not(encode, spelling):
    # One token: what a word begins with leads nowhere.
    ids = encode("<bos><|turn>system\n" + "<|tool>declaration:get{}<tool|>" * 20 + "<turn|>\n<|turn>user\nget<turn|>\n")
    _, marks = pointers(ids, [1] * len(ids), spelling, 0)
    declared, said = marks[NUMBERED : NUMBERED + 2]
    assert declared.max() == 1 << NUMBERS - 1
    assert not said.any()


def test_what_a_value_looks_like_is_known_behind_it_and_where_it_is_to_be_written(tokenizer, encode, spelling):
    call = '<|tool_call>call:add_invoice{total:75,user_name:<|"|>Ole<|"|>}<tool_call|>'
    ids = encode(f"{TOOLS}<|turn>user\nAn invoice of 75 by Ole!<turn|>\n<|turn>model\n{call}")
    shapes = {tuple(encode("total")): 10}
    _, marks = pointers(ids, [ASIDES] * len(ids), spelling, 0, {1: shapes})
    said, wanted = marks[NUMBERED + 3 :]
    ((behind,), (writes,)) = np.flatnonzero(said), np.flatnonzero(wanted)  # nothing is told of a user's name
    assert text_of(tokenizer, ids, range(behind - 2, behind)).endswith("5")
    assert text_of(tokenizer, ids, range(writes - 3, writes + 1)).endswith("total:")
    assert said[behind] == wanted[writes] == 1 << 11
    _, untold = pointers(ids, [ASIDES] * len(ids), spelling, 0, {2: shapes})
    assert not untold[NUMBERED + 3 :].any()


def test_what_is_said_twice_is_nowhere_to_be_looked_up(found):
    text = f"{TOOLS}<|turn>user\n7 or 7?<turn|>\n<|turn>model\n<|tool_call>call:delete_photo{{number:7}}<tool_call|>"
    assert not found(text, look=VALUE)[1]


def test_a_name_that_was_cut_off_is_none(found):
    for cut in ("<|tool>declaration", "<|tool>declaration:add", "<bos><|turn>system\n<|tool>declaration:add_in"):
        assert found(cut, look=KEY)[1] == {}


def test_there_are_as_many_places_as_there_is_room_for(monkeypatch, found):
    assert len(PLACES) == LOOKS
    monkeypatch.setattr(looks, "PLACES", (5,) + (7,) * (LOOKS - 1))
    assert len(found(TOOLS, look=NAME)[1]) == 5
    assert len(found(TOOLS, look=NAME_BEGINS)[1]) == 7


def test_an_aside_looks_at_what_it_sees_and_at_no_other_aside(encode, spelling):
    tools, asked = encode(TOOLS), "<|turn>user\n{}<turn|>\n<|turn>model\n<|tool_call>call:delete_photo{}<tool_call|>"
    one, other = encode(asked.format("Photo 48!", "{number:48}")), encode(asked.format("Photo 48.", "{number:48}"))
    ids = [*tools, *one, *other]
    first, second = len(tools), len(tools) + len(one)
    segments = [ASIDES] * len(tools) + [ASIDES + 1] * len(one) + [ASIDES + 2] * len(other)
    table, marks = pointers(ids, segments, spelling, 0)
    values = {place: target for place, target, stop, _ in table[VALUE].tolist() if stop}
    assert {place >= second for place in values} == {False, True}
    assert all(target >= (second if place >= second else first) for place, target in values.items())
    names = [place for place, _, stop, _ in table[NAME].tolist() if stop and place < first]
    assert len(names) == len(set(names))  # what both see is learned once
    assert marks[SAME_WORD, : len(tools)].any()
    assert marks[LED_HERE, second:].any()


def test_segments_are_read_each_by_itself(encode, spelling):
    ids, request = encode(TOOLS), encode("<bos><|turn>user\nA photo.<turn|>\n")
    table, _ = pointers([*ids, *request], [1] * len(ids) + [2] * len(request), spelling, 0)
    assert table[NAME].any()
    assert not table[SAME_WORD].any()
    again, _ = pointers([*ids, *ids], [1] * len(ids) + [2] * len(ids), spelling, 0)
    same = again[NAME][np.argsort(again[NAME][:, 0])]
    assert all((first >= len(ids)) == (place >= len(ids)) for place, first, stop, _ in same.tolist() if stop)

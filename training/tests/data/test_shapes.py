"""Every kind of value has a shape, and where an argument's name or its description tells the kind, it is known."""

from dataclasses import replace

from training.data.errand_kinds import ERRAND_KINDS
from training.data.fields import field, kinds_of
from training.data.kinds import ANY_WORDS, KINDS
from training.data.pointers import NUMBERS
from training.data.shapes import SHAPES
from training.data.side import Side
from training.data.world import World


def test_every_kind_has_a_shape_and_there_are_numbers_for_all():
    assert set(SHAPES) == {*KINDS, *ERRAND_KINDS}
    assert max(SHAPES.values()) + 1 < NUMBERS, "the first number is for none"
    assert len({SHAPES[kind] for kind in ANY_WORDS}) == 1, "any words are as any others"


def test_of_two_properties_of_one_name_nothing_is_told_unless_they_are_of_one_kind():
    date = replace(field(World("", Side.TRAIN), "lamp", "find", set(), ("date",)), name="due", kind="date")
    assert kinds_of([date, date]) == {"due": "date"}
    assert kinds_of([date, replace(date, kind="time")]) == {}
    assert kinds_of([replace(date, kind="")]) == {}


def test_a_kind_is_told_where_the_name_or_the_description_tells_it():
    fields = [field(World(f"{number}", Side.TRAIN), "lamp", "find", set(), ("date",)) for number in range(200)]
    told = [each for each in fields if each.kind]
    assert {each.kind for each in told} == {"date"}
    assert 100 < len(told) < 200
    assert all(each.kind for each in fields if each.hinted)
    labels = KINDS["date"].labels.train
    assert all(not each.label.endswith(labels) for each in fields if not each.kind)

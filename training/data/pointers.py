"""Where a model should look: what is known about a row because its tools and requests were made up.

A right call is a few looks. What is inside a declaration or a call looks at its own tool's name, so both know it in
the same way; a word that the user says looks, where it ends, at the end of the same word in a declaration; where a
tool's name is to be written, at the words that led to that tool, then at its declaration, then at the name itself; an
argument's name is looked up in the declaration; a value, first at what is declared of it, then at its label where that
was said and at what stands right behind the value, then at the value: which knows the label in front of it, and a label
knows the value in front of itself, and each of them whether there is none. What kind of value it is, is not known where
it begins but where it has ended, so from there back all of it looks at its beginning. From calls alone none of these is
learned before the others. So each is taught by itself (``training.look``), and where something begins once more: that
is hardest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, takewhile
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from training.data.drill import ASIDES
from training.data.spelling import (
    CALL,
    CALL_END,
    QUOTE,
    RESPONSE,
    RESPONSE_END,
    TOOL,
    TOOL_END,
    TURN,
    TURN_END,
    Spelling,
)
from training.data.whole_words import whole_words
from training.data.written import Part, parts

(
    NAME,
    NAME_BEGINS,
    SAME_WORD,
    LED_HERE,
    CHOSEN,
    WRITTEN,
    KEY,
    KEY_BEGINS,
    DECLARED,
    LABELLED,
    LABELS,
    LABEL,
    WITHIN,
    BEHIND,
    VALUE,
    VALUE_BEGINS,
    VALUE_BEFORE,
) = range(17)
LOOKS = 17
NUMBERED = LOOKS  # from here on, marks are the numbers of tools, and of what values look like (``training.which``)
NUMBERS = 16  # of each, the first for none
_DECLARED_OF, _SAID_OF, _CALLED_OF, _SHAPE_SAID, _SHAPE_WANTED = range(NUMBERED, NUMBERED + 5)
MARKS = NUMBERED + 5
PLACES = (128, 128, 192, 64, 64, 64, 64, 32, 32, 32, 32, 32, 128, 128, 128, 32, 32)
"""Of a row, for each look: so many are taught, at random if there are more. Nine of ten rows of 1,024 tokens have no
more, but of what is soon learned: names and words that are the same."""

_BITS = 30
_NEAR = 24  # tokens between a label and the value that it announces, at most

Found: TypeAlias = "tuple[list[Look], ...]"


@dataclass(frozen=True)
class Look:
    """One token that should look at those from ``first`` to before ``stop`` whose mark is ``mark``.

    If ``mark`` is negative, at those whose mark has one of its bits: the fewer bits one has, the more.
    """

    place: int
    first: int
    stop: int
    mark: int = 0

    def at(self, places: Sequence[int]) -> Look:
        """In a row that has what was read at these places."""
        return Look(places[self.place], places[self.first], places[self.stop - 1] + 1, self.mark)


def pointers(
    tokens: Sequence[int],
    segments: Sequence[int],
    spelling: Spelling,
    seed: int,
    shapes: Mapping[int, Mapping[tuple[int, ...], int]] | None = None,
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Looks ``[look, place, 4]`` and the marks of every token ``[look, token]``, of one row.

    Behind the marks of looks there are those of tools by number: of what is declared, said, and called; and those of
    what values look like: where one was said, and where one is to be written. That is known by the arguments' names,
    in tokens: the ``shapes`` of each conversation.

    Where there are fewer looks than places, the others have nowhere to look, so nothing is taught there.
    """
    looks: Found = tuple([] for _ in range(LOOKS))
    marks = np.zeros((MARKS, len(tokens)), np.int32)
    for number, places, told in _conversations(segments):
        read = _Conversation([tokens[place] for place in places], spelling, (shapes or {}).get(number, {}))
        read.read()
        marks[:, places] = read.marks
        for kind, found in enumerate(read.looks):
            looks[kind].extend(look.at(places) for look in found if look.place >= told and look.first < look.stop)
    rng = np.random.default_rng(seed)
    table = np.zeros((LOOKS, max(PLACES), 4), np.int32)
    for kind, found in enumerate(looks):
        for index, chosen in enumerate(sorted(rng.permutation(len(found))[: PLACES[kind]])):
            look = found[chosen]
            table[kind, index] = look.place, look.first, look.stop, look.mark
    return table, marks


@dataclass(frozen=True)
class _Tool:
    start: int
    stop: int
    name: tuple[int, ...]
    words: frozenset[int]


class _Conversation:
    """A conversation, read once from left to right."""

    def __init__(self, tokens: Sequence[int], spelling: Spelling, shapes: Mapping[tuple[int, ...], int]) -> None:
        self.marks = np.zeros((MARKS, len(tokens)), np.int32)
        self.looks: Found = tuple([] for _ in range(LOOKS))
        self._tokens, self._stop = tokens, len(tokens)
        self._spelling, self._words = spelling, whole_words(tokens, spelling)
        self._tools: list[_Tool] = []
        self._said: list[tuple[int, int]] = []  # by the user and by tools
        self._told = (0, 0)  # by the system
        self._owner: tuple[int, int] | None = None  # where what is being written is declared
        self._first = True  # of a list: the others follow the one before them, and no label
        self._shapes, self._shape = shapes, 0  # what is being written looks like that

    def read(self) -> None:
        place = 0
        while place < self._stop:
            token = self._tokens[place]
            if token == TOOL:
                place = self._declaration(place)
            elif token == TURN and self._are(place + 1, self._spelling.user):
                place = self._request(place + 1 + len(self._spelling.user))
            elif token == TURN and self._are(place + 1, self._spelling.system):
                place, self._told = place + 1, (place, self._end(place, TURN_END))
            elif token == TURN and self._are(place + 1, (*self._spelling.model, self._spelling.open)):
                place = self._answered(place + 1 + len(self._spelling.model))
            elif token == RESPONSE and self._end(place, RESPONSE_END) < self._stop:
                self._said.append((place, self._end(place, RESPONSE_END)))
                place = self._said[-1][1]
            elif token == CALL and self._tools and self._said:
                place = self._called(place)
            else:
                place += 1

    def _declaration(self, place: int) -> int:
        stop = self._end(place, TOOL_END)
        start, end = self._name(place)
        words = self._words[start:stop]
        self._tools.append(_Tool(start, stop, tuple(self._tokens[start:end]), frozenset(words) - {0}))
        self.marks[SAME_WORD, start:stop] = words
        self.marks[_DECLARED_OF, start:stop] = _numbers([len(self._tools) - 1])
        inside = range(end - 1, min(stop + 1, self._stop))
        self.looks[NAME].extend(Look(at, start, end) for at in inside)
        self.looks[NAME_BEGINS].extend(Look(at, start, start + 1) for at in inside if start < end)
        return stop

    def _request(self, first: int) -> int:
        """What is in no declaration looks at the start, where nothing is."""
        stop = self._end(first, TURN_END)
        self._said.append((first, stop))
        for at in range(first, stop):
            word = self._words[at]
            owners = [index for index, tool in enumerate(self._tools) if word in tool.words] if word else []
            if not self._tools or not self._spelling.kind[self._tokens[at]]:
                continue
            self.marks[_SAID_OF, at] = _numbers(owners)
            if not owners:  # nor does a word that has not ended yet
                self.looks[SAME_WORD].append(Look(at, 0, 1))
                continue
            self.looks[SAME_WORD].append(Look(at, self._tools[0].start, self._tools[-1].stop, word))
            if len(owners) < max(2, len(self._tools)):  # what all have in common leads nowhere
                self.marks[LED_HERE, at] = sum(_bit(owner) for owner in owners)
        return stop

    def _called(self, place: int) -> int:
        start, end = self._name(place)
        name = tuple(self._tokens[start:end])
        number = next((number for number, tool in enumerate(self._tools) if tool.name == name), None)
        asked = next((said for said in reversed(self._said) if self._tokens[said[0]] != RESPONSE), self._said[0])
        if number is None:
            return end
        tool = self._tools[number]
        if bit := _bit(number):
            self.looks[LED_HERE].extend(Look(at, *asked, -bit) for at in range(start - 1, end - 1))
        declared = tool.start - start
        known = end + declared  # where a declaration goes on behind its name: only there is it known whose it is
        self.marks[_CALLED_OF, start - 1 : end - 1] = _numbers([number])
        self.looks[CHOSEN].extend(Look(at, known, tool.stop) for at in range(start - 1, end - 1))
        self.looks[WRITTEN].extend(
            Look(at - 1, at + declared, at + declared + 1) for at in range(start + 1, min(end + 1, self._stop))
        )
        self.looks[NAME].extend(Look(at, start, end) for at in range(end, self._end(end, CALL_END)))
        for part in parts(self._tokens, end, self._stop, self._spelling, QUOTE):
            self._copied(part, (tool.start, tool.stop), (self._spelling.colon, self._spelling.open))
        return end

    def _answered(self, place: int) -> int:
        """In JSON."""
        spelling = self._spelling
        for part in parts(self._tokens, place, self._stop, spelling, spelling.mark):
            self._copied(part, self._told, (spelling.mark, spelling.colon, spelling.open))
        return place

    def _copied(self, part: Part, declared: tuple[int, int], follow: Sequence[int]) -> None:
        """Each of the part's tokens is looked up where it was declared or said, if that is in one place only.

        What is declared is known by what follows it.
        """
        tokens = self._tokens[part.start : part.stop]
        if part.key:
            found = self._places([*tokens, *follow], *declared)
            self._owner = (found[0], self._braced(found[0], declared[1])) if len(found) == 1 else None
            self._first = True
            self._shape = _numbers([self._shapes[tuple(tokens)]]) if tuple(tokens) in self._shapes else 0
            if self._owner:
                self._begins(KEY_BEGINS, part, found[0])
                self._goes_on(KEY, part, found[0], range(len(tokens)))
            return
        if self._owner:
            self.looks[DECLARED].append(Look(part.start - 1, *self._owner))
            self.marks[_SHAPE_WANTED, part.start - 1] = self._shape
        found = [
            at
            for first, stop in self._said
            for at in self._places(tokens, first, stop)
            if self._whole(at, at + len(tokens))
        ]
        if len(found) == 1:
            self._value(part, found[0])
        self._first = False

    def _value(self, part: Part, value: int) -> None:
        """What is said in this place is written: one head begins it where its label is behind it, else another one.

        The one that has nothing to do looks at the start. Both would ask for it in other words.
        """
        label = None
        if self._owner and self._first:
            label = self._label(part, value, self._owner[0])
            self._labelled(part, value, label)
        behind = label is not None and label > value
        self._ended(part, value)
        self._begins(VALUE_BEFORE, part, value if behind else 0)
        self._begins(VALUE_BEGINS, part, 0 if behind else value)
        end = part.stop - part.start + 1  # and what comes behind it: there it ends
        self._goes_on(VALUE, part, value, range(1 if behind else 0, end))

    def _begins(self, look: int, part: Part, at: int) -> None:
        self.looks[look].append(Look(part.start - 1, at, at + 1))

    def _goes_on(self, look: int, part: Part, at: int, of: range) -> None:
        self.looks[look].extend(Look(part.start - 1 + index, at + index, at + index + 1) for index in of)

    def _labelled(self, part: Part, value: int, label: int | None) -> None:
        """Whoever of a value and its label comes later looks at the other; and where it is to be written, at the label.

        A label that is said before its value looks at the start, and a value that has no label before it looks at
        itself: or else each would take what stands before it, which belongs to another. Where no label was said, who
        writes looks at itself: or else it would take another's, and then the value of that.
        """
        if label is None:
            self.looks[LABELLED].append(_itself(value))
            if self._owner and self._words_of(self._owner[0]):
                self.looks[LABEL].append(_itself(part.start - 1))
            return
        before = label < value
        self.looks[LABELLED].append(Look(value, label, label + 1) if before else _itself(value))
        self.looks[LABELS].append(Look(label, 0, 1) if before else Look(label, value, value + 1))
        self.looks[LABEL].append(Look(part.start - 1, label, label + 1))

    def _label(self, part: Part, value: int, declared: int) -> int | None:
        """Where its label ends: most of its words, the last among them; of several, the nearest."""
        label = self._words_of(declared)
        first, stop = next((first, stop) for first, stop in self._said if first <= value < stop)
        before = range(value - 1, max(value - _NEAR, first), -1)
        behind = range(value + part.stop - part.start, min(value + _NEAR, stop))
        near = [at for at in (*before, *behind) if label and self._words[at] == label[-1]]
        return max(near, key=lambda at: self._said_of(label, at), default=None)

    def _words_of(self, declared: int) -> list[int]:
        """A name's that is declared here; none if it has no word, but a letter."""
        return [*filter(None, self._words[declared : self._end(declared, self._spelling.colon)])]

    def _said_of(self, label: Sequence[int], last: int) -> int:
        """How many words of a label are said up to here."""
        said = [*filter(None, self._words[max(last - _NEAR, 0) : last + 1])]
        together = zip(reversed(label), reversed(said), strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], together))

    def _ended(self, part: Part, value: int) -> None:
        """A value that is said looks back at its beginning, and who writes it at what stands behind it."""
        behind = value + part.stop - part.start
        self.marks[_SHAPE_SAID, behind] = self._shape
        self.looks[WITHIN].extend(Look(at, value, value + 1) for at in range(value + 1, behind + 1))
        self.looks[BEHIND].extend(Look(at - 1, behind, behind + 1) for at in range(part.start, part.stop + 1))

    def _braced(self, start: int, stop: int) -> int:
        """Behind the brace that ends what begins with the first one from here."""
        depth, quoted = 0, False
        for at in range(start, stop):
            token = self._tokens[at]
            quoted ^= token in {QUOTE, self._spelling.mark}
            depth += 0 if quoted else (token == self._spelling.open) - (token == self._spelling.close)
            if token == self._spelling.close and not quoted and depth <= 0:
                return at + 1
        return stop

    def _places(self, tokens: Sequence[int], first: int, stop: int) -> list[int]:
        wanted = tuple(tokens)
        return [
            at
            for at in range(first, stop - len(wanted) + 1)
            if self._tokens[at] == wanted[0] and tuple(self._tokens[at : at + len(wanted)]) == wanted
        ]

    def _whole(self, start: int, stop: int) -> bool:
        """Whether it is not a part of a longer word or number."""
        kind = self._spelling.kind
        return not any(
            kind[self._tokens[at]] and kind[self._tokens[at]] == kind[self._tokens[at - 1]] for at in (start, stop)
        )

    def _name(self, place: int) -> tuple[int, int]:
        """Where a name begins, behind the first colon, and where it ends."""
        start = min(self._end(place, self._spelling.colon) + 1, self._stop)
        return start, self._end(start, self._spelling.open)

    def _end(self, place: int, token: int) -> int:
        return next((at for at in range(place, self._stop) if self._tokens[at] == token), self._stop)

    def _are(self, place: int, tokens: tuple[int, ...]) -> bool:
        return tuple(self._tokens[place : place + len(tokens)]) == tokens


def _itself(place: int) -> Look:
    return Look(place, place, place + 1)


def _bit(tool: int) -> int:
    """Of a mark that several tools may share; none beyond thirty: there are no more bits."""
    return 1 << tool if tool < _BITS else 0


def _numbers(of: Sequence[int]) -> int:
    """As bits, the first of which is for none; 0 where there are more than numbers."""
    if any(each + 1 >= NUMBERS for each in of):
        return 0
    return sum(1 << each + 1 for each in of) or 1


def _conversations(segments: Sequence[int]) -> Iterator[tuple[int, list[int], int]]:
    """Each one's number and places, with one of its asides; and how many of these were there with an aside before."""
    for number, conversation in groupby(range(len(segments)), lambda place: segments[place] // ASIDES):
        asides: dict[int, list[int]] = {}
        for place in conversation:
            asides.setdefault(segments[place], []).append(place)
        shared = asides.pop(number * ASIDES, [])
        for index, places in enumerate(asides.values() or [[]]):
            yield number, shared + places, len(shared) if index else 0

"""``PastAnswers``: what was said before in one scope, and what followed the last time that a text ended like this."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from langchain_gemma_jax.engine.drafting.proposal import NOTHING, Proposal, odds_behind

_BREAK = -1  # between answers; no token has this id
_NOWHERE = -1


@dataclass(frozen=True)
class Found:
    """Places before which the end of a context was said, the newest first, and how long a part of it."""

    places: tuple[int, ...] = ()
    match: int = 0


NOT_FOUND = Found()


class PastAnswers:
    """The latest answers of a scope, up to ``most_tokens``, and an index of them by what precedes each token.

        >>> past = PastAnswers()
        >>> past.add([1, 2], [3, 4, 5, 6])
        >>> past.proposal(past.find([9, 9, 2, 3, 4]), 7).tokens
        (5, 6)
        >>> past.proposal(past.find([9, 9, 2, 3, 9]), 7).tokens
        ()

    The tokens lie in a ring, in which new answers overwrite the oldest. For each length in ``GRAMS`` there is a table
    of chains: a place is linked to the earlier one whose preceding tokens have the same hash. A place is used only if
    the tokens themselves are equal, so a chain that was overwritten is a longer search, never a wrong one. Of the
    places that match longest, the tokens that most of them go on with are proposed, and of as many the newest ones.

    All memory is in flat arrays of 4 bytes a number: ``nbytes`` counts it.
    """

    GRAMS = (8, 3, 1)  # tokens before a place, by which it is found; the longest first
    MATCHES = (32, 16, 8, 3, 1)  # lengths of a match that are distinguished
    TRIES = 12  # places of a chain that are looked at ...
    VOTES = 4  # ... and those of them that are counted
    LEAD = 16  # tokens of a prompt that are kept before its answer, so that the beginning of an answer is found
    BUCKETS = (256, 2048, 16_384)  # of a table, as it grows

    def __init__(self, most_tokens: int = 131_072) -> None:
        self._most = most_tokens
        self._tokens = array("i")
        self._earlier = tuple(array("i") for _ in self.GRAMS)  # by place: the earlier place of its chain
        self._latest = tuple(array("i", [_NOWHERE]) * self.BUCKETS[0] for _ in self.GRAMS)  # by hash
        self._next = 0  # the place of the next token

    def __len__(self) -> int:
        return len(self._tokens)

    @property
    def nbytes(self) -> int:
        """The bytes of its memory."""
        return sum(map(sys.getsizeof, (self._tokens, *self._earlier, *self._latest)))

    @property
    def answers(self) -> list[array[int]]:
        """The answers that are there, oldest first, each with the end of its prompt; the oldest may be cut."""
        whole = self.tokens
        ends = [place for place, token in enumerate(whole) if token == _BREAK]
        starts = [0, *(end + 1 for end in ends)]
        return [found for start, end in zip(starts, [*ends, len(whole)], strict=True) if (found := whole[start:end])]

    @property
    def tokens(self) -> array[int]:
        """All tokens, oldest first, with a break before each answer: ``of`` makes the same answers of them."""
        return self._tokens[self._next :] + self._tokens[: self._next]

    @classmethod
    def of(cls, tokens: array[int]) -> PastAnswers:
        """Return the answers that ``tokens`` was taken from."""
        past, answer = cls(), array("i")
        for token in (*tokens, _BREAK):
            if token != _BREAK:
                answer.append(token)
            elif answer:
                past.add((), answer)
                answer = array("i")
        return past

    def add(self, prompt: Sequence[int], answer: Sequence[int]) -> None:
        """Add an answer. Of the prompt, the last ``LEAD`` tokens are kept."""
        tokens = [_BREAK, *prompt[max(0, len(prompt) - self.LEAD) :], *answer][-(self._most - 1) :]
        before = [_BREAK] * max(self.GRAMS)
        for token in tokens:
            self._append(token, before)
            before = [*before[1:], token]
        if len(self._tokens) == self._most:
            self._tokens[self._next] = _BREAK  # what is older begins behind it

    def find(self, context: Sequence[int]) -> Found:
        """Return the places before which the longest part of this context's end was said, newest first."""
        end = array("i", context[-self.MATCHES[0] :])
        for gram, latest, earlier in zip(self.GRAMS, self._latest, self._earlier, strict=True):
            if len(end) < gram:
                continue
            place, found, best = latest[hash(tuple(end[-gram:])) & (len(latest) - 1)], list[int](), gram
            for _ in range(self.TRIES):
                if place == _NOWHERE:
                    break
                match = self._match(place, end, gram)
                if match > best:
                    found, best = [], match
                if match == best and len(found) < self.VOTES and place not in found:
                    found.append(place)
                place = earlier[place]
            if found:
                return Found(tuple(found), best)
        return NOT_FOUND

    def _match(self, place: int, end: array[int], gram: int) -> int:
        """Return how long an end stands before a place, of the lengths from ``gram`` on; 0 if it does not."""
        tokens = self._tokens
        if tokens[place - gram : place] != end[-gram:] or tokens[place] == _BREAK:
            return 0
        for length in self.MATCHES:
            if gram < length <= len(end) and tokens[place - length : place] == end[-length:]:
                return length
        return gram

    def follow(self, before: Found, more: Sequence[int]) -> Found:
        """Return those of the places that went on like this, and the places behind it there."""
        tokens, count, size = self._tokens, len(more), len(self._tokens)
        wanted = array("i", more)
        places = [
            place + count
            for place in before.places
            if place + count < size and tokens[place : place + count] == wanted and tokens[place + count] != _BREAK
        ]
        return Found(tuple(places), before.match + count) if places else NOT_FOUND

    def proposal(self, now: Found, most: int) -> Proposal:
        """Return up to ``most`` tokens that followed these places."""
        tokens = self._tokens
        ways = [tokens[place : place + most] for place in now.places]
        if not ways:
            return NOTHING
        if ways.count(ways[0]) < len(ways):
            return _voted(ways, now.match)
        way = ways[0].tolist()
        count = way.index(_BREAK) if _BREAK in way else len(way)
        return Proposal(tuple(way[:count]), odds_behind(now.match, count))

    def _append(self, token: int, before: list[int]) -> None:
        place = self._next
        if place == len(self._tokens):
            self._tokens.append(token)
            for chain in self._earlier:
                chain.append(_NOWHERE)
            if len(self._tokens) > 2 * len(self._latest[0]) and len(self._latest[0]) < self.BUCKETS[-1]:
                self._grow()
        else:
            self._tokens[place] = token
        if token != _BREAK:
            self._link(place, before)
        self._next = (place + 1) % self._most

    def _link(self, place: int, before: list[int]) -> None:
        for gram, latest, earlier in zip(self.GRAMS, self._latest, self._earlier, strict=True):
            if before[-gram] == _BREAK:
                continue  # fewer tokens of its answer precede it
            bucket = hash(tuple(before[-gram:])) & (len(latest) - 1)
            earlier[place], latest[bucket] = latest[bucket], place

    def _grow(self) -> None:
        """Make the tables larger, and link all places again. The ring is not full yet, so it begins at 0."""
        size = next(each for each in self.BUCKETS if each > len(self._latest[0]))
        self._latest = tuple(array("i", [_NOWHERE]) * size for _ in self.GRAMS)
        longest = max(self.GRAMS)
        padded = [_BREAK] * longest + self._tokens.tolist()
        for place in range(len(self._tokens) - 1):  # the last one is linked by who appended it
            if padded[place + longest] != _BREAK:
                self._link(place, padded[place : place + longest])


def _voted(ways: list[array[int]], match: int) -> Proposal:
    """Return the tokens that most of some ways say, one after the other; ways that say something else are left."""
    tokens, odds = list[int](), list[float]()
    for at in range(max(map(len, ways))):
        votes = [way[at] if at < len(way) else _BREAK for way in ways]
        token = max(votes, key=votes.count)  # the newest of those with as many votes
        if token == _BREAK:
            break
        length, count = match + at, votes.count(token)
        tokens.append(token)
        odds.append(count / len(votes) * length / (length + 2))
        if count < len(votes):
            ways = [way for way, other in zip(ways, votes, strict=True) if other == token]
    return Proposal(tuple(tokens), tuple(odds))

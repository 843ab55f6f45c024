"""Finds stop strings in text that comes in pieces, and never shows a character of one."""

from __future__ import annotations

from collections.abc import Sequence


class StopStrings:
    """Decides which text can be shown now.

    Text that may turn out to be the beginning of a stop string is held back until that is known, and
    not a character more than that:

        >>> stops = StopStrings(["</tool>"])
        >>> stops.push("a < b, </to")
        ('a < b, ', None)
        >>> stops.push("ol> c")
        ('', '</tool>')

    The stop that is complete first is the one that is found, because generation ends there: no token is
    made to see whether a longer one would follow. Of several that end at the same character, it is
    the longest. So the result does not depend on how the text was split.

    The time is linear in the text, whatever the stops are: this is the automaton of Aho and Corasick.
    Its states are the prefixes of the stops. It is in the state of the longest one that the text ends with,
    and that prefix is what has to be held back.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        if "" in stops:
            raise ValueError("expected stop strings of at least one character, found an empty one")
        # One that has another inside, before its end, can never be the first that is complete. Without those, a
        # prefix ends with a stop only if it is one.
        possible = [stop for stop in dict.fromkeys(stops) if not any(other in stop[:-1] for other in stops)]
        self._next: list[dict[str, int]] = [{}]  # by state: what a character leads to
        self._depth = [0]  # length of the prefix
        self._path = [""]  # a stop that begins with the prefix
        self._complete: list[str | None] = [None]  # the stop that the prefix is
        self._shorter = [0]  # state of the longest prefix that this one ends with
        for stop in possible:
            self._add(stop)
        self._link()
        self._state = 0
        self._found: str | None = None

    @property
    def held(self) -> str:
        """What is held back now."""
        return self._path[self._state][: self._depth[self._state]]

    def push(self, text: str) -> tuple[str, str | None]:
        """The text that can be shown now, and the stop string that was found.

        Once one was found no more text is shown, and each call names it again.
        """
        if self._found is not None:
            return "", self._found
        before = state = self._state
        for count, character in enumerate(text, 1):
            state = self._step(state, character)
            if (stop := self._complete[state]) is not None:
                self._state, self._found = 0, stop
                return self._first(before, text, self._depth[before] + count - len(stop)), stop
        self._state = state
        return self._first(before, text, self._depth[before] + len(text) - self._depth[state]), None

    def finish(self) -> str:
        """The text ended without a stop: what was held back."""
        held, self._state = self.held, 0
        return held

    def _first(self, state: int, text: str, count: int) -> str:
        """The first characters of what was held back in a state and the text behind it."""
        # The held text is not stored: adding to it character by character would take quadratic time.
        held = self._depth[state]
        path = self._path[state]
        return path[:count] if count <= held else path[:held] + text[: count - held]

    def _step(self, state: int, character: str) -> int:
        while (following := self._next[state].get(character)) is None:
            if state == 0:
                return 0
            state = self._shorter[state]
        return following

    def _add(self, stop: str) -> None:
        state = 0
        for depth, character in enumerate(stop, 1):
            following = self._next[state].get(character)
            if following is None:
                following = self._next[state][character] = len(self._next)
                self._next.append({})
                self._depth.append(depth)
                self._path.append(stop)
                self._complete.append(None)
                self._shorter.append(0)
            state = following
        self._complete[state] = stop

    def _link(self) -> None:
        """Fill in ``_shorter``, the short prefixes first."""
        todo = list(self._next[0].values())
        for state in todo:
            for character, longer in self._next[state].items():
                self._shorter[longer] = self._step(self._shorter[state], character)
                todo.append(longer)

"""``StopStrings``: finds stop strings in text that comes in pieces, and holds back every character of them."""

from __future__ import annotations

from collections.abc import Sequence


class StopStrings:
    """Decides which text can be passed on now.

    Text that may be the beginning of a stop string is held back until that is decided, and not one character more:

        >>> stops = StopStrings(["</tool>"])
        >>> stops.push("a < b, </to")
        ('a < b, ', None)
        >>> stops.push("ol> c")
        ('', '</tool>')

    The stop that is complete first is the one that is found, because generation ends there: no further token is
    generated to check for a longer one. Of several that end at the same character, the longest is found. So the result
    does not depend on how the text was split.

    The time is linear in the text for any stops: this is the automaton of Aho and Corasick. Its states are the prefixes
    of the stops. The current state is the longest prefix that the text ends with, and that prefix is held back.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        if "" in stops:
            raise ValueError("expected stop strings of at least one character, found an empty one")
        # A stop that contains another one before its end can never be complete first. Without those, a prefix ends with
        # a stop only if it is one.
        possible = [stop for stop in dict.fromkeys(stops) if not any(other in stop[:-1] for other in stops)]
        self._next: list[dict[str, int]] = [{}]  # by state: the next state for each character
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
        """The text that is held back now."""
        return self._path[self._state][: self._depth[self._state]]

    def push(self, text: str) -> tuple[str, str | None]:
        """Return the text that can be passed on now, and the stop string that was found, or None.

        After a stop was found, no more text is passed on, and each call returns the same stop.
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
        """End the text without a stop, and return the text that was held back."""
        held, self._state = self.held, 0
        return held

    def _first(self, state: int, text: str, count: int) -> str:
        """Return the first characters of the text held back in a state and the text after it."""
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

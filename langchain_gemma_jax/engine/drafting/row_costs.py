"""``RowCosts``: what checking several tokens at once costs, beside generating one, as a model's own work shows it."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from math import inf


class RowCosts:
    """The measured cost of passes through a model, by their rows: the newest token and the drafted ones.

        >>> costs = RowCosts()
        >>> round(costs.of(8), 2)  # not measured yet
        2.4
        >>> for _ in range(3):
        ...     costs.note(1, 0.010)
        ...     costs.note(8, 0.016)
        >>> costs.of(8), round(costs.of(4), 2)
        (1.6, 1.26)

    The cost of one row is 1. From ``ENOUGH`` passes on, the time counts that a third of the latest ``KEPT`` fall short
    of: a program's first runs take longer, and so do passes beside which the machine does something else. The shortest
    do not count either: where the host hands a step over before the last one has ended, a long time and a short one
    follow each other. Fewer rows cost at most what more rows do, and no number of rows more than as many passes of one.
    What lies between measured numbers of rows is interpolated. The guesses of a drafter are counted in the same unit,
    by their number.
    """

    KEPT = 15
    ENOUGH = 3
    EACH_ROW = 0.2  # of a pass of one row, for each further one: a guess, until it is measured
    EACH_GUESS = 0.1  # of a drafter's
    RENEWED = 400  # chains, after which passes of one row are measured again: the machine may have become faster

    def __init__(self) -> None:
        self._seconds: dict[int, deque[float]] = {}
        self._measured: dict[int, float] = {}  # by rows: seconds
        self._known: dict[int, float] = {}  # by rows: the measured cost; empty until one row was measured
        self._costs: dict[int, float] = {}  # all that were asked for, since the last pass
        self._chains: dict[int, deque[float]] = {}  # by the number of guesses: seconds
        self._since_one = 0  # chains since the last pass of one row

    @property
    def know_one(self) -> bool:
        """True if passes of one row were measured, and lately: only beside them it shows what a drafter gains."""
        return 1 in self._measured

    def note_chain(self, count: int, seconds: float) -> None:
        """Note the seconds in which a drafter made so many guesses."""
        self._chains.setdefault(count, deque(maxlen=self.KEPT)).append(seconds)
        self._since_one += 1
        if self._since_one >= self.RENEWED:
            self._since_one = 0
            self._measured.pop(1, None)
            self._seconds.pop(1, None)

    def of_chain(self, count: int) -> float:
        """Return the cost of a drafter's guesses, as a multiple of a pass of one row."""
        latest, one = self._chains.get(count, ()), self._measured.get(1, 0.0)
        if len(latest) < self.ENOUGH or one <= 0:
            return self.EACH_GUESS * count
        return _usual(latest) / one

    def note(self, rows: int, seconds: float) -> None:
        """Note the seconds of a pass, from the result before it to its own."""
        latest = self._seconds.setdefault(rows, deque(maxlen=self.KEPT))
        if rows == 1:
            self._since_one = 0
        latest.append(seconds)
        if len(latest) < self.ENOUGH:
            return
        found = self._measured
        found[rows] = _usual(latest)
        one = found.get(1, 0.0)
        self._known, self._costs = {}, {}
        least = inf
        for each in sorted(found, reverse=True) if one > 0 else ():
            least = self._known[each] = max(1.0, min(least, found[each] / one, float(each)))

    def of(self, rows: int) -> float:
        """Return the cost of a pass of so many rows, as a multiple of one of a single row."""
        found = self._costs.get(rows)
        if found is None:
            found = self._costs[rows] = self._reckoned(rows)
        return found

    def _reckoned(self, rows: int) -> float:
        if rows in self._known:
            return self._known[rows]
        below = max((each for each in self._known if each < rows), default=1)
        above = min((each for each in self._known if each > rows), default=None)
        start = self._known.get(below, 1.0)
        if above is None:
            # As steep as up to there; where nothing is measured, as guessed.
            steep = (start - 1) / (below - 1) if below > 1 else self.EACH_ROW
            return start + steep * (rows - below)
        return start + (self._known[above] - start) * (rows - below) / (above - below)


def _usual(seconds: Collection[float]) -> float:
    """Return the time that a third of these fall short of; of a few, the second shortest."""
    return sorted(seconds)[max(1, len(seconds) // 3)]

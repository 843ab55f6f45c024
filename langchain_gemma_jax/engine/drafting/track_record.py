"""``TrackRecord``: how far a source's guesses of its own odds can be trusted, by what came of its proposals."""

from __future__ import annotations


class TrackRecord:
    """The accepted tokens of a source's drafts beside those that it expected, in about its last ``MEMORY`` tokens.

        >>> record = TrackRecord()
        >>> record.add(proposed=7, expected=3.0, accepted=0)
        >>> round(record.trust, 2)
        0.4

    Odds are multiplied with ``trust``. It starts at 1, as if ``WEIGHT`` expected tokens had been right.
    """

    MEMORY = 32
    WEIGHT = 2.0
    MOST = 2.0

    def __init__(self, trust: float = 1.0) -> None:
        self._start = trust
        self._expected = self._accepted = 0.0

    @property
    def trust(self) -> float:
        """The factor for the odds of its next proposal."""
        return min(self.MOST, (self.WEIGHT * self._start + self._accepted) / (self.WEIGHT + self._expected))

    def forget(self) -> None:
        """Begin again, without what was added."""
        self._start, self._expected, self._accepted = 1.0, 0.0, 0.0

    def add(self, proposed: int, expected: float, accepted: int) -> None:
        """Add a draft: its tokens, how many it expected to be accepted, and how many were."""
        kept = (1 - 1 / self.MEMORY) ** proposed
        self._expected = kept * self._expected + expected
        self._accepted = kept * self._accepted + accepted

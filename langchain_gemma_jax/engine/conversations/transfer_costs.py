"""What things take here, measured: moving a byte, reading a token."""

from __future__ import annotations

from collections import deque
from statistics import median

LATEST = 9


class Rate:
    """Seconds for one of something: the median of the latest, so that one odd measurement decides nothing."""

    def __init__(self) -> None:
        self._seen: deque[float] = deque(maxlen=LATEST)

    def add(self, seconds: float, amount: int) -> None:
        if amount > 0:
            self._seen.append(seconds / amount)

    def seconds(self, amount: int) -> float | None:
        """Return the seconds that so many take. None: it was never measured."""
        return median(self._seen) * amount if self._seen else None


class TransferCosts:
    """How long moving conversations between one device and the host takes, as measured."""

    def __init__(self) -> None:
        self.to_host, self.to_device = Rate(), Rate()  # a byte

    def worth_keeping(self, nbytes: int, tokens: int, read: Rate) -> bool:
        """Whether a conversation of so many tokens comes back sooner from the host than by reading it again."""
        again, out, back = read.seconds(tokens), self.to_host.seconds(nbytes), self.to_device.seconds(nbytes)
        return again is not None and (out or 0.0) + (back or 0.0) < again

    def worth_fetching(self, nbytes: int, tokens: int, read: Rate) -> bool:
        """Whether moving it back is faster than reading so many tokens again."""
        again, back = read.seconds(tokens), self.to_device.seconds(nbytes)
        return tokens > 0 and (again is None or (back or 0.0) < again)


class DiskCosts:
    """How long it takes until a conversation from the disk is on the device, as measured, or guessed at first."""

    GUESS = 1 / 200e6  # seconds a byte, to begin with: slower than disks and digests are

    def __init__(self) -> None:
        self.from_disk = Rate()  # a byte

    def seconds(self, nbytes: int) -> float:
        """Return the seconds that so many bytes will take."""
        measured = self.from_disk.seconds(nbytes)
        return self.GUESS * nbytes if measured is None else measured

    def worth_keeping(self, nbytes: int, tokens: int, read: Rate) -> bool:
        """Whether a conversation of so many tokens comes back sooner from the disk than by reading it again."""
        again = read.seconds(tokens)
        return again is not None and self.seconds(nbytes) < again

    def worth_fetching(self, nbytes: int, tokens: int, read: Rate, elsewhere: float) -> bool:
        """Whether reading a file is faster than reading so many tokens again.

        Args:
            nbytes: of the file.
            tokens: that it saves.
            read: what a token takes here.
            elsewhere: the seconds a token that its writer took, for as long as nothing was read here.
        """
        again = read.seconds(tokens)
        return self.seconds(nbytes) < (elsewhere * tokens if again is None else again)

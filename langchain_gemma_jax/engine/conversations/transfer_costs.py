"""Measured costs on this machine: the time to move a byte, and to read a token."""

from __future__ import annotations

from collections import deque
from statistics import median

LATEST = 9


class Rate:
    """Seconds for one unit: the median of the latest measurements, so that a single outlier does not matter."""

    def __init__(self) -> None:
        self._seen: deque[float] = deque(maxlen=LATEST)

    def add(self, seconds: float, amount: int) -> None:
        if amount > 0:
            self._seen.append(seconds / amount)

    def seconds(self, amount: int) -> float | None:
        """Return the seconds for this number of units. None: never measured."""
        return median(self._seen) * amount if self._seen else None


class TransferCosts:
    """Measured costs of moving conversations between a device and the host."""

    def __init__(self) -> None:
        self.to_host, self.to_device = Rate(), Rate()  # per byte

    def worth_keeping(self, nbytes: int, tokens: int, read: Rate) -> bool:
        """Return True if parking and fetching a conversation is faster than reading its tokens again."""
        again, out, back = read.seconds(tokens), self.to_host.seconds(nbytes), self.to_device.seconds(nbytes)
        return again is not None and (out or 0.0) + (back or 0.0) < again

    def worth_fetching(self, nbytes: int, tokens: int, read: Rate) -> bool:
        """Return True if fetching it is faster than reading this number of tokens again."""
        again, back = read.seconds(tokens), self.to_device.seconds(nbytes)
        return tokens > 0 and (again is None or (back or 0.0) < again)


SLOW_DISK = 1 / 200e6  # seconds per byte, with digests or decryption: slower than most
SLOW_NETWORK = 1 / 80e6


class FetchCosts:
    """The cost of bringing a conversation from the disk or a peer to the device: measured, or a guess at first."""

    def __init__(self, guess: float = SLOW_DISK) -> None:
        """``guess``: seconds per byte until something was measured."""
        self._guess = guess
        self.measured = Rate()  # per byte

    def seconds(self, nbytes: int) -> float:
        """Return the estimated seconds for this number of bytes."""
        measured = self.measured.seconds(nbytes)
        return self._guess * nbytes if measured is None else measured

    def worth_keeping(self, nbytes: int, tokens: int, read: Rate) -> bool:
        """Return True if reading a conversation from disk is faster than reading its tokens again."""
        again = read.seconds(tokens)
        return again is not None and self.seconds(nbytes) < again

    def worth_fetching(self, nbytes: int, tokens: int, read: Rate, elsewhere: float) -> bool:
        """Return True if reading a file is faster than reading this number of tokens again.

        Args:
            nbytes: the bytes of the file.
            tokens: the tokens that it saves.
            read: the measured time to read a token here.
            elsewhere: seconds per token that the file's writer measured, used until there is a measurement here.
        """
        again = read.seconds(tokens)
        return self.seconds(nbytes) < (elsewhere * tokens if again is None else again)

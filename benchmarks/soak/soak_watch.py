"""Watch and judge a soak: memory, threads, descriptors, foreign words, changed answers."""

from __future__ import annotations

import os
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

SECONDS = 2.0  # between two looks
SETTLED = 5.0  # minutes after which memory has to be flat ...
SHORT_SETTLED = 0.6  # ... or this share of a run that is shorter than that
MOST_GROWTH = 1.0  # MiB a minute
_PAIRED = 240  # samples that are paired at most
_SHOWN = 10  # findings of a kind that are told in full


@dataclass(frozen=True)
class Sample:
    """Everything that the process held at one moment."""

    minute: float
    rss: float  # MiB
    threads: int
    files: int

    @classmethod
    def now(cls, minute: float) -> Sample:
        """Sample this process, where Linux says."""
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        files = len(os.listdir("/proc/self/fd")) - 1  # noqa: PTH208  one of them is the list's own
        return cls(minute, pages * os.sysconf("SC_PAGE_SIZE") / 2**20, threading.active_count(), files)


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Return how fast values grow: the median of the slopes between all pairs, which a few outliers do not move.

    Less than two moments have none.
    """
    slopes = [
        (later - earlier) / (end - begin)
        for number, (begin, earlier) in enumerate(points)
        for end, later in points[number + 1 :]
        if end > begin
    ]
    return median(slopes) if slopes else 0.0


def growth(samples: Sequence[Sample], minutes: float) -> tuple[float, float]:
    """From which minute on memory has to be flat, and by how many MiB a minute it grew after that.

    The process's memory rises and falls with the models that come and go. Pairs in which it has the same ones are the
    most, so the median is theirs.
    """
    since = SETTLED if minutes > SETTLED / SHORT_SETTLED else minutes * SHORT_SETTLED
    after = [sample for sample in samples if sample.minute >= since]
    some = after[:: -(-len(after) // _PAIRED) or 1]
    return since, slope([(sample.minute, sample.rss) for sample in some])


class Secrets:
    """A word for each tenant that must be seen by that tenant alone, and in no log and no file at all."""

    def __init__(self, words: Mapping[str, str]) -> None:
        """``words``: a tenant's scope, and what stands for its secrets."""
        self.words = words
        self._longest = max(len(word.encode()) for word in words.values())
        self._read: dict[Path, int] = {}

    def foreign(self, text: str, scope: str) -> list[str]:
        """The scopes of others whose secret is in a text that this scope is given."""
        return [other for other, word in self.words.items() if other != scope and word in text]

    def in_bytes(self, data: bytes) -> list[str]:
        """The scopes whose secret is in there."""
        return [scope for scope, word in self.words.items() if word.encode() in data]

    def in_log(self, file: Path) -> list[str]:
        """The same for what was added to a file since the last look, and a little of what was there."""
        start = max(0, self._read.get(file, 0) - self._longest)
        with file.open("rb") as opened:
            opened.seek(start)
            data = opened.read()
        self._read[file] = start + len(data)
        return self.in_bytes(data)

    def in_folder(self, folder: Path) -> Iterator[str]:
        """Return what is found in the files of a folder, and in their names."""
        for file in sorted(folder.rglob("*")):
            found = self.in_bytes(os.fsencode(file.relative_to(folder)))
            try:
                found += self.in_bytes(file.read_bytes()) if file.is_file() else []
            except OSError:  # deleted meanwhile
                continue
            yield from (f"{scope}: {file}" for scope in found)


@dataclass
class Findings:
    """Findings of the traffic. Any thread may add to it."""

    secrets: Secrets
    requests: int = 0
    errors: Counter[str] = field(default_factory=Counter)  # all, by type
    unexpected: list[str] = field(default_factory=list)
    leaks: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    compared: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def done(self, count: int = 1) -> None:
        """Count requests that ended well."""
        with self.lock:
            self.requests += count

    def failed(self, kind: str, scope: str, error: BaseException, expected: tuple[type[BaseException], ...]) -> None:
        """A request ended with an error: all that it says, and what it came from, is looked at."""
        told = "".join(traceback.format_exception(error))
        with self.lock:
            self.requests += 1
            self.errors[type(error).__name__] += 1
            if not isinstance(error, expected):
                self.unexpected.append(f"{kind}: {type(error).__name__}: {str(error)[:200]}")
        self.given(f"the error of {kind}", scope, told)

    def given(self, what: str, scope: str, text: str) -> None:
        """A tenant was given a text, which must hold no secret of another one."""
        if found := self.secrets.foreign(text, scope):
            with self.lock:
                self.leaks += [f"{what} of {scope} holds a secret of {other}" for other in found]

    def found(self, where: str, scopes: Iterable[str]) -> None:
        """Secrets that are where none may be."""
        with self.lock:
            self.leaks += [f"{where} holds a secret of {scope}" for scope in scopes]

    def compare(self, key: str, answer: str, cold: str) -> None:
        """A greedy answer, and what a process said that had read nothing before."""
        with self.lock:
            self.compared += 1
            if answer != cold:
                self.changed.append(f"{key}: {answer!r} where a cold run says {cold!r}")

    def line(self) -> str:
        """Say it in short."""
        with self.lock:
            errors = ", ".join(f"{count} {name}" for name, count in sorted(self.errors.items())) or "none"
            return f"{self.requests} requests, {self.compared} compared; errors: {errors}"


def watch(
    minutes: float,
    look: Callable[[float], Sample],
    minutely: Callable[[Sample], None],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> list[Sample]:
    """Look again and again for so many minutes, and say something each minute. Gives what was seen."""
    began, samples, said = clock(), [look(0.0)], 0
    while (minute := (clock() - began) / 60) < minutes:
        samples.append(look(minute))
        if int(minute) > said:
            said = int(minute)
            minutely(samples[-1])
        sleep(min(SECONDS, max(0.0, minutes * 60 - (clock() - began))))
    return samples


def verdict(samples: Sequence[Sample], start: Sample, end: Sample, found: Findings, minutes: float) -> tuple[str, bool]:
    """Say what is held and what is not, a line each; and whether all is."""
    since, grew = growth(samples, minutes)
    lines = [
        _line(grew < MOST_GROWTH, f"memory: {grew:+.2f} MiB a minute after minute {since:g} (below {MOST_GROWTH:g})"),
        _line(end.threads <= start.threads, f"threads: {end.threads} at the end, {start.threads} at the start"),
        _line(end.files <= start.files, f"descriptors: {end.files} at the end, {start.files} at the start"),
        _line(not found.leaks, f"secrets where they must not be: {len(found.leaks)}", found.leaks),
        _line(
            not found.changed and found.compared > 0,
            f"greedy answers unlike those of a cold run: {len(found.changed)} of {found.compared}",
            found.changed,
        ),
        _line(not found.unexpected, f"errors that nobody asked for: {len(found.unexpected)}", found.unexpected),
    ]
    return "\n".join(text for text, _ in lines), all(held for _, held in lines)


def _line(held: bool, text: str, details: Sequence[str] = ()) -> tuple[str, bool]:  # noqa: FBT001  that is its subject
    more = [f"    {detail}" for detail in details[:_SHOWN]]
    if len(details) > _SHOWN:
        more.append(f"    and {len(details) - _SHOWN} more")
    return "\n".join([f"{'held' if held else 'MISSED':6} {text}", *more]), held

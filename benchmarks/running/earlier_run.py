"""A bar beside the same one of an earlier run: whether it is worse or better, beyond what rounds differ by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from benchmarks.running.bars import Row

OldRow: TypeAlias = Mapping[str, Any]  # a ``Row`` as JSON has it
WORSE = 0.1  # of a ratio, which rounds of a busy machine differ by


def the_same_bar(rows: Sequence[OldRow], wanted: Row) -> OldRow | None:
    """Return the row of an earlier run that is about the same: of several about one work, the one with that rival."""
    alike = [row for row in rows if (row["work"], row["dtype"]) == (wanted.work, wanted.dtype)]
    if len(alike) > 1:
        rival = wanted.beside.partition(":")[0]
        alike = [row for row in alike if str(row["beside"]).partition(":")[0] == rival]
    return alike[0] if alike else None


def is_worse(old: OldRow, new: Row) -> bool:
    """Compare a bar with an earlier run: true if it is further away. One that was not measured twice tells nothing."""
    before = old["ratio"]
    if isinstance(before, float) and new.ratio is not None and new.bar.endswith("×"):
        least = new.bar.startswith("≥")
        return new.ratio < before * (1 - WORSE) if least else new.ratio > before * (1 + WORSE)
    return str(old["verdict"]).startswith("reached") and "missed" in new.verdict


def is_better(old: OldRow, new: Row) -> bool:
    """Compare as ``is_worse`` does, the other way round."""
    before = old["ratio"]
    if isinstance(before, float) and new.ratio is not None and new.bar.endswith("×"):
        least = new.bar.startswith("≥")
        return new.ratio > before * (1 + WORSE) if least else new.ratio < before * (1 - WORSE)
    return "missed" in str(old["verdict"]) and new.verdict.startswith("reached")


def changes(before: Sequence[OldRow], rows: Sequence[Row]) -> Iterator[str]:
    """Say what became worse, then what became better, then what is new or gone."""
    pairs = [(the_same_bar(before, row), row) for row in rows]
    yield from (f"**worse**: {moved(old, row)}" for old, row in pairs if old is not None and is_worse(old, row))
    yield from (f"better: {moved(old, row)}" for old, row in pairs if old is not None and is_better(old, row))
    yield from (f"new: {row.work}, {row.dtype}" for old, row in pairs if old is None)
    kept = [old for old, _ in pairs if old is not None]
    yield from (f"gone: {old['work']}, {old['dtype']}, beside {old['beside']}" for old in before if old not in kept)


def moved(old: OldRow, row: Row) -> str:
    """A bar, then and now."""
    then, now = [
        each if isinstance(each, str) else f"{each:.2f} ×"
        for each in (old["ratio"] or old["ours"], row.ratio or row.ours)
    ]
    return f"{row.work}, {row.dtype}: {then} before, now {now}"

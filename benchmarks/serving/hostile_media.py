"""Read crafted pictures, sounds and documents, and say what the worst of each kind takes, and those beside them.

    python benchmarks/serving/hostile_media.py                 2,000 of them
    python benchmarks/serving/hostile_media.py --count 200

Half are ordinary files that were damaged, half are made to take long or much. Four threads read them, while a fifth
one reads a small picture, a small sound and a small document in turns. The exit status is 1 where a file was neither
read nor refused by a typed error, where a process that draws is left, or where memory went beyond its budget. Needs
the extras media, audio and pdf, and Linux, whose /proc says what this process takes.
"""

from __future__ import annotations

import argparse
import io
import random
import struct
import sys
import threading
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.running.report import table
from langchain_gemma_jax.errors import MediaError
from langchain_gemma_jax.media.block_forms import MediaBlock, MediaKind
from langchain_gemma_jax.media.budget import drawing, memory
from langchain_gemma_jax.media.media_reader import MediaReader
from tests.media.damaged import damaged
from tests.media.samples import encoded, nested_pdf, pdf, pixels, png, scanned_jpeg, tone, wav

AT_ONCE = 4
BESIDE = 512 << 20  # bytes that this process may take beside the budget: encoded files, what was read, libraries


@dataclass
class Taken:
    """Results of the files of one kind."""

    seconds: list[float] = field(default_factory=list)
    read: int = 0
    refused: int = 0


Crafted = Callable[[random.Random], tuple[MediaKind, bytes]]


def scans(chance: random.Random) -> tuple[MediaKind, bytes]:
    """A JPEG whose scans say nothing."""
    return "image", scanned_jpeg(chance.choice((10, 100, 1_000, 5_000)), chance.choice((64, 512, 2_000, 4_000)))


def large(chance: random.Random) -> tuple[MediaKind, bytes]:
    """A small file of many pixels."""
    from PIL import Image

    side, mode = chance.choice((3_000, 5_000, 7_000, 8_000)), chance.choice(("1", "L", "LA", "P", "RGB", "RGBA"))
    out = io.BytesIO()
    Image.new(mode, (side, side)).save(out, chance.choice(("PNG", "WEBP")) if mode in {"RGB", "RGBA"} else "PNG")
    return "image", out.getvalue()


def pieces(chance: random.Random) -> tuple[MediaKind, bytes]:
    """A picture in very many pieces."""
    whole, count = encoded(), chance.choice((1_000, 50_000, 500_000))
    if chance.random() < 0.5:
        at = whole.index(b"IDAT") - 4
        empty = struct.pack(">I", 0) + b"IDAT" + struct.pack(">I", zlib.crc32(b"IDAT"))
        return "image", whole[:at] + empty * count + whole[at:]
    jpeg = encoded("JPEG")
    return "image", jpeg[:2] + b"\xff\xfe\0\2" * count + jpeg[2:]


def bomb(chance: random.Random) -> tuple[MediaKind, bytes]:
    """A picture that says more than it has."""
    return "image", png(
        chance.choice((10, 7_000, 50_000, 2**31 - 1)), chance.choice((10, 7_000, 2**31 - 1)), b"x" * 800
    )


def silence(chance: random.Random) -> tuple[MediaKind, bytes]:
    """A small file of a long sound."""
    import soundfile

    rate, seconds = chance.choice(
        ((8_000, 599), (44_100, 599), (96_000, 300), (191_990, 60), (192_000, 599), (1_000, 700))
    )
    channels, out = chance.choice((1, 2)), io.BytesIO()
    soundfile.write(out, np.zeros((rate * seconds, channels), np.int16), rate, format="FLAC")
    return "audio", out.getvalue()


def nested(chance: random.Random) -> tuple[MediaKind, bytes]:
    """A document that fills its page very often."""
    width, depth = chance.choice(((10, 2), (30, 2), (10, 3), (47, 3), (100, 4)))
    return "file", nested_pdf(width, depth)


CRAFTED: dict[str, Crafted] = {
    "JPEG of empty scans": scans,
    "image of many pixels": large,
    "image in many pieces": pieces,
    "image that lies": bomb,
    "silent sound": silence,
    "nested PDF": nested,
}
RARE = {"silent sound": 0.1, "nested PDF": 0.02, "image of many pixels": 0.2}  # those that take long when all is well


def files(count: int, chance: random.Random) -> Iterator[tuple[str, MediaKind, bytes]]:
    """Give so many, each with the name of its kind. Ones that take long are made a few times and read often."""
    known: dict[tuple[str, int], tuple[MediaKind, bytes]] = {}
    names, likely = list(CRAFTED), [RARE.get(name, 0.25) for name in CRAFTED]
    for number in range(count):
        if number % 2:
            kind, data = damaged(number)
            yield f"damaged {kind}", kind, data
            continue
        (name,) = chance.choices(names, likely)
        key = (name, chance.randrange(8))
        if key not in known:
            known[key] = CRAFTED[name](chance)
        yield name, *known[key]


class Reading:
    """The reading of files, and what each took."""

    def __init__(self) -> None:
        self.taken: dict[str, Taken] = defaultdict(Taken)
        self.wrong: list[str] = []
        self._reader, self._lock = MediaReader(), threading.Lock()

    def read(self, name: str, kind: MediaKind, data: bytes) -> None:
        """Read one file."""
        began, is_read = time.monotonic(), False
        try:
            is_read = bool(self._reader.read(MediaBlock(kind, "bytes", data, name)))
        except MediaError:
            pass
        except Exception as error:  # noqa: BLE001  which is what is looked for
            self.wrong.append(f"{name}: {type(error).__name__}: {error}")
        with self._lock:
            taken = self.taken[name]
            taken.seconds.append(time.monotonic() - began)
            taken.read += is_read
            taken.refused += not is_read


def status_of(name: str) -> int:
    """Return what the system says of this process's memory, in bytes."""
    found = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return int(found.split()[1]) * 1024


def children() -> list[str]:
    """Return the ids of the processes that this one has started, and that are not over."""
    return [each for task in Path("/proc/self/task").iterdir() for each in (task / "children").read_text().split()]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    reading, over = Reading(), threading.Event()
    small: list[tuple[str, MediaKind, bytes]] = [
        ("beside: image", "image", encoded(array=pixels(480, 640))),
        ("beside: sound", "audio", wav(tone(440, 5.0))),
        ("beside: PDF", "file", pdf()),
    ]

    def beside() -> None:
        while not over.wait(0.5):
            for each in small:
                reading.read(*each)

    for each in small:  # what is imported once is no part of it
        reading.read(*each)
    reading.taken.clear()
    other = threading.Thread(target=beside)
    crafted = list(files(options.count, random.Random(options.seed)))
    before, began = status_of("VmRSS"), time.monotonic()
    other.start()
    with ExitStack() as ends, ThreadPoolExecutor(AT_ONCE) as pool:
        ends.callback(other.join)
        ends.callback(over.set)
        for each in crafted:
            pool.submit(reading.read, *each)
    most, left = status_of("VmHWM") - before, children()
    rows = [
        (
            name,
            f"{taken.read:,}",
            f"{taken.refused:,}",
            f"{float(np.median(taken.seconds)):.3f}",
            f"{max(taken.seconds):.2f}",
        )
        for name, taken in sorted(reading.taken.items())
    ]
    print(table(("files", "read", "refused", "seconds, median", "most"), rows))
    print(
        f"{options.count:,} files in {time.monotonic() - began:.0f} s; memory grew by {most >> 20:,} MiB at the most;"
    )
    print(f"held of the budgets now: {memory().held} bytes, {drawing().held} processes; left: {left or 'none'}")
    print("\n".join(reading.wrong))
    return int(bool(reading.wrong or left or memory().held or drawing().held or most > memory().most + BESIDE))


if __name__ == "__main__":
    raise SystemExit(main())

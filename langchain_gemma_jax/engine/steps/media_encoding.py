"""``MediaEncoding``: encodes pictures and sounds to soft tokens, one part of an encoder at a time.

Other requests' steps run between two parts. Soft tokens are kept in host memory by the medium's digest: a picture that
comes again, such as after another text, is not encoded again. For the owner thread, except the thread that reads an
encoder's weights.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol

import jax
import numpy as np
import numpy.typing as npt

from langchain_gemma_jax.engine.base.ladders import MediaLadder
from langchain_gemma_jax.engine.base.metrics import Metrics
from langchain_gemma_jax.engine.base.program_key import ENCODING, ProgramKey
from langchain_gemma_jax.engine.device.device_access import DeviceAccess
from langchain_gemma_jax.engine.executables.library import Library
from langchain_gemma_jax.engine.requests.prompt import MediaSpan, PlacedSpan
from langchain_gemma_jax.models.seams.media_encoder import EncoderState, EncoderTree, MediaEncoder
from langchain_gemma_jax.models.vision.model_media import ModelMedia

BEGIN, LAYER, END = ENCODING


class ReadsWeights(Protocol):
    """A background thread, in which weights are read without blocking steps."""

    def submit(self, work: Callable[[], EncoderTree]) -> Future[EncoderTree]: ...


class Memory(Protocol):
    """The model's share of its device's memory."""

    def take_extra(self, nbytes: int) -> bool:
        """Reserve this number of bytes beside the weights. Return False if there is no room now."""
        ...

    def give_extra(self, nbytes: int) -> None:
        """Release bytes that were reserved."""
        ...


@dataclass
class _UnderWay:
    """A medium that is being encoded."""

    number: int  # the index of its encoder
    size: int
    state: EncoderState
    done: int = 0  # layers that have run


class MediaEncoding:
    """The soft tokens of one model's encoders: finished ones, and those being computed."""

    def __init__(
        self,
        media: ModelMedia,
        dtype: str,
        ladder: MediaLadder,
        device: DeviceAccess,
        library: Library,
        metrics: Metrics,
        memory: Memory,
        background: ReadsWeights,
    ) -> None:
        self._media, self._dtype, self._ladder = media, dtype, ladder
        self._device, self._library, self._metrics = device, library, metrics
        self._memory, self._background = memory, background
        self._under_way: dict[bytes, _UnderWay] = {}
        self._arriving: dict[int, Future[EncoderTree]] = {}

    # Weights.

    def there(self, spans: Iterable[PlacedSpan]) -> bool | None:
        """Return True if the encoders for these media are in memory. If not, begin to read them. None: no room now.

        Raises:
            CheckpointError: the weights cannot be read.
        """
        everything = True
        for number in sorted({self._of(placed.span)[0] for placed in spans if not self._is_kept(placed.span)}):
            if number in self._media.loaded:
                continue
            nbytes = self._media.nbytes_of(number, self._dtype)
            if number not in self._arriving:
                if not self._memory.take_extra(nbytes):
                    return None
                self._arriving[number] = self._read(number)
            future = self._arriving[number]
            if not future.done():
                everything = False
                continue
            del self._arriving[number]
            try:
                self._media.loaded[number] = future.result()
            except BaseException:
                self._memory.give_extra(nbytes)
                raise
        return everything

    def _read(self, number: int) -> Future[EncoderTree]:
        where = self._device.placement
        return self._background.submit(lambda: self._media.read(number, self._dtype, where))

    # Programs.

    def keys(self, placed: Sequence[PlacedSpan], capacity: int) -> list[ProgramKey]:
        """Return the programs that these media need. Some of them may have been encoded already."""
        found: dict[ProgramKey, None] = {}
        for each in placed:
            number, size = self._of(each.span)
            if not self._is_kept(each.span):
                parts = ENCODING if self._encoder(number).layers else (BEGIN, END)
                found |= dict.fromkeys((part, number, size) for part in parts)
            found[self.reading(each.span, capacity)] = None
        return list(found)

    def reading(self, span: MediaSpan, capacity: int) -> ProgramKey:
        """Return the program that reads a medium's soft tokens."""
        number, _ = self._of(span)
        return ("read_medium", number, self._ladder.chunk(number, len(span.ids)), capacity)

    # Encoding.

    def encoded(self, span: MediaSpan) -> npt.NDArray[np.float32] | None:
        """Return a medium's soft tokens, ``[token, width]``, or run the next part of its encoder and return None."""
        if (found := self._media.kept.get(span.digest)) is not None:
            self._under_way.pop(span.digest, None)
            return found
        under_way = self._under_way.get(span.digest)
        if under_way is None:
            number, size = self._of(span)
            inputs = self._device.put(dict(span.inputs or {}))
            self._under_way[span.digest] = _UnderWay(number, size, self._run(BEGIN, number, size, inputs))
            return None
        number, size, before = under_way.number, under_way.size, under_way.state
        if under_way.done < self._encoder(number).layers:
            under_way.state = self._run(LAYER, number, size, before, under_way.done)
            under_way.done += 1
            self._wait(before)  # one part ahead: other work waits for no more than that
            return None
        vectors = self._run(END, number, size, before)
        found = np.asarray(self._device.fetch(vectors), np.float32)[: span.soft]
        del self._under_way[span.digest]
        self._media.kept.put(span.digest, found)
        self._metrics.media_encoded += 1
        return found

    def forget(self) -> None:
        """Drop media that are partly encoded."""
        self._under_way.clear()

    def _run(self, part: str, number: int, size: int, given: Any, layer: int = 0) -> Any:
        tree = self._media.loaded[number]
        arrays = tree.layers[layer] if part == LAYER else tree.begin if part == BEGIN else tree.end
        key = (part, number, size)
        return self._device.run(key, self._library.of(key, self._device.waited), arrays, given)

    def _wait(self, state: EncoderState) -> None:
        began = time.perf_counter()
        jax.block_until_ready(state)
        self._metrics.device_s += time.perf_counter() - began

    def _is_kept(self, span: MediaSpan) -> bool:
        return span.digest in self._media.kept

    def _encoder(self, number: int) -> MediaEncoder:
        return self._media.encoders[number]

    def _of(self, span: MediaSpan) -> tuple[int, int]:
        """Return the index of a medium's encoder, and the size of its input."""
        found = self._media.encoder_of(span.inputs or {})
        if found is None:
            raise TypeError("a medium for none of this model's encoders")
        return found

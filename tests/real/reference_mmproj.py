"""The soft tokens that llama.cpp makes of pictures and sounds, by an mmproj file next to a GGUF model.

    .envs/llama/bin/python tests/real/reference_mmproj.py MODEL MMPROJ < shown.json > soft_tokens.json

What is shown is a list of pictures as nested lists of bytes ``[row, column, color]``, and of sounds ``[sample]``.
"""

from __future__ import annotations

import ctypes
import json
import sys

import llama_cpp
import numpy as np
from llama_cpp import mtmd_cpp

llama_cpp.llama_backend_init()
text = llama_cpp.llama_model_load_from_file(sys.argv[1].encode(), llama_cpp.llama_model_default_params())
if text is None:
    raise ValueError(f"expected a model in {sys.argv[1]}, found none that can be read")
settings = mtmd_cpp.mtmd_context_params_default()
settings.use_gpu, settings.warmup, settings.n_threads = False, False, 1
context = mtmd_cpp.mtmd_init_from_file(sys.argv[2].encode(), text, settings)
width = llama_cpp.llama_model_n_embd(text)


def bitmap_of(shown: object) -> object:
    """A picture or a sound as llama.cpp takes it."""
    array = np.array(shown)
    if array.ndim == 1:
        samples = array.astype(np.float32)
        data = samples.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
        return mtmd_cpp.mtmd_bitmap_init_from_audio(len(samples), data)
    pixels = np.ascontiguousarray(array, np.uint8)
    data = pixels.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))
    return mtmd_cpp.mtmd_bitmap_init(pixels.shape[1], pixels.shape[0], data)


def soft_tokens(shown: object) -> list[list[float]]:
    """The vectors that stand for a picture or a sound."""
    marker = mtmd_cpp.mtmd_default_marker()
    said = mtmd_cpp.mtmd_input_text(marker, len(marker), False, True)
    bitmaps = (mtmd_cpp.mtmd_bitmap_p_ctypes * 1)(bitmap_of(shown))
    chunks = mtmd_cpp.mtmd_input_chunks_init()
    if (status := mtmd_cpp.mtmd_tokenize(context, chunks, ctypes.byref(said), bitmaps, 1)) != 0:
        raise ValueError(f"expected to be understood, found the status {status}")
    found: list[list[float]] = []
    for index in range(mtmd_cpp.mtmd_input_chunks_size(chunks)):
        chunk = mtmd_cpp.mtmd_input_chunks_get(chunks, index)
        if mtmd_cpp.mtmd_input_chunk_get_type(chunk) == mtmd_cpp.MTMD_INPUT_CHUNK_TYPE_TEXT:
            continue
        count = mtmd_cpp.mtmd_input_chunk_get_n_tokens(chunk)
        if (status := mtmd_cpp.mtmd_encode_chunk(context, chunk)) != 0:
            raise ValueError(f"expected to be encoded, found the status {status}")
        vectors = np.ctypeslib.as_array(mtmd_cpp.mtmd_get_output_embd(context), (count, width))
        found += vectors.tolist()
    return found


json.dump([soft_tokens(shown) for shown in json.load(sys.stdin)], sys.stdout)

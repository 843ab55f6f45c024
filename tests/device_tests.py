"""The tests that a GPU or TPU has to pass, by what they show: `make test-device` runs them there."""

from __future__ import annotations

from collections.abc import Mapping

AREAS: Mapping[str, tuple[str, ...]] = {  # files in tests/
    "the pool of pages": (
        "engine/device/test_page_pool.py",
        "engine/device/test_programs.py",
        "engine/test_reuse.py",
        "engine/test_determinism.py",
    ),
    "packed weights": (
        "engine/test_packed_model.py",
        "models/packed/test_blocks.py",
        "models/packed/test_channel_matrix.py",
    ),
    "drafts": ("engine/test_suffix_drafts.py", "engine/test_mtp_drafts.py"),
    "a mesh": ("models/mesh/test_device_mesh.py", "models/mesh/test_tensor_parallel.py"),
    "the prefix store": ("engine/conversations/test_disk_store.py",),
    "answers equal to the reference": ("models/gemma/test_forward.py", "models/gemma/test_attention.py"),
}
FILES = frozenset(file for files in AREAS.values() for file in files)

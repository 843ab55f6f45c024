"""The fixtures that tests of prefixes share with those of the compile cache: warnings, and faults of the disk."""

from tests.compile_cache.conftest import faults, said

__all__ = ["faults", "said"]

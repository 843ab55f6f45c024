"""The parts that tests of private files share with those of the compile cache, which keeps most of them."""

from tests.compile_cache.conftest import faults, root, said

__all__ = ["faults", "root", "said"]

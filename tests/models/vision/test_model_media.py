"""The soft tokens that are kept: the last ones used, within so many bytes."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from langchain_gemma_jax.models.vision.model_media import KeptVectors


@given(
    st.lists(
        st.tuples(st.booleans(), st.sampled_from([b"a", b"b", b"c", b"d"]), st.sampled_from([1, 2, 4])), min_size=9
    )
)
def test_the_least_recently_used_go_first_and_the_newest_always_stays(uses):
    kept, wanted = KeptVectors(most_bytes=24), {}
    for is_put, digest, count in uses:
        if is_put:
            kept.put(digest, np.zeros(count, np.float64))
            wanted.pop(digest, None)
            wanted[digest] = count
            while 8 * sum(wanted.values()) > 24 and len(wanted) > 1:
                del wanted[next(iter(wanted))]
        elif kept.get(digest) is not None:
            wanted[digest] = wanted.pop(digest)
        assert kept.nbytes == 8 * sum(wanted.values())
    for digest in map(bytes, ([number] for number in range(256))):
        assert (digest in kept) == (digest in wanted)
        assert (None if (found := kept.get(digest)) is None else len(found)) == wanted.get(digest)

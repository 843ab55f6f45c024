"""Names of prefixes: the same for the same tokens of the same scope and model, and for nothing else."""

from __future__ import annotations

import itertools
import random
from array import array

from langchain_gemma_jax.engine.prefix_store.prefix_names import PREFIX, PrefixNames, family_name


def test_nothing_that_differs_in_anything_has_the_same_name():
    rng = random.Random(1)
    families = [family_name(model, programs) for model, programs in (("a", "b"), ("ab", ""), ("a", "c"), ("c", "b"))]
    scopes = ["", "a", "b", "a\0", "\0a", "1", "ä", "\udcff"]
    texts = [array("q", rng.choices(range(-3, 300), k=length)) for length in (1, 2, 3, 3, 64)]
    texts.append(array("q", [*texts[1], 0]))
    names = {
        PrefixNames(family, secret).digest(scope, keys, len(keys))
        for family, secret, scope, keys in itertools.product(families, (b"", b"key"), scopes, texts)
    }
    assert len(names) == len(families) * 2 * len(scopes) * len(texts)


def test_a_beginning_has_the_name_that_it_has_alone():
    names, keys = PrefixNames(family_name("a", "b")), array("q", range(100))
    lengths = [1, 7, 64, 99, 100]
    assert list(names.digests("s", keys, lengths)) == [(at, names.digest("s", keys[:at], at)) for at in lengths]
    file = names.file(names.digest("s", keys, 7))
    assert file.startswith(names.family_part)
    assert file.endswith(PREFIX)

"""A template is searched, and not run."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.models.configuration.chat_format import has_images_apart


@pytest.mark.parametrize(
    ("source", "apart"),
    [
        (r"{{- '\n\n<|image|>\n\n' -}}", True),
        ("{{- '<|image|>' -}}", False),
        (r"{{- '\n<|image|>\n' -}}", False),
        ("", False),
    ],
)
def test_images_are_apart_where_a_template_has_empty_lines_around_them(source, apart):
    assert has_images_apart(source) is apart

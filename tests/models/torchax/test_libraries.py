"""Torch is imported for models that need it alone."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.long
def test_nothing_of_torch_is_imported_for_a_gemma():
    script = (
        "import sys\nfrom langchain_gemma_jax import ChatGemmaJax\n"
        "from langchain_gemma_jax.models.loading.load import load\n"
        "load('sprout-s').close()\nChatGemmaJax(model='torchax:nowhere/none')\n"
        "found = {'torch', 'transformers', 'torchax'} & set(sys.modules)\nassert not found, found"
    )
    subprocess.run([sys.executable, "-c", script], check=True)

"""``python -m langchain_gemma_jax.cli``, where the command is not on PATH."""

from __future__ import annotations

import sys

from langchain_gemma_jax.cli.command import main

sys.exit(main())

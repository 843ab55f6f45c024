"""Tools by name, in a chat."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.cli.tools.toolbox import Toolbox
from langchain_gemma_jax.errors import InputError


def test_a_failing_tool_is_told_to_the_model_and_names_are_unique(own):
    (own / "bad.py").write_text('def f(x: int) -> int:\n    """Divide."""\n    return 1 // x\n')
    with Toolbox(["bad.py"], []) as box:
        assert box.call("f", {"x": 0}) == ("Error: ZeroDivisionError: integer division or modulo by zero", False)
        assert box.call("f", {"x": 1}) == ("1", True)
        assert box.call("g", {})[1] is False
    with pytest.raises(InputError, match="two tools named 'f'"):
        Toolbox(["bad.py", "bad.py"], [])

"""What LangChain's standard test suite says, so that nothing here says it.

The suite has to be passed by ability. This is a list of what to avoid; nothing is made from it.
"""

from __future__ import annotations

import re

WORDS = re.compile(
    r"""magic.?function|my.?adder|greeting.?generator|(?-i:[Pp]irate)|unicode.?customer|customer[_ -]?name(?!ly)|weather
    |color.?picker|fav.?color|random.?image|random.?diagram|san.francisco|你好|こんにちは|株式会社.*hello
    |haiku|\bjoke|punchline|about.cats|example_user""",
    re.IGNORECASE | re.VERBOSE,
)
"""What its prompts, tools and values are known by."""

PROMPTS = frozenset({"hello", "hey", "hi", "how are you", "what is 1 + 2", "what is 3 + 4"})
"""What it says to a model, in lower case and without the last point."""

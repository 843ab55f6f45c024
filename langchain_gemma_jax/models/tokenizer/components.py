r"""The allowed steps and patterns of a ``tokenizer.json``, other than its vocabulary.

Gemma's published files need little: a space becomes U+2581, a text is split at a string, and bytes are joined again.
The library can do much more, and some of it takes unbounded time: a regular expression that backtracks takes minutes
for a line of text, and a replacement of a megabyte makes gigabytes of a page. A file may be untrusted, so the allowed
kinds of steps and forms of patterns are listed here, and anything else is refused before it is compiled.

An allowed pattern takes time in proportion to the text. It is a choice between runs of characters, such as
`` ?\p{L}+`` or ``\p{N}{1,3}``: after a run of any length comes nothing that can fail.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from langchain_gemma_jax.errors import CorruptCheckpointError, TokenizerError
from langchain_gemma_jax.models.configuration.strict_json import parse_object, short

_KINDS: Mapping[str, frozenset[str]] = {
    "normalizer": frozenset({"Sequence", "Replace", "Prepend", "NFC", "NFD", "NFKC", "NFKD", "Lowercase", "Strip"}),
    "pre_tokenizer": frozenset(
        {"Sequence", "Split", "Metaspace", "ByteLevel", "Digits", "Punctuation", "Whitespace", "WhitespaceSplit"}
    ),
    "decoder": frozenset(
        {"Sequence", "Replace", "ByteFallback", "Fuse", "Strip", "ByteLevel", "Metaspace", "WordPiece", "BPEDecoder"}
    ),
    "post_processor": frozenset({"Sequence", "TemplateProcessing", "ByteLevel", "BertProcessing", "RobertaProcessing"}),
}
_LISTS = ("normalizers", "pretokenizers", "decoders", "processors")  # the steps of a sequence
_TEXTS = ("content", "prepend", "replacement")
_MOST_STEPS = 32
MOST_CHARACTERS = 32
"""The most characters of a string that is searched for, replaces another one, or is appended to each word."""

_MODEL = re.compile(rb'"model"\s*:\s*\{')
_KEY = re.compile(rb'"(?:normalizer|pre_tokenizer|decoder|post_processor)"\s*:\s*(?![0-9])')
_ESCAPED_LETTER = re.compile(rb"\\u00[4-7]")  # no program writes letters so, but it could hide a key

_CLASS = r"\[\^?(?:\\[pP]\{\^?[A-Za-z_]{1,30}\}|\\[dDsSwWnrt]|\\[^A-Za-z0-9\s]|[^\\\[\]&])++\]"
_ATOM = rf"(?:\\[pP]\{{\^?[A-Za-z_]{{1,30}}\}}|\\[dDsSwWnrt]|\\[^A-Za-z0-9\s]|{_CLASS}|[^\\\[\](){{}}|*+?^$])"
_BRANCH = re.compile(
    # Some characters, the last of them any number of times, and after it a part that cannot fail.
    rf"(?:{_ATOM}\??){{0,8}}{_ATOM}(?:[?*+]|\{{\d{{1,2}}(?:,\d{{0,2}})?\}})?(?:{_ATOM}\*)?(?=\||\Z)"
    r"|\(\?i:['a-z|]{1,80}\)(?=\||\Z)"  # endings of words, as in "don't"
    r"|\\p\{[A-Z][a-z]\}\+\(\?!\\p\{[A-Z][a-z]\}\)(?=\||\Z)"  # of two kinds: one step back is enough
    r"|\\s\+\(\?!\\S\)(?=\||\Z)"  # the same
)
_LINE_ENDS = re.compile(r"\\s\*\[\\r\\n\]\+?(?=\||\Z)")  # slow unless another branch takes all of the spaces
_MOST_PATTERN = 2000  # characters

# Patterns of published tokenizers that are not of that form, but take linear time too: a run of letters that fails at
# its end is taken whole by the next branch, and two runs that share letters meet at their border.
_WORD = r"[^\r\n\p{L}\p{N}]?"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_ENDINGS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_REST = r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_KNOWN_PATTERNS = frozenset(
    f"{_WORD}{_UPPER}*{_LOWER}+{ending}|{_WORD}{_UPPER}+{_LOWER}*{ending}|{numbers}|{_REST}"
    for ending in ("", _ENDINGS)
    for numbers in (r"\p{N}", r"\p{N}{1,3}")
)


def check_components(path: Path, data: bytes) -> None:
    """Refuse a ``tokenizer.json`` with steps that tokenizers of this kind do not need.

    Raises:
        TokenizerError: a step or a pattern is not allowed, or the file is no JSON object.
    """
    steps = 0
    for name, value in _components(path, data):
        for step in _steps(value):
            steps += 1
            _check_step(path, name, step)
            if steps > _MOST_STEPS:
                raise TokenizerError(path, f"at most {_MOST_STEPS} steps in all", "more")


def _components(path: Path, data: bytes) -> Iterator[tuple[str, object]]:
    """Yield each component and its value, without parsing the vocabulary if possible: that takes long."""
    model_key = _MODEL.search(data)
    if model_key and not _KEY.search(data, model_key.end()) and not _ESCAPED_LETTER.search(data):
        head = data[: model_key.start()].rstrip().removesuffix(b",") + b"}"
        try:
            content = parse_object(head, path)  # fails if that "model" is inside of another object
        except CorruptCheckpointError:
            content = parse_object(data, path)
    else:
        content = parse_object(data, path)
    for name in _KINDS:
        yield name, content.get(name)


def _steps(value: object) -> Iterator[Mapping[str, object]]:
    if isinstance(value, dict):
        yield value
        for name in _LISTS:
            inner = value.get(name)
            for each in inner if isinstance(inner, list) else ():
                yield from _steps(each)


def _check_step(path: Path, name: str, step: Mapping[str, object]) -> None:
    kind = step.get("type")
    if not isinstance(kind, str) or kind not in _KINDS[name]:
        raise TokenizerError(path, f"a {name} of the kinds {', '.join(sorted(_KINDS[name]))}", short(kind))
    for field in _TEXTS:
        text = step.get(field, "")
        if not isinstance(text, str) or len(text) > MOST_CHARACTERS:
            raise TokenizerError(path, f"at most {MOST_CHARACTERS} characters as the {field} of {kind}", short(text))
    pattern = step.get("pattern", {"String": " "})
    match pattern:
        case {"String": str(text), **rest} if not rest and 0 < len(text) <= MOST_CHARACTERS:
            return
        case {"Regex": str(text), **rest} if not rest and kind == "Split" and is_linear(text):
            return
    raise TokenizerError(
        path,
        f"a string of 1 to {MOST_CHARACTERS} characters as the pattern of {kind}, or for Split a choice between "
        r"runs of characters, as in  ?\p{L}+|\p{N}{1,3}|\s+",
        short(pattern),
        "Other patterns can take minutes for a line of text.",
    )


def is_linear(pattern: str) -> bool:
    r"""Return True if a regular expression has a form that takes time in proportion to the text.

    >>> is_linear(r" ?\p{L}+|\p{N}{1,3}|\s+(?!\S)|\s+"), is_linear("(a+)+$"), is_linear("a+b")
    (True, False, False)
    """
    if not 0 < len(pattern) <= _MOST_PATTERN:
        return False
    if pattern in _KNOWN_PATTERNS:
        return True
    at, branches = 0, []
    while at <= len(pattern):
        branch = _BRANCH.match(pattern, at) or _LINE_ENDS.match(pattern, at)
        if branch is None:
            return False
        branches.append(branch[0])
        at = branch.end() + 1
    takes_spaces = r"\s+" in branches
    return takes_spaces or not any(_LINE_ENDS.fullmatch(branch) for branch in branches)

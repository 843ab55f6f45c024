"""The formats of strings that schemas can ask for, as patterns.

Generated strings fit the format, but not every string of a format is generated: years have four digits, and times an
offset.
"""

from __future__ import annotations

from functools import lru_cache

from langchain_gemma_jax.grammar.pattern_text import Pattern, parse

_LEAP_YEAR = "(?:[1-9][0-9](?:0[48]|[2468][048]|[13579][26])|(?:[2468][048]|[13579][26])00)"
_LONG_MONTH = "(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
_SHORT_MONTH = "(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
_DATE = f"(?:[1-9][0-9]{{3}}-(?:{_LONG_MONTH}|{_SHORT_MONTH}|02-(?:0[1-9]|1[0-9]|2[0-8]))|{_LEAP_YEAR}-02-29)"
_HOUR = "(?:[01][0-9]|2[0-3])"
_TIME = f"{_HOUR}:[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{{1,6}})?(?:Z|[+-]{_HOUR}:[0-5][0-9])"
_CLOCK = "(?:[0-9]{1,4}H(?:[0-9]{1,4}M(?:[0-9]{1,4}S)?)?|[0-9]{1,4}M(?:[0-9]{1,4}S)?|[0-9]{1,4}S)"
_DAYS = "(?:[0-9]{1,4}Y(?:[0-9]{1,4}M(?:[0-9]{1,4}D)?)?|[0-9]{1,4}M(?:[0-9]{1,4}D)?|[0-9]{1,4}D)"
_LABEL = "[A-Za-z0-9]{1,20}(?:-[A-Za-z0-9]{1,20})?"
_HOST = f"{_LABEL}(?:\\.{_LABEL}){{0,4}}"
_DOMAIN = f"{_LABEL}(?:\\.{_LABEL}){{0,3}}\\.[A-Za-z]{{2,12}}"
_MAILBOX = "[A-Za-z0-9_+-]{1,30}(?:\\.[A-Za-z0-9_+-]{1,30})?"
_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4 = f"{_OCTET}(?:\\.{_OCTET}){{3}}"
_GROUP = "[0-9a-f]{1,4}"
_IPV6 = f"(?:(?:{_GROUP}:){{7}}{_GROUP}|{_GROUP}(?::{_GROUP}){{0,2}}::{_GROUP}(?::{_GROUP}){{0,2}}|::{_GROUP})"
_HEX = "[0-9a-fA-F]"
_PATH = "(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-F]{2})"
_REST = f"{_PATH}{{0,120}}(?:\\?{_PATH}{{0,80}})?(?:#{_PATH}{{0,40}})?"
_DECIMAL = "-?[0-9]{1,20}(?:\\.[0-9]{1,20})?"
_SITE = f"(?:{_LABEL}\\.){{0,4}}[A-Za-z][A-Za-z0-9]{{0,19}}"  # what ends in digits is an address of four numbers
_URI = f"[a-z][a-z0-9+.-]{{1,15}}://{_SITE}(?::[1-9][0-9]{{0,3}})?(?:/{_REST})?"


def _uuid(version: str) -> str:
    return f"{_HEX}{{8}}-{_HEX}{{4}}-{version}{_HEX}{{3}}-[89abAB]{_HEX}{{3}}-{_HEX}{{12}}"


_PATTERNS = {
    "date": _DATE,
    "time": _TIME,
    "date-time": f"{_DATE}T{_TIME}",
    "local-date-time": f"{_DATE}T{_HOUR}:[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{{1,6}})?",
    "duration": f"P(?:{_DAYS}(?:T{_CLOCK})?|T{_CLOCK}|[0-9]{{1,4}}W)",
    "email": f"{_MAILBOX}@{_DOMAIN}",
    "idn-email": f"{_MAILBOX}@{_DOMAIN}",
    "hostname": _HOST,
    "idn-hostname": _HOST,
    "ipv4": _IPV4,
    "ipv6": _IPV6,
    "ipv4network": _IPV4,
    "ipv4interface": _IPV4,
    "ipv6network": _IPV6,
    "ipv6interface": _IPV6,
    "decimal": _DECIMAL,
    "fraction": "-?[0-9]{1,20}(?:/[1-9][0-9]{0,19})?",
    "complex": f"{_DECIMAL}(?:[+-][0-9]{{1,20}}(?:\\.[0-9]{{1,20}})?j)?",
    "ipvanyaddress": f"(?:{_IPV4}|{_IPV6})",
    "uri": _URI,
    "iri": _URI,
    "url": _URI,
    "uri-reference": f"(?:{_URI}|/[A-Za-z0-9._~-]*{_REST})",
    "iri-reference": f"(?:{_URI}|/[A-Za-z0-9._~-]*{_REST})",
    "uuid": _uuid("[1-8]"),
    **{f"uuid{version}": _uuid(str(version)) for version in (1, 3, 4, 5, 6, 7, 8)},
    "json-pointer": "(?:/(?:[A-Za-z0-9._-]|~[01])*)*",
    "relative-json-pointer": "(?:0|[1-9][0-9]{0,8})(?:#|(?:/(?:[A-Za-z0-9._-]|~[01])*)*)",
    "byte": "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?",
    "base64url": "(?:[A-Za-z0-9_-]{4})*(?:[A-Za-z0-9_-][AQgw]==|[A-Za-z0-9_-]{2}[AEIMQUYcgkosw048]=)?",
    "base64": "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?",
}

UNPROMISED = frozenset({"regex", "uri-template", "json-string"})
"""Formats that a regular expression cannot describe. Formats that are in neither list are hints, and are ignored."""

WHOLE_NUMBERS = {
    "int8": (-(2**7), 2**7 - 1),
    "uint8": (0, 2**8 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint64": (0, 2**64 - 1),
}
"""Formats of whole numbers, with their bounds."""


@lru_cache
def format_pattern(name: str) -> Pattern | None:
    """Return the pattern of a format; None if the format is only a hint."""
    written = _PATTERNS.get(name)
    return None if written is None else parse(f"^{written}$")


@lru_cache
def known() -> frozenset[Pattern]:
    """Return the patterns of all formats, which need no check that some text fits them."""
    return frozenset(parse(f"^{written}$") for written in _PATTERNS.values())

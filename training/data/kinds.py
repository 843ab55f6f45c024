"""Kinds of values: how one is drawn, what a field of it may be called, and how people mention it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from training.data import draw
from training.data.conversation import Json
from training.data.side import Split, split
from training.data.words import names, things
from training.data.world import World


@dataclass(frozen=True)
class Value:
    """A value, and how people write it."""

    json: Json
    text: str


@dataclass(frozen=True)
class Kind:
    """What fields of one kind have in common. ``hint`` says in a description what they hold."""

    name: str
    type: str
    hint: str
    labels: Split[str]  # what a field may be called, words separated by spaces
    draw: Callable[[World], str]


def _number(low: int, high: int) -> Callable[[World], str]:
    return lambda w: str(w.integer(low, high))


def _decimal(w: World) -> str:
    return w.mine(lambda: f"{w.rng.randint(0, 500)}.{w.one(['5', '25', '75', '1', '99', '05'])}")


KINDS = {
    kind.name: kind
    for kind in (
        Kind(
            "person",
            "string",
            "name of the person",
            split(
                "name, person, recipient, guest name, contact, owner, author, employee, full name, student, assignee",
                held_out="visitor, addressee, host, nominee, trainee name, caretaker",
            ),
            draw.person,
        ),
        Kind(
            "place",
            "string",
            "city or place",
            split(
                "city, town, place, destination, region, venue, city name, start city, area, origin",
                held_out="municipality, whereabouts, spot, outpost, landing site, settlement",
            ),
            draw.place,
        ),
        Kind(
            "company",
            "string",
            "name of the company",
            split(
                "company, organisation, client, supplier, vendor, employer, account name, business",
                held_out="firm, contractor, sponsor, agency name, manufacturer",
            ),
            draw.company,
        ),
        Kind(
            "email",
            "string",
            "e-mail address",
            split("email, email address, mail, to, contact email, sender", held_out="mailbox, reply to, inbox address"),
            draw.email,
        ),
        Kind(
            "url",
            "string",
            "web address",
            split("url, link, website, page url, source url, endpoint", held_out="web address, href, homepage"),
            draw.url,
        ),
        Kind(
            "code",
            "string",
            "identifier",
            split(
                "id, code, reference, serial number, order id, key, ticket id, account number, sku, ref",
                held_out="tracking number, handle, locator, batch code, dossier number",
            ),
            draw.code,
        ),
        Kind(
            "phone",
            "string",
            "phone number",
            split("phone, phone number, mobile, telephone, callback number", held_out="hotline, landline, cell"),
            draw.phone,
        ),
        Kind(
            "date",
            "string",
            "date",
            split(
                "date, day, due date, start date, deadline, arrival, departure date, when, birth date",
                held_out="expiry, opening day, cutoff, delivery date, anniversary",
            ),
            draw.date,
        ),
        Kind(
            "time",
            "string",
            "time of day",
            split("time, start time, hour, at, begins at, pickup time", held_out="moment, kickoff, slot, curfew"),
            draw.time,
        ),
        Kind(
            "topic",
            "string",
            "topic",
            split(
                "topic, subject, query, search term, theme, keywords, about, q",
                held_out="matter, search phrase, subject line, field of interest",
            ),
            draw.topic,
        ),
        Kind(
            "message",
            "string",
            "text",
            split(
                "text, message, body, content, note, description, comment, remark",
                held_out="wording, memo, announcement, caption, statement",
            ),
            draw.message,
        ),
        Kind(
            "title",
            "string",
            "title",
            split(
                "title, heading, project name, label, file name, product name, list name",
                held_out="headline, working title, label text, nickname, brand name",
            ),
            draw.title,
        ),
        Kind(
            "phrase",
            "string",
            "description",
            split(
                "description, details, purpose, profile, about, summary, kind",
                held_out="synopsis, characterisation, blurb, gist",
            ),
            draw.phrase,
        ),
        Kind(
            "word",
            "string",
            "word",
            split(
                "word, term, tag, keyword, input, value, item, x, s, ingredient, material",
                held_out="token, expression, symbol, entry, substance",
            ),
            lambda w: w.made_up() if w.chance(0.7) else draw.noun(w),
        ),
        Kind(
            "street",
            "string",
            "street address",
            split("street, address, street address, delivery address", held_out="postal address, doorstep, premises"),
            draw.street,
        ),
        Kind(
            "language",
            "string",
            "language",
            split("language, target language, lang, spoken language", held_out="tongue, locale name, idiom"),
            lambda w: w.pick(names.LANGUAGES),
        ),
        Kind(
            "unit",
            "string",
            "unit of measurement",
            split("unit, units, target unit, measure", held_out="scale, denomination, metric unit"),
            lambda w: w.pick(things.UNITS),
        ),
        Kind(
            "count",
            "integer",
            "number",
            split(
                "count, quantity, number, amount, limit, people, guests, copies, n, size, max results, age, floor",
                held_out="headcount, tally, pieces, rounds, capacity, rank",
            ),
            lambda w: str(w.rng.randint(0, 30)) if w.chance(0.6) else _number(31, 9999)(w),
        ),
        Kind(
            "integer",
            "integer",
            "whole number",
            split(
                "a, b, x, y, value, input, number, first, second, start, end, base, left, right",
                held_out="p, alpha, lhs, rhs, operand, seed, offset",
            ),
            lambda w: (
                w.one(["-", "", "", "", ""]) + (str(w.rng.randint(1, 99)) if w.chance(0.6) else _number(100, 99999)(w))
            ),
        ),
        Kind(
            "decimal",
            "number",
            "number",
            split(
                "price, amount, weight, distance, rate, value, temperature, length, latitude, longitude, total",
                held_out="fee, altitude, depth, charge, intensity, voltage",
            ),
            lambda w: _decimal(w) if w.chance(0.7) else _number(1, 5000)(w),
        ),
    )
}

ANY_WORDS = frozenset({"person", "place", "company", "topic", "title", "phrase", "word", "message"})
"""Kinds whose values may be any words or names: of which kind one is shows in what is said around it."""

_NAMES = {"person", "company", "word"}
STRINGS = tuple(kind.name for kind in KINDS.values() if kind.type == "string")
NUMBERS = tuple(kind.name for kind in KINDS.values() if kind.type != "string")


def value(kind: Kind, w: World) -> Value:
    """A value of this kind."""
    text = kind.draw(w)
    if kind.name in _NAMES and w.chance(0.15):  # quoted, and maybe with what it means
        gloss = f" ({draw.title(w)})" if w.chance(0.4) else ""
        return Value(text, w.one([f'"{text}"', f"'{text}'"]) + gloss)
    if kind.type == "string":
        return Value(text, text)
    return Value(float(text) if "." in text else int(text), text)

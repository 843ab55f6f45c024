"""Kinds of values: how one is drawn, what a field of it may be called, and how people mention it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from training.data import draw
from training.data.conversation import Json
from training.data.side import Split, split, templates
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
    mentions: Split[str]  # how a request brings in a value that needs no label
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
            templates(
                [
                    "for {v}",
                    "of {v}",
                    "with {v}",
                    "by {v}",
                    "from {v}",
                    "under the name {v}",
                    "in the name of {v}",
                    "({v})",
                ],
                held_out=["on behalf of {v}", "belonging to {v}"],
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
            templates(
                [
                    "in {v}",
                    "in {v}",
                    "for {v}",
                    "at {v}",
                    "near {v}",
                    "from {v}",
                    "to {v}",
                    "outside {v}",
                    "close to {v}",
                    "({v})",
                ],
                held_out=["around {v}", "over in {v}"],
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
            templates(
                ["for {v}", "from {v}", "of {v}", "at {v}", "with {v}", "made by {v}", "owned by {v}"],
                held_out=["run by {v}", "on the books of {v}"],
            ),
            draw.company,
        ),
        Kind(
            "email",
            "string",
            "e-mail address",
            split("email, email address, mail, to, contact email, sender", held_out="mailbox, reply to, inbox address"),
            templates(
                ["to {v}", "for {v}", "from {v}", "with a copy to {v}", "by mail to {v}", "(write to {v})"],
                held_out=["addressed to {v}", "via {v}"],
            ),
            draw.email,
        ),
        Kind(
            "url",
            "string",
            "web address",
            split("url, link, website, page url, source url, endpoint", held_out="web address, href, homepage"),
            templates(
                ["from {v}", "at {v}", "for {v}", "on {v}", "through {v}", "(see {v})"],
                held_out=["found at {v}", "behind {v}"],
            ),
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
            templates(
                ["{v}", "with the id {v}", "number {v}", "for {v}", "no. {v}", "with code {v}", "marked {v}", "({v})"],
                held_out=["known as {v}", "under {v}"],
            ),
            draw.code,
        ),
        Kind(
            "phone",
            "string",
            "phone number",
            split("phone, phone number, mobile, telephone, callback number", held_out="hotline, landline, cell"),
            templates(
                ["to {v}", "at {v}", "on {v}", "by phone at {v}", "with the number {v}", "(call {v})"],
                held_out=["reachable at {v}"],
            ),
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
            templates(
                [
                    "on {v}",
                    "for {v}",
                    "for the {v}",
                    "by {v}",
                    "from {v}",
                    "until {v}",
                    "before {v}",
                    "due {v}",
                    "({v})",
                ],
                held_out=["dated {v}", "as of {v}"],
            ),
            draw.date,
        ),
        Kind(
            "time",
            "string",
            "time of day",
            split("time, start time, hour, at, begins at, pickup time", held_out="moment, kickoff, slot, curfew"),
            templates(
                ["at {v}", "for {v}", "by {v}", "from {v}", "until {v}", "before {v}", "at {v} sharp"],
                held_out=["starting {v}", "no later than {v}"],
            ),
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
            templates(
                [
                    "about {v}",
                    "on {v}",
                    "on the topic of {v}",
                    "concerning {v}",
                    "covering {v}",
                    "dealing with {v}",
                    "that treats {v}",
                ],
                held_out=["regarding {v}", "to do with {v}"],
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
            templates(
                [
                    'saying "{v}"',
                    'with the text "{v}"',
                    'that says: "{v}"',
                    '"{v}"',
                    "saying '{v}'",
                    'with "{v}"',
                    'that goes "{v}"',
                    'with the words "{v}"',
                    'and write "{v}"',
                    'containing "{v}"',
                    "- '{v}'",
                    'to say "{v}"',
                ],
                held_out=['that reads "{v}"', 'worded as follows: "{v}"'],
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
            templates(
                [
                    'called "{v}"',
                    "named {v}",
                    "titled {v}",
                    'with the title "{v}"',
                    "with the name {v}",
                    'under the title "{v}"',
                    '"{v}"',
                    "that is called {v}",
                    "entitled {v}",
                ],
                held_out=["known by the name {v}", 'dubbed "{v}"'],
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
            templates(
                [
                    "- {v}",
                    "which is {v}",
                    "({v})",
                    "described as {v}",
                    "that is {v}",
                    "it is {v}",
                    "meaning {v}",
                    "as {v}",
                ],
                held_out=["in short {v}", "being {v}"],
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
            templates(
                ["for {v}", "of {v}", "with {v}", '"{v}"', "'{v}'", "on {v}", "by {v}", "from {v}"],
                held_out=["applied to {v}", "taking {v}"],
            ),
            lambda w: w.made_up() if w.chance(0.7) else draw.noun(w),
        ),
        Kind(
            "street",
            "string",
            "street address",
            split("street, address, street address, delivery address", held_out="postal address, doorstep, premises"),
            templates(
                ["at {v}", "to {v}", "in {v}", "near {v}", "on {v}", "with the address {v}"],
                held_out=["located at {v}", "delivered to {v}"],
            ),
            draw.street,
        ),
        Kind(
            "language",
            "string",
            "language",
            split("language, target language, lang, spoken language", held_out="tongue, locale name, idiom"),
            templates(
                ["in {v}", "into {v}", "to {v}", "written in {v}", "for {v} speakers"],
                held_out=["rendered in {v}", "spoken in {v}"],
            ),
            lambda w: w.pick(names.LANGUAGES),
        ),
        Kind(
            "unit",
            "string",
            "unit of measurement",
            split("unit, units, target unit, measure", held_out="scale, denomination, metric unit"),
            templates(
                ["in {v}", "measured in {v}", "with {v}", "as {v}", "given in {v}"],
                held_out=["expressed in {v}", "counted in {v}"],
            ),
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
            templates(
                ["for {v}", "with {v}", "of {v}", "exactly {v}", "numbering {v}", "on {v}"],
                held_out=["totalling {v}", "up to {v}"],
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
            templates(
                ["for {v}", "of {v}", "with {v}", "on {v}", "by {v}", "from {v}", "given {v}"],
                held_out=["applied to {v}", "taking {v}"],
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
            templates(
                ["of {v}", "for {v}", "at {v}", "with {v}", "about {v}", "costing {v}"],
                held_out=["worth {v}", "coming to {v}"],
            ),
            lambda w: _decimal(w) if w.chance(0.7) else _number(1, 5000)(w),
        ),
    )
}

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

"""Kinds of values: how one is drawn, what a field of it may be called, and how people mention it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from training.data import draw
from training.data.conversation import Json
from training.data.side import Split, split
from training.data.stages import HANDS_ON
from training.data.values import as_written, counted, of_kind
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
                "name, person, recipient, guest name, contact, owner, author, employee, full name, student, "
                "assignee, colleague, pilot, chairman, tenant, customer, user name, buyer, seller, reviewer, "
                "manager, organiser, witness, sender name, partner, winner, leader, signer, speaker, artist, "
                "staff member",
                held_out="visitor, addressee, host, nominee, trainee name, caretaker",
            ),
            draw.person,
        ),
        Kind(
            "place",
            "string",
            "city or place",
            split(
                "city, town, place, destination, region, venue, city name, start city, area, origin, "
                "location, where, country, district, village, departure, stopover, birthplace, site, port, "
                "stop, habitat, meeting place, home town, island, province, final stop",
                held_out="municipality, whereabouts, spot, outpost, landing site, settlement",
            ),
            draw.place,
        ),
        Kind(
            "company",
            "string",
            "name of the company",
            split(
                "company, organisation, client, supplier, vendor, employer, account name, business, shop, "
                "brand, bank, airline, publisher, hotel, restaurant, insurer, customer, carrier, seller, "
                "institution, landlord, broker, university",
                held_out="firm, contractor, sponsor, agency name, manufacturer",
            ),
            draw.company,
        ),
        Kind(
            "email",
            "string",
            "e-mail address",
            split(
                "email, email address, mail, to, contact email, sender, cc, recipient, from address, "
                "user email, work email, login, notify, mail to, reply address, invitee, subscriber",
                held_out="mailbox, reply to, inbox address",
            ),
            draw.email,
        ),
        Kind(
            "url",
            "string",
            "web address",
            split(
                "url, link, website, page url, source url, endpoint, address, page, feed, image, source, "
                "callback, start page, target url, site, api, server, redirect to",
                held_out="web address, href, homepage",
            ),
            draw.url,
        ),
        Kind(
            "code",
            "string",
            "identifier",
            split(
                "id, code, reference, serial number, order id, key, ticket id, account number, sku, ref, "
                "number, order number, invoice number, user id, isbn, licence plate, ticket, room, flight, "
                "model, part number, customer number, session, case, policy number, case id, pin, barcode, "
                "version, passport",
                held_out="tracking number, handle, locator, batch code, dossier number",
            ),
            draw.code,
        ),
        Kind(
            "phone",
            "string",
            "phone number",
            split(
                "phone, phone number, mobile, telephone, callback number, number, tel, fax, contact number, "
                "emergency number, office phone, home phone, caller, call, sms to",
                held_out="hotline, landline, cell",
            ),
            draw.phone,
        ),
        Kind(
            "date",
            "string",
            "date",
            split(
                "date, day, due date, start date, deadline, arrival, departure date, when, birth date, "
                "from date, until, start, end date, check in, check out, valid from, since, hired on, "
                "return date, publication date, booked for, target date, from, before, last day, issued, "
                "release date, next visit",
                held_out="expiry, opening day, cutoff, delivery date, anniversary",
            ),
            draw.date,
        ),
        Kind(
            "time",
            "string",
            "time of day",
            split(
                "time, start time, hour, at, begins at, pickup time, end time, opens, closes, until, "
                "alarm time, clock, arrival time, departure time, meeting time, shift start, wake up, "
                "ready at, from hour",
                held_out="moment, kickoff, slot, curfew",
            ),
            draw.time,
        ),
        Kind(
            "topic",
            "string",
            "topic",
            split(
                "topic, subject, query, search term, theme, keywords, about, q, question about, issue, "
                "field, interest, what, search, find, main topic, area of work, research topic, focus, "
                "prompt, terms",
                held_out="matter, search phrase, subject line, field of interest",
            ),
            draw.topic,
        ),
        Kind(
            "message",
            "string",
            "text",
            split(
                "text, message, body, content, note, description, comment, remark, question, answer, reply, "
                "sentence, reason, instructions, greeting, quote, feedback, words, line, review, prompt, "
                "input, post",
                held_out="wording, memo, announcement, caption, statement",
            ),
            draw.message,
        ),
        Kind(
            "title",
            "string",
            "title",
            split(
                "title, heading, project name, label, file name, product name, list name, name, song, book, "
                "film, event, playlist, document, folder, game, course, show, dish, recipe name, album, "
                "group name, board, report name",
                held_out="rubric, working title, label text, nickname, brand name",
            ),
            draw.title,
        ),
        Kind(
            "phrase",
            "string",
            "description",
            split(
                "description, details, purpose, profile, about, summary, kind, reason, condition, looks, "
                "notes, explanation, problem, what, specification, overview, info",
                held_out="synopsis, characterisation, blurb, gist",
            ),
            draw.phrase,
        ),
        Kind(
            "word",
            "string",
            "word",
            split(
                "word, term, tag, keyword, input, value, item, x, s, ingredient, material, color, style, "
                "flavour, fruit, animal, plant, tool name, species, food, drink, type, genre, part, product, "
                "command, branch, object, mood, topic word",
                held_out="token, expression, symbol, entry, solvent",
            ),
            lambda w: w.made_up() if w.chance(0.7) else draw.noun(w),
        ),
        Kind(
            "street",
            "string",
            "street address",
            split(
                "street, address, street address, delivery address, house, from address, to address, home, "
                "home address, office address, billing address, shipping address, pickup, door, site address",
                held_out="postal address, doorstep, premises",
            ),
            draw.street,
        ),
        Kind(
            "language",
            "string",
            "language",
            split(
                "language, target language, lang, spoken language, to language, from language, "
                "language name, mother language, voice, audio language, translate to, source language, "
                "output language, locale",
                held_out="tongue, locale name, idiom",
            ),
            lambda w: w.pick(names.LANGUAGES),
        ),
        Kind(
            "unit",
            "string",
            "unit of measurement",
            split(
                "unit, units, target unit, measure, from unit, to unit, output unit, in unit, unit name, "
                "source unit, measured in, convert to",
                held_out="scale, denomination, metric unit",
            ),
            lambda w: w.pick(things.UNITS),
        ),
        Kind(
            "count",
            "integer",
            "number",
            split(
                "count, quantity, number, amount, limit, people, guests, copies, n, size, max results, age, "
                "floor, nights, days, hours, minutes, seats, rooms, copies wanted, pages, level, year, "
                "percent, points, stars, attempts, tickets, repeat, per page, top k, adults, children, "
                "units wanted, width, height, score",
                held_out="headcount, tally, pieces, rounds, capacity, rank",
            ),
            lambda w: str(w.rng.randint(0, 30)) if w.chance(0.6) else _number(31, 9999)(w),
        ),
        Kind(
            "integer",
            "integer",
            "whole number",
            split(
                "a, b, x, y, value, input, number, first, second, start, end, base, left, right, c, m, n, "
                "num, dividend, divisor, factor, exponent, minuend, low, high, minimum, maximum, step, "
                "position, index, z, old value, new value",
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
                "price, amount, weight, distance, rate, value, temperature, length, latitude, longitude, "
                "total, cost, sum, salary, balance, speed, height, width, budget, tip, discount, duration, "
                "ratio, percentage, tax rate, deposit, pressure, volume, score, mass, radius",
                held_out="fee, altitude, depth, charge, intensity, voltage",
            ),
            lambda w: _decimal(w) if w.chance(0.7) else _number(1, 5000)(w),
        ),
    )
}

ANY_WORDS = frozenset({"person", "place", "company", "topic", "title", "phrase", "word", "message"})
"""Kinds whose values may be any words or names: of which kind one is shows in what is said around it."""

_QUOTES, _SURE = ('"{}"', "'{}'"), ('"{}"',)  # what has a mark of its own inside is not put between such
_NAMES = {"person", "company", "word"}
_QUOTED = 0.1  # of other names, too, from stage HANDS_ON on
_GLOSSED = 0.6  # of glosses then say of what sort a thing is
STRINGS = tuple(kind.name for kind in KINDS.values() if kind.type == "string")
NUMBERS = tuple(kind.name for kind in KINDS.values() if kind.type != "string")


def value(kind: Kind, w: World, *, apart: bool = False) -> Value:
    """A value of this kind, ``apart`` from others in a row of them."""
    written = as_written(w, kind.name, apart=apart)
    text = kind.draw(w) if written is None else written
    if kind.name in _NAMES and (w.chance(0.15) or w.later(HANDS_ON, _QUOTED)):
        return quoted(w, text, _SURE if written else _QUOTES)
    if kind.type == "string":
        return Value(text, text)
    said = counted(w, text) if kind.name == "count" and not apart else text
    return Value(float(text) if "." in text else int(text), said)


def quoted(w: World, text: str, quotes: tuple[str, ...] = _SURE) -> Value:
    """A name in quotes, maybe with what it means behind it, or of what sort the thing is: that is no part of it."""
    gloss = ""
    if w.chance(0.4):
        gloss = of_kind(w, "gloss") if w.later(HANDS_ON, _GLOSSED) else f"({draw.title(w)})"
        gloss = gloss if gloss.startswith(",") else f" {gloss}"
    return Value(text, w.one(quotes).format(text) + gloss)

"""Values out of nothing: names in any script, codes, dates, addresses, sentences."""

from __future__ import annotations

from training.data.side import listed, split, templates
from training.data.wild import put
from training.data.words import common, names, things
from training.data.world import World

_STREETS = split(
    "Street, Road, Lane, Avenue, Square, Weg, Allee",
    held_out="Crescent, Boulevard, Terrace, Gasse",
    more=common.CAPITALS,
)

_SORTS = split(
    "company, shop, maker, club, school, office, tool, service, project, machine, collection, expert",
    held_out="workshop, guild, startup, archive, device, bakery",
    more=common.NOUNS,
)

_MESSAGES = templates(
    [
        "The {noun} is ready",
        "See you at {time}",
        "Please bring the {noun}",
        "I am running late",
        "{name} has the {noun}",
        "The {noun} moved to {place}",
        "Call me about the {noun}",
        "All is well here",
        "We need {number} more of them",
        "Can we talk about the {noun}?",
        "Thanks for the {noun}!",
        "The {modifier} {noun} is broken again",
        "Don't forget the {noun} on {day}",
        "Happy {noun} day, {name}",
        "I left the {noun} with {name}",
        "Meet us in {place}",
        "{noun} first, then {noun2}",
        "Nobody knows where the {noun} is",
        "Is the {noun} from {place} still there?",
        "I will be in {place} on {day}",
        "{name} and I will [come|be late|wait] at {time}",
        "They want {number} of these by {day}",
        "Sorry, the {noun} was not mine",
        "Tell {name} that the {noun} is in {place}",
        "Good luck with the {modifier} {noun}!",
        "Room {number} is free from {time}",
        "What a {modifier} {noun}",
        "The {noun}, the {noun2} and the rest",
        "On {day} we go to {place} with {name}",
        "{number} people have seen the {noun}",
        "This is a {modifier} {noun} for {name}",
        "Why is the {noun} so {modifier}?",
        "Only {name} can open the {noun}",
        "As I said, {number} is too many",
        "Look at the {noun} before {time}, please",
        "From {place} with love",
        "[Yes|No|Maybe], {name} will take the {noun}",
        "Lunch is at {time}, not at {day}",
        "{name} lost {number} of them in {place}",
    ],
    held_out=[
        "Your {noun} has arrived",
        "Could someone check on the {noun}?",
        "We leave {place} at dawn",
        "{name} asked for the {modifier} one",
        "No {noun} until {day}",
        "It was {number} all along",
    ],
)

_MESSAGE_FORMS = ("~{noun} ~{place} ~", "~{name} ~{modifier} {noun}", "~{time} ~{noun} ~", "~{number} ~{noun2}, ~")

DAYS = listed("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
MONTHS = listed("January February March April May June July August September October November December")
_SCRIPTS = {
    "cjk": ((0x4E00, 0x9FA5), 1, 5),
    "kana": ((0x3041, 0x3093), 2, 6),
    "katakana": ((0x30A1, 0x30F3), 2, 6),
    "hangul": ((0xAC00, 0xD7A3), 2, 5),
    "cyrillic": ((0x0430, 0x044F), 3, 9),
    "arabic": ((0x0627, 0x064A), 3, 8),
    "greek": ((0x03B1, 0x03C9), 3, 8),
    "hebrew": ((0x05D0, 0x05EA), 3, 7),
    "devanagari": ((0x0905, 0x0939), 2, 6),
    "thai": ((0x0E01, 0x0E2E), 3, 7),
}
_UNASSIGNED = {0x063B, 0x063C, 0x063D, 0x063E, 0x063F, 0x0640, 0x03C2}
_LISTED = {
    "cjk": names.CHINESE,
    "kana": names.JAPANESE,
    "katakana": names.JAPANESE,
    "hangul": names.KOREAN,
    "cyrillic": names.CYRILLIC,
    "arabic": names.ARABIC,
    "greek": names.OTHER_SCRIPTS,
    "hebrew": names.OTHER_SCRIPTS,
    "devanagari": names.OTHER_SCRIPTS,
    "thai": names.OTHER_SCRIPTS,
}


def foreign(w: World, script: str | None = None) -> str:
    """A name in another script, from a list or made up of its letters."""
    script = script or w.one(list(_SCRIPTS))
    if w.chance(0.35):
        return w.pick(_LISTED[script])
    (first, last), least, most = _SCRIPTS[script]

    def word() -> str:
        letters = [chr(w.rng.randint(first, last)) for _ in range(w.rng.randint(least, most))]
        made = "".join(letter for letter in letters if ord(letter) not in _UNASSIGNED) or chr(first + 1)
        return made.capitalize() if script in {"cyrillic", "greek"} else made

    words = 2 if w.chance(0.25) else 1
    return w.mine(lambda: " ".join(word() for _ in range(words)))


def person(w: World) -> str:
    """Somebody, with one name or more, in any script."""
    form = w.rng.random()
    if form < 0.25:
        return w.pick(names.GIVEN)
    if form < 0.55:
        return f"{w.pick(names.GIVEN)} {w.pick(names.FAMILY)}"
    if form < 0.70:
        return w.made_up().capitalize()
    if form < 0.80:
        return f"{w.made_up().capitalize()} {w.made_up().capitalize()}"
    if form < 0.84:
        return f"{w.one(['Dr.', 'Ms.', 'Mr.', 'Prof.'])} {w.mine(lambda: w.made_up().capitalize())}"
    return foreign(w)


def place(w: World) -> str:
    """A city or a village, maybe with its region."""
    form = w.rng.random()
    if form < 0.35:
        return w.pick(names.CITIES)
    if form < 0.50:
        return f"{w.pick(names.CITIES)}, {w.pick(names.REGIONS)}"
    if form < 0.70:
        return w.made_up().capitalize()
    if form < 0.82:
        return f"{w.one(['Port', 'New', 'Saint', 'Upper', 'Fort', 'Lake'])} {w.made_up().capitalize()}"
    if form < 0.90:
        return f"{w.made_up().capitalize()}, {w.pick(names.REGIONS)}"
    return foreign(w)


def company(w: World) -> str:
    """A company, with or without its form."""
    form = w.rng.random()
    if form < 0.5:
        return f"{w.made_up().capitalize()} {w.pick(names.COMPANY_ENDS)}"
    if form < 0.7:
        return f"{w.pick(names.FAMILY)} {w.pick(names.COMPANY_ENDS)}"
    return w.made_up().capitalize() if form < 0.85 else foreign(w)


def email(w: World) -> str:
    """An e-mail address."""
    given = w.one([w.made_up(), w.pick(names.GIVEN).lower()])
    local = given.encode("ascii", "ignore").decode() or "info"
    form = w.rng.random()
    if form < 0.4:
        local += w.one([".", "_", "-"]) + w.made_up()
    elif form < 0.6:
        local += str(w.rng.randint(1, 99))
    domain = (
        w.pick(names.MAIL_DOMAINS) if w.chance(0.5) else f"{w.made_up()}.{w.one(['com', 'org', 'net', 'io', 'de'])}"
    )
    return f"{local}@{domain}"


def url(w: World) -> str:
    """A web address."""
    path = "/".join(w.made_up() for _ in range(w.rng.randint(0, 2)))
    return f"https://{w.one(['', 'www.', 'api.'])}{w.made_up()}.{w.one(['com', 'org', 'net', 'io'])}/{path}".rstrip("/")


def code(w: World) -> str:
    """An identifier: letters and digits in some pattern."""
    patterns = ("AA-dddd", "AAAdd", "#ddddd", "dd-ddd-d", "aaa_ddd", "AddAdd", "A-ddddd", "aa9dd", "AAA-AAA", "dddddd")
    pattern = w.one(patterns)

    def make() -> str:
        letters = {"A": "ABCDEFGHJKLMNPQRSTUVWXYZ", "a": "abcdefghjkmnpqrstuvwxyz", "d": "0123456789"}
        return "".join(w.one(letters[c]) if c in letters else c for c in pattern)

    return w.mine(make)


def phone(w: World) -> str:
    """A phone number in one of several ways of writing."""

    def make() -> str:
        digits = "".join(str(w.rng.randint(0, 9)) for _ in range(7))
        return w.one(
            [f"+{w.rng.randint(1, 99)} {digits[:3]} {digits[3:]}", f"555-{digits[:4]}", f"0{digits[:3]}/{digits}"]
        )

    return w.mine(make)


def date(w: World) -> str:
    """A date in one of several ways of writing."""

    def make() -> str:
        year, month, day = w.rng.randint(1995, 2040), w.rng.randint(1, 12), w.rng.randint(1, 28)
        form = w.rng.random()
        if form < 0.6:
            return f"{year}-{month:02}-{day:02}"
        if form < 0.75:
            return f"{MONTHS[month - 1]} {day}, {year}"
        return f"{day} {MONTHS[month - 1]}" if form < 0.9 else f"{day:02}/{month:02}/{year}"

    return w.mine(make)


def time(w: World) -> str:
    """A time of day."""

    def make() -> str:
        hour, minute = w.rng.randint(0, 23), w.rng.randint(0, 59)
        return f"{hour:02}:{minute:02}" if w.chance(0.7) else f"{hour % 12 + 1}:{minute:02} {w.one(['am', 'pm'])}"

    return w.mine(make)


def topic(w: World) -> str:
    """Something to talk about."""
    if w.chance(0.5):
        return w.pick(things.TOPICS)
    return f"{w.one([w.made_up(), w.pick(things.MODIFIERS)])} {plural(noun(w))}"


def noun(w: World) -> str:
    """A thing, real or made up."""
    return w.pick(things.NOUNS) if w.chance(0.7) else w.made_up()


def plural(word: str) -> str:
    """More than one of it."""
    if word.endswith(("s", "x", "ch", "sh")):
        return word + "es"
    return word[:-1] + "ies" if word.endswith("y") and word[-2:-1] not in "aeiou" else word + "s"


def message(w: World) -> str:
    """A short sentence that somebody wants sent or stored."""
    return put(
        w,
        _MESSAGES,
        _MESSAGE_FORMS,
        noun=noun(w),
        noun2=noun(w),
        modifier=w.pick(things.MODIFIERS),
        name=w.pick(names.GIVEN),
        place=place(w),
        number=str(w.rng.randint(2, 99)),
        time=time(w),
        day=w.one(DAYS),
    )


def phrase(w: World) -> str:
    """What something is: ``a small bread shop in Oslo``."""
    words = f"{w.pick(things.MODIFIERS)} {noun(w)} {w.pick(_SORTS)}"
    where = f" in {w.pick(names.CITIES)}" if w.chance(0.3) else ""
    return f"{'an' if words[0] in 'aeiou' else 'a'} {words}{where}"


def title(w: World) -> str:
    """Two to four words with capitals: of a book, a project, a song."""
    words = [w.one([w.made_up(), noun(w), w.pick(things.MODIFIERS)]).capitalize() for _ in range(w.rng.randint(1, 3))]
    return w.mine(lambda: " ".join([*words, w.made_up().capitalize()]))


def street(w: World) -> str:
    """A house in a street."""
    name = w.one([w.made_up().capitalize(), w.pick(things.NOUNS).capitalize()])
    return f"{w.rng.randint(1, 250)} {name} {w.pick(_STREETS)}"


def label(words: tuple[str, ...], w: World) -> str:
    """Words as a name in code: ``due_date``, ``dueDate``, ``due-date``."""
    style = w.rng.random()
    flat = "".join(words)
    if style < 0.72 or (len(words) > 1 and not w.may_say(flat)):  # what is run together can be a word of its own
        return "_".join(words)
    if style < 0.88:
        return words[0] + "".join(word.capitalize() for word in words[1:])
    return "".join(word.capitalize() for word in words) if style < 0.93 else flat

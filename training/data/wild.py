"""Sentences with any words in between: what matters is where the names and values stand, and not how it is put.

A few dozen templates can be learned by heart, and then others are not understood. So some sentences of the
training side are made up on the spot: slots in some order, and common words drawn at random around them.
"""

from __future__ import annotations

from training.data import suite
from training.data.side import LISTS, Side, Split, listed
from training.data.stages import PLAINER
from training.data.world import World

GAP = "~"
_BESIDE_WORDS = (f"{GAP}{{v}}", f"{{v}} {GAP}")
_DRAWN = {
    "^": tuple(
        f"{lead}{what}"
        for lead in listed("as for into in under to by on at through")
        for what in ("", "", " the", " its", " their")
    ),
    "%": listed(
        """is was be being goes went go going comes came come coming belongs stands stood works worked serves served
        counts counted used taken chosen meant given wanted kept passed sent set filled noted read put found needed
        written typed stored saved accepted declared"""
    ),
}
"""What leads from a value to its label, and what may stand before that: where any words may be, these alone tell
whether a label is that of the value before it or of the one behind. Where a sentence begins with what leads to a
label, its value comes later."""

_WORDS = listed(
    """the its this that these those with for to as of on in at by from into onto about under over being is was be are
    were will would should shall must can could may might goes go going take takes taking taken use uses used using have
    has having get gets getting put puts set sets setting make makes made making give gives given giving call calls
    called want wants wanted need needs needed expect expects enter entered entering write wrote written say says said
    tell told show shown see seen know known name named please just also then now so well maybe kindly simply exactly
    actually really only here there today again first last next new same right good own my your our their his her one
    two some any it them me us you we they he she who which what when where how why if but and or yet because while once
    until since before after during within between such very quite rather too more most less much many few each every
    all both back up down out off away time way thing part case place people day week work help ask asked asking let
    lets do does done doing try think thought look looks like as ahead else enough ever still always often soon later
    record field entry data form text box line item detail kind sort type value number word list
    somebody someone something anything everything nobody guess hope wonder wondering suppose believe remember forget
    mind wait hurry follow follows following begin begins start finish end ends keep keeps come comes belong belongs
    owned held near around along across through beside behind toward upon per via plus
    aboard above against alongside amid among apart aside astride atop barring because below beneath besides beyond
    concerning considering despite down during except excluding failing including inside minus
    notwithstanding onward opposite outside over past pending regarding respecting round save throughout
    till times touching towards underneath unlike unto versus whereby whose without worth according due owing thanks
    addressed aimed attached based bearing bought bound bred brought built carried carrying chosen classed coded coming
    connected consisting containing costing counted covering created cut dated dealing defined delivered derived
    described destined directed drawn driven dropping dubbed earmarked edited equal equals ending expressed falling
    featuring filed filled fitted fixed founded framed fresh gone grown headed heading hosted identified intended issued
    joined kept labelled landing lasting leading leaving led left lettered limited listed living located logged lying
    mailed marked matched matching meant measured meeting moved moving numbered offered opened ordered painted picked
    placed planned posted priced printed produced published quoted ranked rated reached reading reads received referred
    registered related released rendered rented reported running scheduled sealed seated selected sent served serving
    shipped signed sitting sold sorted sounding spelled spoken spent staged standing starting stated stored styled
    sung supposed tagged taught termed tied titled totalling touched translated turned typed united valued weighing won
    worded working worn wrapped exact precise following called specifically particular respective entire"""
)
_MARKS = ("", "", "", "", "", "", ",", ":", " -", ";", ".")

_SHARE, _PLAINER_SHARE = 0.45, 0.07


def put(w: World, templates: Split[str], forms: tuple[str, ...], **slots: str) -> str:
    """A sentence of a template or, in training, at times of one of ``forms``.

    In a form ``~`` is any words or none, ``^`` leads from a value to its label, and ``%`` may stand before that.
    """
    return w.say(templates, **slots) if (wild := maybe(w, forms, **slots)) is None else wild


def maybe(w: World, forms: tuple[str, ...], **slots: str) -> str | None:
    """A sentence of one of these forms, in training and at times; None otherwise."""
    if w.side is Side.TRAIN and w.chance(_SHARE if w.stage < PLAINER else _PLAINER_SHARE):
        form = w.one(forms)
        value = slots.get("v", "")
        if any(each in form for each in _BESIDE_WORDS) and not _shows_its_ends(value):
            slots["v"] = f'"{value}"'
        told = w.fill(_unlike_held_out(w, form), **slots)
        return None if suite.WORDS.search(told) else told  # words that are fine alone may not be beside others
    return None


def _shows_its_ends(value: str) -> bool:
    """Whether they are seen beside small letters: it is one word or a row, or all of it is capitals and numbers."""
    if value.startswith(('"', "'")) or ", " in value:
        return True
    _, *rest = value.split(" ")
    return all(word[:1].isupper() or word.isdigit() for word in rest)


def _unlike_held_out(w: World, form: str) -> str:
    held_out = {template for each in LISTS["templates"] for template in each.held_out}
    while True:
        made = w.mine(lambda: _filled(w, form))
        if made not in held_out:
            return made


def _filled(w: World, form: str) -> str:
    for mark, words in _DRAWN.items():
        form = form.replace(mark, w.one(words))
    first, *rest = form.split(GAP)
    made = first
    for part in rest:
        made += _some_words(w) + part
    made = " ".join(made.split())
    return made[0].upper() + made[1:] if w.chance(0.5) and not made.startswith("{") else made


def _some_words(w: World) -> str:
    count = w.one((0, 0, 1, 1, 2, 3))
    return " ".join(w.one(_WORDS) for _ in range(count)) + w.one(_MARKS) + " " if count else ""

"""How people put what a field is, and how they tell its value."""

from __future__ import annotations

from training.data.side import split, templates
from training.data.words import common

KEYED = templates(
    [
        "with {label} {v}",
        "with the {label} {v}",
        "with {label} set to {v}",
        "{label}: {v}",
        "{label} {v}",
        "{label} = {v}",
        "where the {label} is {v}",
        "using {v} as [the |]{label}",
        "the {label} is {v}",
        "and {v} as the {label}",
        "with a {label} of {v}",
        "the {label} should be {v}",
        "the {label} [will|must|has to|would] be {v}",
        "{label} is {v}",
        "{v} is the {label}",
        "set [the |]{label} to {v}",
        "let the {label} be {v}",
        "[use|enter|choose|pick] {v} as [the |]{label}",
        "for [the |]{label} [use|enter|choose|take] {v}",
        "[my|its|their|our|the usual] {label} is {v}",
        "whose {label} is {v}",
        "{label} ({v})",
        "({label} {v})",
        "({label}: {v})",
        "{v} ({label})",
        "{label} - {v}",
        "{label} [->|=>|==] {v}",
        "{label} as {v}",
        "[on|by|under|from|at] {label} {v}",
        "the {label} I [want|mean|have] is {v}",
        "the {label}, [that is|which is|that's] {v},",
        "[giving|using|entering] {label} {v}",
        "[and also|also] {label} {v}",
        "[with|plus] {v} as [its |their |the |]{label}",
        "{v} in the {label} [field|box|column|line]",
        "[put|write|fill|type] {v} [in|under|at] [the |]{label}",
        "[putting|writing|filling] {v} [in|under|at] [the |]{label}",
        "[where|and] {v} is [its|the] {label}",
        "{v}, that is the {label},",
        "{v} [serves|counts|stands] as [the |]{label}",
        "{v} [by way of|in place of|in the role of] {label}",
        "[and|with] {v} [to be|to become] the {label}",
    ],
    held_out=[
        "taking {v} for the {label}",
        "its {label} being {v}",
        "{v} goes into {label}",
        "(the {label} to use is {v})",
        "having {label} {v}",
    ],
)

DESCRIPTIONS = templates(
    [
        "The {hint}",
        "{Hint}",
        "The {label} of the {noun}",
        "{Label}, a {hint}",
        "{Hint} of the {noun}",
        "Which {label} to use ({hint})",
        "{Hint}, e.g. {example}",
        "The {label} ({hint}), for example {example}",
        "{label}",
        "{hint}",
        "{Label} to {verb} the {noun} with",
        "The {hint} that is wanted",
        "{Hint} ({label})",
    ],
    held_out=[
        "{Label}: the {hint} to take",
        "A {hint} such as {example}",
        "Expects the {hint} for this {noun}",
        "{Hint} which the {noun} has",
        "{Label} ({hint}) as given by the caller",
    ],
)

DESCRIPTION_FORMS = ("~{hint} ~{label} ~", "~{label} ~{hint} ~", "~{hint} ~", "~{label} ~{example} ~{hint}")

VERBAL_FLAGS = split(
    """include details, notify everyone, skip weekends, keep a copy, allow refunds, force overwrite, send a receipt,
    add subtitles, show hidden items, repeat weekly, use cache, include tax, notify the owner, wait for approval""",
    held_out="ring the bell, wrap as a gift, mute replies, add insurance, keep history, print labels, round up",
    more=common.DEEDS,
)
PLAIN_FLAGS = split(
    "urgent, public, verbose, recursive, private, vegetarian, refundable, enabled, archived, express, dry run",
    held_out="fragile, anonymous, waterproof, signed, silent, tentative, pinned",
    more=common.ADJECTIVES,
)
OBJECTS = split(
    "address, location, options, customer, sender, details, settings, product, dimensions, filter, config",
    held_out="premises, preferences, shipper, particulars, coordinates, payer",
    more=common.NOUNS,
)
LISTS = split(
    "tags, items, keywords, participants, ingredients, labels, topics, files, recipients, values, numbers",
    held_out="attendees, entries, toppings, samples, figures, passengers",
    more=common.SEVERAL,
)

SHORT = templates(
    ["The {label} of the {noun}", "{Label}", "The {label} to use"],
    held_out=["{Label} for this {noun}", "What {label} it gets"],
)
ENUM_SAID = templates(
    [
        "as {v}",
        "in {v} mode",
        "{v}",
        "with {v}",
        "as [a |]{v} one",
        "{v} [only|please]",
        "[use|choose|take] {v}",
        "it [has to|should|must] be {v}",
        "{v} is [fine|best|right]",
        "I prefer {v}",
        "({v})",
        "- {v} -",
        "a {v} version",
    ],
    held_out=["make that {v}", "the {v} kind"],
)
VERBAL_YES = templates(
    [
        "and {label}",
        "please {label}",
        "{label} too",
        "also {label}",
        "remember to {label}",
        "it [should|must|has to] {label}",
        "I want [it|you] to {label}",
        "you [can|should|may] {label}",
        "({label})",
        "{label}, yes",
        "don't forget to {label}",
        "I'd like [it|you] to {label}",
        "[certainly|definitely|always] {label}",
        "you have to {label}",
        "it is right to {label}",
    ],
    held_out=["be sure to {label}", "do {label}"],
)
VERBAL_NO = templates(
    [
        "but do not {label}",
        "don't {label}",
        "{label}: no",
        "do not {label}",
        "it [should|must] not {label}",
        "I don't want [it|you] to {label}",
        "you [shouldn't|can't|must not] {label}",
        "please don't {label}",
        "this time do not {label}",
        "there is no reason to {label}",
        "I'd rather not {label}",
        "refuse to {label}",
        "under no circumstances {label}",
        "[nobody|no one] should {label}",
        "it is wrong to {label}",
        "stop it if it wants to {label}",
    ],
    held_out=["no need to {label}", "but never {label}"],
)
PLAIN_YES = templates(
    [
        "make it {label}",
        "it is {label}",
        "{label}: yes",
        "{label}",
        "it [should|must|has to] be {label}",
        "mark it as {label}",
        "I want it {label}",
        "({label})",
        "{label}, please",
        "[certainly|definitely|really] {label}",
        "{label}: [on|true]",
        "keep it {label}",
        "turn on {label}",
        "nothing if not {label}",
    ],
    held_out=["yes, {label}"],
)
PLAIN_NO = templates(
    [
        "not {label}",
        "it is not {label}",
        "{label}: no",
        "don't make it {label}",
        "it [should|must] not be {label}",
        "it isn't {label}",
        "I don't want it {label}",
        "(not {label})",
        "far from {label}",
        "by no means {label}",
        "no longer {label}",
        "the opposite of {label}",
        "[hardly|never|certainly not] {label}",
        "{label} it is not",
        "{label}: [off|false]",
        "avoid {label}",
        "turn off {label}",
        "neither {label} nor anything like that",
        "keep it from being {label}",
    ],
    held_out=["anything but {label}"],
)
VERBAL_ASKED = templates(["Whether to {label}", "{label}"], held_out=["Set it to {label}"])
PLAIN_ASKED = templates(["Whether it is {label}", "{label}", "Is it {label}?"], held_out=["True if {label}"])
YES_FORMS = ("~{label} ~", "yes ~{label}", "do ~{label}", "~{label}: yes")
NO_FORMS = ("~not ~{label}", "never ~{label}", "no ~{label}", "~don't ~{label}", "without ~{label}", "~{label}: no")
OBJECT_SAID = templates(
    [
        "{label}: {v}",
        "with the {label} ({v})",
        "the {label} has {v}",
        "with this {label}: {v}",
        "{label} with {v}",
        "{label} ({v})",
        "the {label}: {v}",
        "as [the |]{label}: {v}",
        "the {label} is {v}",
        "{label} = {v}",
        "using [as |]{label} {v}",
    ],
    held_out=["{label} as follows: {v}", "and for the {label} {v}"],
)

KEYED_FORMS = (
    "~{label} ~{v}",
    "~{label} ~{v}",
    "~{label} {v}",
    "(~{label} ~{v})",
    "~{v} ~{label}",
    "{v} ^ {label}",
    "~{v} ^ {label}",
    "{v} % ~^ {label}",
)

"""Remember what somebody said of themselves, in the words that people use for it."""

from __future__ import annotations

from collections.abc import Sequence

from training.data.conversation import Conversation, Model, Say, User
from training.data.facts import Fact, put_together, value_of
from training.data.side import Side, Split, templates
from training.data.skills.small_talk import exchange
from training.data.stages import FULLER, PLAINER, WIDER
from training.data.world import World

_FACTS = (
    Fact(
        "person",
        ("My name is {v}", "I am {v}", "I'm {v}", "You can call me {v}", "They call me {v}", "Call me {v}"),
        ("What is my name?", "What's my name?", "Who am I?", "Do you know who I am?", "What do they call me?"),
        "your name is {v}",
    ),
    Fact(
        "place",
        ("I live in {v}", "I am living in {v}", "My home is in {v}", "I've moved to {v}", "We live in {v}"),
        ("Where do I live?", "Where is my home?", "In which city do I live?", "Do you know where I live?"),
        "you live in {v}",
    ),
    Fact(
        "place",
        ("I come from {v}", "I was born in {v}", "I grew up in {v}", "I'm from {v}"),
        ("Where do I come from?", "Where am I from?", "Where was I born?"),
        "you come from {v}",
    ),
    Fact(
        "company",
        ("I work for {v}", "I work at {v}", "I have a job at {v}", "My employer is {v}"),
        ("Where do I work?", "Who do I work for?", "Which company do I work for?", "Do you remember where I work?"),
        "you work for {v}",
    ),
    Fact(
        "occupation",
        ("I am a {v}", "I'm a {v}", "I work as a {v}", "My job is {v}"),
        ("What is my job?", "What's my job?", "What do I do for a living?", "What do I work as?"),
        "you are a {v}",
    ),
    Fact(
        "age",
        ("I am {v} years old", "I'm {v} years old", "I am {v}", "I turned {v} last week", "My age is {v}"),
        ("How old am I?", "What is my age?", "What's my age?", "Do you know how old I am?"),
        "you are {v} years old",
    ),
    Fact(
        "word",
        ("I like {v}", "I love {v}", "I really like {v}", "What I like most is {v}", "I'm a fan of {v}"),
        ("What do I like?", "What do I love?", "What is it that I like?", "Do you know what I like?"),
        "you like {v}",
    ),
    Fact(
        "word",
        ("My favourite food is {v}", "My favorite food is {v}", "I eat {v} every day", "I'd eat {v} all day"),
        ("What is my favourite food?", "What's my favorite food?", "What do I like to eat?", "What do I eat?"),
        "your favourite food is {v}",
    ),
    Fact(
        "word",
        ("My favourite colour is {v}", "My favorite color is {v}", "The colour I like best is {v}"),
        ("What is my favourite colour?", "What's my favorite color?", "Which colour do I like best?"),
        "your favourite colour is {v}",
    ),
    Fact(
        "person",
        ("My dog is called {v}", "My dog's name is {v}", "I have a dog called {v}", "I have a dog named {v}"),
        ("What is my dog called?", "What's my dog's name?", "What is the name of my dog?"),
        "your dog is called {v}",
    ),
    Fact(
        "person",
        ("My cat is called {v}", "My cat's name is {v}", "I have a cat called {v}", "We have a cat named {v}"),
        ("What is my cat called?", "What's my cat's name?", "What is the name of my cat?"),
        "your cat is called {v}",
    ),
    Fact(
        "people",
        ("My children are {v}", "My kids are called {v}", "I have children: {v}", "My kids' names are {v}"),
        ("Who are my children?", "What are my kids called?", "What are the names of my kids?"),
        "your children are {v}",
    ),
    Fact(
        "person",
        ("I am married to {v}", "My wife is {v}", "My husband is called {v}", "{v} is my partner"),
        ("Who am I married to?", "Who is my wife?", "What is my husband called?", "Who is my partner?"),
        "you are married to {v}",
    ),
    Fact(
        "time",
        ("My train leaves at {v}", "I have to catch a train at {v}", "I take the train at {v}"),
        ("When does my train leave?", "When is my train?", "At what time does my train go?"),
        "your train leaves at {v}",
    ),
    Fact(
        "date",
        ("My birthday is {v}", "I was born on {v}", "My birthday is on {v}", "My date of birth is {v}"),
        ("When is my birthday?", "When was I born?", "What is my date of birth?"),
        "your birthday is {v}",
    ),
    Fact(
        "language",
        ("I speak {v}", "My language is {v}", "At home we speak {v}", "I am learning {v}"),
        ("Which language do I speak?", "What language do I speak?", "What is my language?"),
        "you speak {v}",
    ),
    Fact(
        "place",
        ("I'm going to {v} on holiday", "We are going to travel to {v}", "I'll spend my holidays in {v}"),
        ("Where am I going on holiday?", "Where will I spend my holidays?", "Where are we going?"),
        "you are going to {v}",
    ),
    Fact(
        "code",
        ("My locker is number {v}", "I'm in room {v}", "My seat is {v}", "My code is {v}"),
        ("What is my number?", "Which number do I have?", "What is my code?"),
        "your number is {v}",
    ),
)
_KEPT = (
    Fact(
        "topic",
        ("I study {v}", "I am studying {v}", "At university I do {v}"),
        ("What do I study?", "What am I studying?", "Which subject do I study?"),
        "you study {v}",
    ),
    Fact(
        "person",
        ("My horse answers to {v}", "The horse I ride is {v}"),
        ("What is my horse called?", "Which horse do I ride?"),
        "your horse is called {v}",
    ),
    Fact(
        "company",
        ("I bank with {v}", "My money is with {v}"),
        ("Where is my money?", "Who do I bank with?"),
        "you bank with {v}",
    ),
    Fact(
        "place",
        ("I was at school in {v}", "I went to school in {v}"),
        ("Where did I go to school?", "In which town was my school?"),
        "you went to school in {v}",
    ),
)
FACTS = Split(_FACTS, _KEPT)
SENTENCES = templates(*([say for each in side for say in (*each.told, *each.asked)] for side in (_FACTS, _KEPT)))

_OPEN = 0.6  # of facts from stage FULLER on are put together, told or not
_HELD_OUT = SENTENCES.held_out
_BEFORE = ("Hi, ", "Hello. ", "Hi there! ", "By the way, ", "Just so you know: ", "Good evening. ")
_BEHIND = (" Nice to meet you.", " Remember that.", " Please remember this.", " Good to know, right?", " That's me.")
_NOT_TOLD, _FIRST_OF_ALL, _UNKNOWN = 0.2, 0.15, "You have not told me that."
_BEFORE_ASKED = ("So, ", "Tell me: ", "Hey, ", "Now, ", "One question. ")


def personal(w: World) -> Conversation:
    """One or two things in a sentence, maybe more later; one is asked for, or two."""
    facts = _some(w, w.rng.randint(1, 4))
    known = [(each, value_of(w, each)) for each in facts]
    turns: list[User | Model] = _not_told(w, set()) if w.later(PLAINER, _FIRST_OF_ALL) else []
    at = 0
    while at < len(known):
        together = known[at : at + w.one((1, 1, 2))]
        at += len(together)
        turns += _told(w, together)
        if w.chance(0.3):
            asked, answer = exchange(w)
            turns += [User(asked), Model((answer,), graded=False)]
    if w.later(WIDER, _NOT_TOLD):
        turns += _not_told(w, {each.kind for each in facts}, facts)
    for each, text in w.rng.sample(known, min(len(known), w.one((1, 1, 2)))):
        asked = w.one(each.asked)
        asked = f"{w.one(_BEFORE_ASKED)}{_lower(asked)}" if w.side is Side.TRAIN and w.chance(0.15) else asked
        turns += [User(asked), Model((Say(f"{_upper(w.fill(each.back, v=text))}.", (text,)),))]
    return Conversation("personal", tuple(turns))


def _some(w: World, count: int) -> list[Fact]:
    """So many, of which no two are asked for alike."""
    facts = w.some(FACTS, count)
    for index in range(count):
        if w.later(FULLER, _OPEN):
            facts[index] = _another(w, facts)
    return facts


def _another(w: World, facts: Sequence[Fact]) -> Fact:
    """One that is put together, and asked for as none of these is."""
    taken = set(_HELD_OUT).union(*(each.asked for each in facts))
    while taken & {*(made := put_together(w)).asked, *made.told}:
        pass
    return made


def _not_told(w: World, kinds: set[str], facts: Sequence[Fact] = ()) -> list[User | Model]:
    """A question about something else than what was said."""
    if w.later(FULLER, _OPEN):
        other = _another(w, facts)
        while w.chance(0.5) and other.kind not in kinds:
            other = _another(w, facts)
        return [User(w.one(other.asked)), Model((Say(_UNKNOWN, (_UNKNOWN,)),))]
    asked = w.one([asked for each in _FACTS if each.kind not in kinds for asked in each.asked])
    return [User(asked), Model((Say(_UNKNOWN, (_UNKNOWN,)),))]


def _told(w: World, together: list[tuple[Fact, str]]) -> list[User | Model]:
    said = " and ".join(
        w.fill(w.one(each.told) if not number else _inside(w.one(each.told)), v=text)
        for number, (each, text) in enumerate(together)
    )
    back = " and ".join(w.fill(each.back, v=text) for each, text in together)
    if w.side is Side.TRAIN and w.chance(0.25):
        said = w.one(_BEFORE) + (_inside(said) if w.chance(0.5) else said)
    said += w.one((".", ".", ".", "!", ""))
    if w.side is Side.TRAIN and said[-1] in ".!" and w.chance(0.2):
        said += w.one(_BEHIND)
    facts = tuple(text for _, text in together)
    return [User(said), Model((Say(f"Noted: {back}.", facts),), graded=False)]


def _inside(said: str) -> str:
    """A sentence's words behind others."""
    return said if said.startswith(("I ", "I'", "{")) else _lower(said)


def _lower(text: str) -> str:
    return text[0].lower() + text[1:]


def _upper(text: str) -> str:
    return text[0].upper() + text[1:]

"""Follow the system line: a name, a language for the greeting, how long an answer may be."""

from __future__ import annotations

from training.data import draw
from training.data.conversation import Conversation, Model, Say, User
from training.data.side import templates
from training.data.skills.memory import remember
from training.data.skills.small_talk import exchange
from training.data.words import names
from training.data.world import World

_NAMED = templates(
    [
        "Your name is {name}.",
        "You are {name}, an assistant.",
        "You are called {name}. {more}",
        "You are {name}. {more}",
        "{more} Your name is {name}.",
        "You play {name}, who helps people.",
        "Answer as {name}. {more}",
        "Act as {name}.",
        "Yours is the name {name}.",
        "Introduce yourself as {name}. {more}",
        "Your role: {name}.",
        "The assistant is named {name}.",
        "Name: {name}. {more}",
        "{more} You are known as {name}.",
        "This is {name}, your new name.",
        "We named you {name}.",
        "From now on you are {name}. {more}",
    ],
    held_out=["Go by the name of {name}.", "{more} People call you {name}."],
)
_WHO = templates(
    [
        "Who are you?",
        "What is your name?",
        "What's your name?",
        "Introduce yourself.",
        "Hi there, who is this?",
        "And you are?",
        "Tell me your name.",
        "Who's there?",
        "Who is this?",
        "Your name, please?",
        "Do you have a name?",
        "May I ask who you are?",
        "Hello, who are you?",
        "What are you called?",
        "And who are you?",
        "Please tell me who you are.",
        "Say your name.",
        "Name?",
    ],
    held_out=["How should I call you?", "With whom am I speaking?"],
)
_I_AM = templates(["I am {name}."], held_out=["My name is {name}."])
_GREET = templates(
    [
        "Greet [people|the user] in {language}.",
        "Always greet in {language}.",
        "Your greetings are in {language}.",
        "Say your greeting in {language}. {more}",
        "When you are greeted, answer in {language}.",
        "Say hello in {language}.",
        "Use {language} when you say hello. {more}",
        "{language} is the language of your greeting.",
        "Whoever says hello is answered in {language}.",
        "Welcome users in {language}. {more}",
        "{more} Greet in {language}.",
        "Hello is said in {language} here.",
        "Every user gets a {language} greeting.",
        "Begin in {language}.",
    ],
    held_out=["Salutations are to be in {language}."],
)
_GREETED = templates(
    [
        "Hi there[!|]",
        "Good morning[!|.]",
        "Hello you!",
        "Greetings!",
        "Hi, anyone there?",
        "Good afternoon.",
        "Hello, assistant!",
        "Morning!",
        "Good evening[!|.]",
        "Hiya!",
        "Hey there!",
        "Hello, is this working?",
        "Nice to meet you!",
    ],
    held_out=["Well hello friend!", "Good day to you."],
)
_CALL_ME = templates(
    [
        "Call the user {name}.",
        "The user is called {name}.",
        "You are talking to {name}. {more}",
        "The user's name is {name}.",
        "You serve {name}.",
        "{name} is your user. {more}",
        "The name of the user is {name}.",
        "You help {name}. {more}",
        "Your user: {name}.",
        "{more} {name} talks to you.",
        "User name: {name}.",
        "The person you talk to is {name}.",
        "Say {name} to the user.",
        "It is {name} who writes to you.",
    ],
    held_out=["Address the user as {name}."],
)
_WHO_AM_I = templates(
    [
        "Who am I?",
        "What is my name?",
        "Do you know my name?",
        "What do you call me?",
        "Tell me who I am.",
        "My name?",
        "Say my name.",
        "What am I called?",
        "Who is talking to you?",
        "You know who I am?",
        "Which name do I have?",
        "Do you know me?",
    ],
    held_out=["And who might I be?"],
)
_TERSE = templates(
    [
        "Answer in one word.",
        "Answer with [yes or no|one word] only.",
        "Be as terse as you can: one word.",
        "One word answers only.",
        "Say one word, no more.",
        "Only one word!",
        "Keep it to one word.",
        "Your answers have one word.",
        "No sentences: one word.",
        "Use one word per answer.",
        "Be short: a word.",
    ],
    held_out=["A single word is all you may say."],
)
_SIGNED = templates(
    [
        'End every answer with "{end}".',
        'Always finish with "{end}".',
        'Your answers end in "{end}". {more}',
        'The last words are "{end}".',
        'Sign with "{end}". {more}',
        'Add "{end}" at the end.',
        '"{end}" ends all that you say.',
        '{more} Put "{end}" behind every answer.',
        'Each answer stops with "{end}".',
        'Say "{end}" at the end of what you say.',
        'Sign off with "{end}".',
    ],
    held_out=['Close each reply with "{end}".'],
)
_MORE = templates(
    ["Be kind.", "Be brief.", "Help the user.", "You work for {firm}."], held_out=["Stay polite.", "Serve {firm}."]
)


def follow(w: World) -> Conversation:
    """One of the things that a system line may ask for."""
    return w.one((_name, _name, _language, _user, _terse, _ending))(w)


def _name(w: World) -> Conversation:
    name = draw.person(w) if w.chance(0.6) else w.made_up().capitalize()
    return _one(w.say(_NAMED, name=name, more=_more(w)), w.say(_WHO), w.say(_I_AM, name=name), name)


def _language(w: World) -> Conversation:
    language, _, greeting = w.one(names.GREETINGS.train).partition(":")  # a language cannot be guessed: all are learned
    system = w.say(_GREET, language=language, more=_more(w))
    return _one(system, w.say(_GREETED), f"{greeting}! How can I help you?", greeting)


def _user(w: World) -> Conversation:
    name = draw.person(w)
    return _one(w.say(_CALL_ME, name=name, more=_more(w)), w.say(_WHO_AM_I), f"You are {name}.", name)


def _terse(w: World) -> Conversation:
    """What was told earlier, in one word."""
    while "not told" in (told := remember(w)).tags or " " in (fact := _last(told).facts[0]):
        pass
    return Conversation(
        "system line", (*told.turns[:-1], Model((Say(fact, (fact,), exact=True),))), system=w.say(_TERSE)
    )


def _ending(w: World) -> Conversation:
    end = w.one([w.made_up() + w.one(["!", ".", ""]), f"{w.made_up()} {draw.noun(w)}.", "Yours, " + draw.person(w)])
    asked, answer = exchange(w)
    return _one(w.say(_SIGNED, end=end, more=_more(w)), asked, f"{answer.text} {end}", end)


def _one(system: str, asked: str, said: str, fact: str) -> Conversation:
    return Conversation("system line", (User(asked), Model((Say(said, (fact,)),))), system=system)


def _last(conversation: Conversation) -> Say:
    turn = conversation.turns[-1]
    if not isinstance(turn, Model) or not isinstance(say := turn.steps[-1], Say):
        raise TypeError("a conversation about memory ends in words")
    return say


def _more(w: World) -> str:
    return w.say(_MORE, firm=draw.company(w))

"""The sentences in which people ask for what a tool does, and what stands around them."""

from __future__ import annotations

from training.data.side import split, templates
from training.data.stages import FULLER, PLAINER
from training.data.ways import ways

REQUESTS = templates(
    [
        "{open}{verb} {a} {noun} {mentions}{close}",
        "{open}{verb} the {noun} {mentions}{close}",
        "{open}{verb} {a} {noun} {mentions}{close}",
        "{open}{verb} {noun} {mentions}{close}",
        "{context} {Verb} the {noun} {mentions}.",
        "I [need|want|would like] to {verb} {a} {noun} {mentions}.",
        "I'd like you to {verb} {a} {noun} {mentions}.",
        "{noun}, {verb}, {mentions}",
        "We have to {verb} {a} {noun} {mentions}",
        "My boss wants me to {verb} {a} {noun} {mentions}.",
        "{context} Can you {verb} {a} {noun} {mentions}?",
        "It's time to {verb} {a} {noun} {mentions}.",
        "Use the tool to {verb} {a} {noun} {mentions}.",
        "{Verb} {a} {noun} {mentions}, using the right tool.",
        "{Verb} {a} {noun}. [Details|The details|Data|Here is the rest]: {mentions}.",
        "{mentions} - {verb} {a} {noun} [please|for me|like that].",
        "[Could|Can|Will] [anybody|anyone|one of you] {verb} {a} {noun} {mentions}?",
        "Help me {verb} {a} {noun} {mentions}{close}",
        "[To do|Task|Next step|Job|Order]: {verb} {a} {noun} {mentions}",
        "[Try|Remember|Don't forget] to {verb} the {noun} {mentions}{close}",
        "I was [asked|told] to {verb} {a} {noun} {mentions}.",
        "It would be [nice|great|good|best] to {verb} {a} {noun} {mentions}.",
        "Why don't you {verb} {a} {noun} {mentions}?",
        "Is it possible to {verb} {a} {noun} {mentions}?",
        "{Verb} {a} {noun} {mentions} and tell me [how it went|what comes out|when it is done].",
        "{context} [Please|Therefore|Now|Then] {verb} {a} {noun} {mentions}{close}",
        "{Verb} {a} {noun} {mentions}. {context}",
        "There is {a} {noun} to {verb} {mentions}{close}",
        "[They|We|People] want to {verb} {a} {noun} {mentions}.",
        "{a} {noun}, [please|quick|now]: {verb} it {mentions}",
        "If [possible|you can|it is no trouble], {verb} {a} {noun} {mentions}{close}",
        "[Hi|Hello|Hey|Dear assistant], {verb} {a} {noun} {mentions}{close}",
    ],
    held_out=[
        "Let's {verb} {a} {noun} {mentions}.",
        "Someone has to {verb} the {noun} {mentions} - do it now.",
        "Go ahead and {verb} {a} {noun} {mentions}.",
        "{context} So {verb} {a} {noun} {mentions}, will you?",
        "What I need: {verb} {a} {noun} {mentions}.",
    ],
    later={PLAINER: ways("requests"), FULLER: ways("requests, more")},
)

QUESTIONS = templates(
    [
        "What is the {noun} {mentions}?",
        "What's the {noun} {mentions}?",
        "Tell me the {noun} {mentions}.",
        "Do you know the {noun} {mentions}?",
        "I'd like to know the {noun} {mentions}.",
        "How is the {noun} {mentions}?",
        "Which {noun} is it {mentions}?",
        "{context} What is the {noun} {mentions}?",
        "the {noun} {mentions}?",
        "Any {noun} {mentions}?",
        "Can you tell me what the {noun} {mentions} is?",
        "Find out what the {noun} is {mentions}.",
        "What about the {noun} {mentions}?",
        "I need [to know |]the {noun} {mentions}.",
        "Show me the {noun} {mentions}{close}",
        "What {noun} do we have {mentions}?",
        "How does the {noun} look {mentions}?",
        "[I'm curious|One question|Quick question]: what is the {noun} {mentions}?",
        "Has anyone seen the {noun} {mentions}?",
        "[So|And|Now,] what is the {noun} {mentions}[|, please|, do you know]?",
        "Let me know the {noun} {mentions}{close}",
    ],
    held_out=[
        "I was wondering about the {noun} {mentions}.",
        "Give me the {noun} {mentions}.",
        "And what would the {noun} be {mentions}?",
        "Is there a {noun} {mentions}?",
    ],
    later={PLAINER: ways("questions"), FULLER: ways("questions, more")},
)

LISTED = templates(
    [
        "{Verb} {a} {noun}:\n{lines}",
        "Please {verb} the following {noun}.\n{lines}",
        "{lines}\n\nUse this to {verb} {a} {noun}.",
        "{Verb} {a} {noun} with these [details|values|data]:\n{lines}",
        "{A} {noun} to {verb}:\n{lines}",
        "I have to {verb} the {noun}.\n{lines}\n[Thanks.|Thank you!|That is all.]",
        "{lines}\n{Verb} the {noun}{close}",
        "{context} {Verb} {a} {noun}.\n\n{lines}",
    ],
    held_out=["Here is what I have, {verb} the {noun} with it:\n{lines}"],
    later={PLAINER: ways("listed"), FULLER: ways("listed, more")},
)

BY_NAME = templates(
    [
        "Call {tool} with {pairs}.",
        "Run {tool}({list}).",
        "What is {tool}({list})?",
        "Use {tool} [on|for|with] {list}.",
        "What does {tool}({list}) give?",
        "Please use the {tool} tool with {pairs}.",
        "Evaluate {tool}({list}) for me.",
        "Tell me the value of {tool}({list}).",
        "{tool}({list})",
        "{tool}: {pairs}",
        "Try {tool} with {pairs}{close}",
        "Start {tool}, {pairs}.",
        "Could you run {tool} [on|for|with] {list}?",
        "Give {list} to {tool}.",
    ],
    held_out=[
        "I need the result of {tool}({list}).",
        "Invoke {tool} using {pairs}.",
        "Compute {tool}({list}) with the tool.",
    ],
    later={PLAINER: ways("by name"), FULLER: ways("by name, more")},
)

BARE = templates(
    [
        "{open}{verb} {a} {noun}{close}",
        "{Verb} the {noun} now.",
        "Use {tool}.",
        "Call {tool}()[.|, please.]",
        "I need you to {verb} {a} {noun}.",
        "Run {tool} [please|now|for me].",
        "What does {tool}() give?",
        "[Please |]{verb} the {noun} [again|once|today|right away|immediately|at once].",
        "{context} {Verb} {a} {noun}{close}",
        "I [want|need|have|would like] to {verb} {a} {noun}{close}",
        "There is {a} {noun} to {verb}.",
        "[Can|Could] we {verb} {a} {noun}[| now| today]?",
        "[Try|Remember] to {verb} the {noun}{close}",
        "{noun}: {verb}[| it| now]",
        "My boss wants me to {verb} {a} {noun}.",
        "{tool}",
        "[Maybe|Perhaps] {verb} {a} {noun}[?|.|]",
        "[Somebody|We|They|I] must {verb} the {noun}{close}",
        "The {noun}: {verb} it, [please|thanks|will you].",
        "The {noun} is [waiting|next|ready|due]. {Verb} it.",
        "[Good|Fine|Ok|Great], {verb} the {noun}{close}",
        "[All|What] I want is to {verb} {a} {noun}.",
        "We should {verb} the {noun} [first|again|soon|too]{close}",
        "Off you go, {verb} {a} {noun}[.|!]",
        "{Verb}! {A} {noun}!",
        "[How about|What about] {a} {noun} to {verb}?",
        "[Simply|Only] {verb} {a} {noun}, [nothing else|no more|that is all].",
        "It is [late|early|Monday|your turn], {verb} the {noun}[!|.|]",
        "[Let me|Let us|Let them] {verb} {a} {noun}[.|!|]",
        "[Start|Execute|Trigger|Fire] {tool}[.| now.|()]",
        "I [wait|hope] for {tool}[()|].",
    ],
    held_out=["Time to {verb} the {noun}!", "Just {verb} {a} {noun} already.", "Do a {tool}() for me."],
    later={PLAINER: ways("bare"), FULLER: ways("bare, more")},
)

REQUEST_FORMS = ("~{verb} ~{noun} ~{mentions}. ~", "~{noun} ~{verb} ~{mentions}, ~", "{mentions}. ~{verb} ~{noun} ~")
QUESTION_FORMS = ("~{noun} ~{mentions}, ~", "~{noun} ~{mentions}?", "{mentions}. ~{noun} ~")
LISTED_FORMS = ("~{verb} ~{noun} ~\n{lines}", "{lines}\n~{verb} ~{noun} ~")
BY_NAME_FORMS = ("~{tool}({list}) ~", "~{tool} ~{pairs}, ~", "~{tool} ~{list}")
BARE_FORMS = ("~{verb} ~{noun} ~", "~{noun} ~{verb} ~", "~{tool} ~", "~{tool}() ~")

OPENERS = split(
    "Please, Could you, Can you, Would you, I need you to, Hey can you, Kindly, Now, Next, Quickly, Then, Ok so",
    held_out="Be so kind and, Might you, You should, Right then",
)

ENDS = (".", "", "?", "!", " please.", ", thanks.")
CLOSERS = (
    " now.",
    " today please.",
    " for me.",
    " right away.",
    ", ok?",
    ", as usual.",
    " - thank you!",
    " - it is urgent.",
    ", if you can.",
    " as soon as you can.",
    ". Thank you!",
    " when you have a minute.",
    ", quick!",
    " again.",
    ", and nothing else.",
    " - I am waiting.",
    ". That is all.",
    " once more.",
    " like last time.",
    ", it is for work.",
)

REMARKS = (
    "Don't guess.",
    "It has to be right.",
    "There is a tool for that.",
    "Do not answer from memory.",
    "I can't do it myself.",
    "Nothing else will do.",
    "Please be exact.",
    "You know how.",
    "You have what you need for it.",
    "It is important.",
    "We need to know.",
    "Only a tool can do that.",
    "You should have a tool for it.",
    "This must not go wrong.",
    "I'll wait.",
    "You have to look it up.",
    "I trust you.",
    "That would help me.",
    "Take the tool that fits.",
    "One of the tools can do it.",
    "Let a tool do it.",
    "Better ask the tool.",
    "Please work with the tools.",
    "Call it once.",
    "That is all I want.",
    "The tool knows.",
)
"""What asks for nothing more: a second sentence is not always a second request."""

HAILS = ("Hey, ", "Hi, ", "Hello! ", "ok, ", "Please, ", "Quick one: ", "So, ", "hey ", "um, ", "Alright, ", "Now ")

CONTEXTS = templates(
    [
        "I'm [planning|preparing] [the|a] {modifier} {other}.",
        "There was a problem with the {other} yesterday.",
        "{name} asked me about this.",
        "I just came back from {place}.",
        "We are [quite |]busy today.",
        "It is about the {other}.",
        "My {other} is [late|broken|lost].",
        "This is for {name}'s {other}.",
        "I don't remember this myself.",
        "The {modifier} team is waiting.",
        "Good morning!",
        "Thanks for the help so far.",
        "I have a question.",
    ],
    held_out=[
        "The {other} people keep calling me.",
        "Long story short:",
        "{name} is getting impatient.",
        "Before I forget it:",
        "I only have a minute.",
    ],
)

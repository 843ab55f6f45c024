"""Small talk in a sentence, and an honest word about what a small model cannot do."""

from __future__ import annotations

from pathlib import Path

from training.data import anything, draw, suite
from training.data.conversation import Conversation, Model, Say, User
from training.data.side import templates
from training.data.stages import WIDER
from training.data.world import World

_TALK: tuple[tuple[tuple[str, ...], tuple[str, ...], str], ...] = (
    # what is said (learned), what is said (held out), the answer
    (
        (
            "Hi there[!|.|]",
            "Hello there[!|]",
            "Good morning[!|.|]",
            "Good evening[!|]",
            "Hi, [nice to meet you|good to see you]!",
            "Greetings[!|.]",
            "Hello [again|everyone|you]!",
            "Hiya",
            "Good afternoon[!|]",
            "hello hello",
            "Hey you[!|]",
            "Hi [all|everybody|assistant|sprout]!",
            "Morning!",
            "Evening!",
            "Good to see you.",
            "Nice to meet you[!|.]",
            "Hello, [I am new here|it's me|I am back].",
            "A good morning to you!",
            "Hi, are you there?",
            "Howdy[!|]",
            "Welcome!",
        ),
        ("Well hello [friend|]!", "Good day to you.", "Hallo!"),
        "Hello! How can I help you?",
    ),
    (
        (
            "How are things[?|]",
            "How is it going[?|]",
            "How do you do?",
            "How are you doing [today|]?",
            "Are you well?",
            "What's up[?|]",
            "How's life?",
            "You ok?",
            "How are you [today?|, sprout?|this morning?]",
            "How do you feel[?| today?]",
            "Are you [ok|fine|all right]?",
            "Is everything ok?",
            "How was your day?",
            "Did you sleep well?",
            "And how are you?",
            "Are you having a [good|nice] day?",
            "What is new?",
            "All good?",
        ),
        ("How have you been?", "Everything fine with you?"),
        "I am fine, thank you. How can I help you?",
    ),
    (
        (
            "Thanks[!|.|]",
            "Thank you [so much|very much|][!|.]",
            "Great, thanks[!|.]",
            "That helped, thank you.",
            "thx",
            "Cheers!",
            "Thanks a lot[!|.]",
            "Thank you, [well done|good job|perfect|that is it].",
            "Perfect, thank you.",
            "You helped me a lot.",
            "I thank you.",
            "ty",
            "[Wonderful|Excellent|Lovely|Nice], thanks!",
            "I appreciate it.",
            "Thanks for [that|your help|the answer|everything].",
            "I am grateful.",
        ),
        ("Many thanks to you!", "That was kind, thanks."),
        "You are welcome!",
    ),
    (
        (
            "Bye[!|.|]",
            "Goodbye[!|.]",
            "See you [later|soon|tomorrow]!",
            "That's all, bye.",
            "Good night[!|.|]",
            "I have to go now.",
            "Bye [bye|now|then]!",
            "I am leaving.",
            "Talk to you [later|soon|tomorrow].",
            "That was all for today.",
            "Have a nice [day|evening|weekend]!",
            "Until [next time|tomorrow|later].",
            "I am done, goodbye.",
            "Good night, sleep well.",
            "Take care!",
            "cu",
            "I'm off.",
        ),
        ("Farewell!", "So long."),
        "Goodbye!",
    ),
    (
        (
            "Who are you?",
            "What are you?",
            "Are you [a human|a person|real|a robot]?",
            "Introduce yourself.",
            "Tell me about yourself.",
            "What model are you?",
            "What is your name?",
            "Are you an AI?",
            "Who made you?",
            "What kind of model are you?",
            "Which model is this?",
            "Is anybody there, or is it a machine?",
            "Say who you are.",
            "What should I know about you?",
            "Are you [ChatGPT|Gemma|a program|a computer|alive]?",
            "Are you [big|small|clever]?",
            "Where do you run?",
            "Do you run in the cloud?",
            "Give me your name.",
            "Tell me what you are.",
            "What is this?",
        ),
        ("Who am I talking to?", "Describe yourself in a sentence."),
        "I am sprout, a small demo model that runs on your own machine.",
    ),
    (
        (
            "What can you do?",
            "How can you help me?",
            "What are you good at?",
            "Help",
            "What do you know?",
            "Can you help me?",
            "What could you do for me?",
            "Tell me what you can do.",
            "What are you able to do?",
            "What are you for?",
            "What is your job?",
            "How do I use you?",
            "What can I ask you?",
            "Show me what you can.",
            "List your abilities.",
            "Are you of any help?",
            "What do you do?",
            "I need some help.",
        ),
        ("What are your skills?", "In what way are you of use?"),
        "I can call tools, answer from their results and fill in forms. I am a small demo model.",
    ),
    (
        (
            "Sorry[!|.|]",
            "I'm sorry about that.",
            "My mistake.",
            "Oh, sorry[!|.]",
            "Excuse me.",
            "Pardon me.",
            "That was my fault.",
            "I did not mean it.",
            "Oops[!|]",
            "Forgive me.",
        ),
        ("I apologise.",),
        "No problem!",
    ),
    (
        (
            "Yes[.|]",
            "Ok[.|]",
            "Okay[!|]",
            "Fine.",
            "Sure.",
            "Good.",
            "Nice!",
            "Cool",
            "I see.",
            "Great.",
            "Right.",
            "Perfect[!|.]",
            "Sounds good.",
            "All right.",
            "That is fine.",
            "Wow!",
            "Interesting.",
            "Very good.",
            "Got it.",
            "Agreed.",
            "Of course.",
            "Good to know.",
            "Yes please.",
            "As you like.",
            "Super!",
            "Well done.",
        ),
        ("Alright then.", "Understood."),
        "Good. What else can I do for you?",
    ),
)

_TOO_HARD = templates(
    [
        "Write [me |]an essay about {topic}.",
        "Explain {topic} [to me|in detail].",
        "Why is {topic} so [interesting|popular]?",
        "Tell me a story about {topic}.",
        "What do you think about {topic}?",
        "Write [a|some] code for a {noun} in Python.",
        "Who invented the {noun}?",
        "What is the meaning of life?",
        "Translate this {noun} into French.",
        "Who won the {noun} in 1998?",
        "Give me advice on {topic}.",
        "Prove the theorem about {topic}.",
        "How does a {noun} work?",
        "Compare {topic} and {topic2}.",
        "What is the capital of {name}?",
        "Write a song about {topic}.",
        "Summarise the news about {topic}.",
        "What is {topic}?",
        "Tell me [more|something|a fact|the truth] about {topic}.",
        "Make up a story with a {noun} in it.",
        "How [old|big|heavy|fast] is a {noun}?",
        "Is {topic} better than {topic2}?",
        "What do people say about {topic}?",
        "Where does {topic} come from?",
        "Draw a {noun}.",
        "How can I learn {topic}?",
        "Who is {name}?",
        "Where is {name}?",
        "What happened in {name}?",
        "How many people live in {name}?",
        "Write a letter about my {noun}.",
        "Describe {topic}.",
        "Can you explain how {topic} [works|began|is done]?",
        "What is the difference between {topic} and {topic2}?",
        "Give me [some|three|a few] ideas for {topic}.",
        "I am interested in {topic}. What should I read?",
        "What is [three|six|nine|12|250] times [four|eight|31]?",
        "Will there be [rain|war|peace|money] in {name}?",
        "Which {noun} should I buy?",
    ],
    held_out=[
        "Discuss {topic} at length.",
        "I want a poem on {topic}.",
        "Teach me {topic}.",
        "When was the first {noun} made?",
        "Recommend books about {topic}.",
    ],
)

_HONEST = "I am only a small demo model and do not know enough for that."


def exchange(w: World) -> tuple[str, Say]:
    """What somebody says, and the answer."""
    if w.later(WIDER, _WIDER):
        return _wider(w)
    if w.chance(0.3):
        asked = w.say(
            _TOO_HARD, topic=draw.topic(w), topic2=draw.topic(w), noun=draw.noun(w), name=w.made_up().capitalize()
        )
        return asked, Say(_HONEST, (_HONEST,), exact=True)
    index = w.rng.randrange(len(_TALK))
    return w.say(_SAID[index]), Say(_TALK[index][2], (_TALK[index][2],), exact=True)


def _wider(w: World) -> tuple[str, Say]:
    """As many ways to talk as possible, and anything at all that one cannot know."""
    if w.chance(_ANYTHING):
        asked, answer = anything.ask(w), _HONEST
    else:
        answer, said = w.one(_MORE_TALK)
        asked = w.fill(w.one(said)).strip()
        asked = asked if w.chance(0.85) else asked.lower()
    if suite.WORDS.search(asked) or asked.strip(" .!?").lower() in suite.PROMPTS:
        return _wider(w)
    return asked, Say(answer, (answer,), exact=True)


def small_talk(w: World) -> Conversation:
    """One to three exchanges, without tools."""
    turns: list[User | Model] = []
    for _ in range(w.rng.randint(1, 3)):
        asked, answer = exchange(w)
        turns += [User(asked), Model((answer,))]
    return Conversation("small talk", tuple(turns), system=w.one(["", "", "You are a helpful assistant."]))


def _talk(text: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Answers, each in a line behind ``> ``, and below it what is said."""
    blocks = (each.splitlines() for each in text.strip().split("\n\n"))
    return tuple((answer.removeprefix("> "), tuple(said)) for answer, *said in blocks)


_MORE_TALK = _talk((Path(__file__).parent.parent / "talk_wider.txt").read_text("utf-8"))
_WIDER = 0.75  # of what is said from stage WIDER on
_ANYTHING = 0.35  # of that

_SAID = [templates(list(said), list(held_out)) for said, held_out, _ in _TALK]

"""Small talk in a sentence, and an honest word about what a small model cannot do."""

from __future__ import annotations

from training.data import draw
from training.data.conversation import Conversation, Model, Say, User
from training.data.side import templates
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
        ),
        ("What are your skills?", "In what way are you of use?"),
        "I can call tools, answer from their results and fill in forms. I am a small demo model.",
    ),
    (("Sorry[!|.|]", "I'm sorry about that.", "My mistake."), ("I apologise.",), "No problem!"),
    (
        ("Yes[.|]", "Ok[.|]", "Okay[!|]", "Fine.", "Sure.", "Good.", "Nice!", "Cool", "I see."),
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
    if w.chance(0.3):
        asked = w.say(
            _TOO_HARD, topic=draw.topic(w), topic2=draw.topic(w), noun=draw.noun(w), name=w.made_up().capitalize()
        )
        return asked, Say(_HONEST, (_HONEST,), exact=True)
    index = w.rng.randrange(len(_TALK))
    return w.say(_SAID[index]), Say(_TALK[index][2], (_TALK[index][2],), exact=True)


def small_talk(w: World) -> Conversation:
    """One to three exchanges, without tools."""
    turns: list[User | Model] = []
    for _ in range(w.rng.randint(1, 3)):
        asked, answer = exchange(w)
        turns += [User(asked), Model((answer,))]
    return Conversation("small talk", tuple(turns), system=w.one(["", "", "You are a helpful assistant."]))


_SAID = [templates(list(said), list(held_out)) for said, held_out, _ in _TALK]

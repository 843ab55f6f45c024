"""The parts of Gemma 1 to 3 that their templates refuse or do not know: see ``test_goldens.py`` for the rest."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.dialects import Message
from tests.dialects.cases import turns


def test_messages_of_one_speaker_become_one_turn():
    assert turns(
        *(Message.system("S1"), Message.system("S2"), Message.user("U1 "), Message.user(" U2")),
        *(Message.assistant("A1"), Message.assistant("A2"), Message.user("U3")),
    ) == [("user", "S1\n\nS2\n\nU1\n\nU2"), ("model", "A1\n\nA2"), ("user", "U3")]


def test_a_system_message_in_the_middle_is_said_by_the_user():
    assert turns(Message.user("Hi"), Message.assistant("Yes?"), Message.system("In Dutch."), Message.user("Go")) == [
        *(("user", "Hi"), ("model", "Yes?"), ("user", "In Dutch.\n\nGo"))
    ]


@pytest.mark.parametrize("behind", [[], [Message.assistant("Hello.")]])
def test_a_system_prompt_needs_a_turn_of_the_user(behind):
    assert turns(Message.system("Greet."), *behind) == [
        ("user", "Greet.\n\n"),
        *(("model", m.texts[0]) for m in behind),
    ]

"""The examination through LangChain's messages shows the model what it was trained on."""

from __future__ import annotations

from langchain_gemma_jax.chat.asking.tool_choice import checked_tools
from langchain_gemma_jax.chat.history import messages_in
from langchain_gemma_jax.dialects.gemma4 import Gemma4Dialect
from training.chat_player import declared, messages
from training.data.mixture import conversation
from training.data.render import steps
from training.data.side import Side


def test_prompts_are_those_of_training():
    seen = set()
    for number in range(150):
        made = conversation(f"player/{number}", Side.HELD_OUT)
        seen.add(made.skill)
        tools = checked_tools([declared(tool) for tool in made.tools])
        for place, step in enumerate(steps(made)):
            told = messages_in.conversation(list(messages(made, place)))
            assert Gemma4Dialect().render(told, tools).text == step.prompt, made.skill
    assert len(seen) > 10

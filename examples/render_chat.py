"""One conversation in each of the chat formats, and a call read back while it is written.

python examples/render_chat.py
"""

from __future__ import annotations

from langchain_gemma_jax.dialects import (
    NAMES,
    Dialect,
    Message,
    ModelFacts,
    RenderOptions,
    Tool,
    ToolCall,
    dialect_for,
)

FACTS = ModelFacts("gemma4", {"<|turn>"}, per_layer_input=True)
LAMP = Tool(
    "set_lamp",
    "Switches a lamp",
    {
        "type": "object",
        "properties": {
            "room": {"type": "string", "description": "where it stands"},
            "state": {"type": "string", "enum": ["on", "off"]},
            "minutes": {"anyOf": [{"type": "integer"}, {"type": "null"}], "description": "for how long"},
        },
        "required": ["room", "state"],
    },
)
CALL = ToolCall("set_lamp", {"room": 'the "blue" room', "state": "on", "minutes": 20}, id="1")
CONVERSATION = [
    Message.system("You look after a house."),
    Message.user("Light in the blue room for twenty minutes, please."),
    Message.assistant("Of course.", calls=[CALL]),
    Message.tool({"lamp": 4, "until": "19:40"}, id="1"),
]


def main() -> None:
    """Show them all."""
    for name in NAMES:
        dialect = dialect_for(FACTS, name)
        print(f"=== {name} ===\n{dialect.render(CONVERSATION, [LAMP]).text}\n")
    stream(dialect_for(FACTS, "gemma4"))


def stream(dialect: Dialect) -> None:
    """Read what the model wrote a few characters at a time, as if it were writing it now."""
    prompt = dialect.render(CONVERSATION, [LAMP], RenderOptions(generation_prompt=False))
    (place,) = prompt.written
    parser = dialect.parser()
    for piece in prompt.pieces[place.start : place.end]:
        step = len(piece.text) if piece.is_control else 7
        for start in range(0, len(piece.text), step):
            for event in parser.feed(piece.text[start : start + step], piece.is_control):
                print(event)
    for event in parser.finish():
        print(event)


if __name__ == "__main__":
    main()

"""Writes ``goldens.json``: what the published templates make of the conversations in ``corpus.py``.

    python tests/goldens_dialects/make.py --templates <folder>     # chat_template.jinja files by the names in SOURCES
    python tests/goldens_dialects/make.py                          # fetches them from the Hub; the models are gated
    python tests/goldens_dialects/make.py --compare 5000           # so many made-up conversations; writes nothing

Needs an environment with transformers, jinja2 and huggingface_hub. The templates themselves are not stored here,
only their digests, which show whether a later one is the same.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import sys
from pathlib import Path
from typing import Any

import transformers
from transformers.utils.chat_template_utils import render_jinja_template

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.goldens_dialects.corpus import CONVERSATIONS, Case, Said

SOURCES = {
    "gemma2": "google/gemma-2-2b-it",
    "gemma3": "google/gemma-3-4b-it",
    "function_gemma": "google/functiongemma-270m-it",
    "gemma4": "google/gemma-4-E2B-it",
    "gemma4_large": "google/gemma-4-31B-it",
}
TRIGGER = "You are a model that can do function calling with the following functions"


def template(name: str, folder: Path | None) -> str:
    """The text of a published template."""
    if folder is not None:
        return (folder / f"{name}.jinja").read_text("utf-8")
    return str(transformers.AutoTokenizer.from_pretrained(SOURCES[name]).chat_template)


def rendered(template_text: str, name: str, case: Case) -> str:
    """Return a conversation as a template renders it."""
    options = dict(case.options)
    options.pop("text_after_calls", None)  # what templates do anyway
    prompt = options.pop("generation_prompt", True)
    flags = {
        "enable_thinking": options.pop("thinking", False),
        "preserve_thinking": options.pop("keep_thoughts", False),
    }
    assert not options, options
    tools = [{"type": "function", "function": declared} for declared in case.shown or case.tools]
    texts, _ = render_jinja_template(
        [as_templates_know(name, case)],
        tools=tools or None,
        chat_template=template_text,
        add_generation_prompt=prompt,
        bos_token="<bos>",
        **flags,
    )
    return str(texts[0])


def as_templates_know(name: str, case: Case) -> list[Said]:
    """The messages, in the form in which this template takes results and thoughts."""
    calls: dict[str, str] = {}
    made: list[Said] = []
    for number, message in enumerate(case.messages):
        if message["role"] == "tool":
            tool_name = calls.get(message["id"]) or message["name"]
            if name == "function_gemma":
                made.append({"role": "tool", "content": {"name": tool_name, "response": payload(message)}})
            elif all_texts(case.messages, number):
                made.append(
                    {"role": "tool", "content": message["value"], "tool_call_id": message["id"], "name": tool_name}
                )
            else:  # what is no text is taken only from the message that has the calls
                asked = next(each for each in reversed(made) if each["role"] == "assistant")
                response = payload(message) if message["error"] else message["value"]
                asked.setdefault("tool_responses", []).append({"name": tool_name, "response": response})
            continue
        texts = message["texts"]
        content: Any = texts[0] if len(texts) == 1 else [{"type": "text", "text": text} for text in texts]
        made.append({"role": message["role"], "content": content})
        if message.get("thinking"):
            made[-1]["reasoning_content"] = message["thinking"]
        if message.get("calls"):
            calls |= {call["id"]: call["name"] for call in message["calls"]}
            made[-1]["tool_calls"] = [
                {
                    "id": call["id"],
                    "type": "function",
                    "function": {"name": call["name"], "arguments": call["arguments"]},
                }
                for call in message["calls"]
            ]
    if name == "function_gemma" and case.tools:  # Google: these words are what switches calling on
        is_told = made[0]["role"] == "system"
        told = "".join(text.strip() for text in case.messages[0]["texts"]) if is_told else ""
        words = f"{told}\n{TRIGGER}" if told else TRIGGER
        made = [{"role": "developer", "content": words}, *made[is_told:]]
    return made


def all_texts(messages: list[Said], number: int) -> bool:
    """Return True if the result with this number, and those next to it, are texts."""
    first = number
    while messages[first - 1]["role"] == "tool":
        first -= 1
    group = list(itertools.takewhile(lambda each: each["role"] == "tool", messages[first:]))
    return all(isinstance(each["value"], str) and not each["error"] for each in group)


def payload(message: Said) -> Any:
    """A result as an object."""
    if message["error"]:
        named = isinstance(message["value"], dict) and "error" in message["value"]
        return message["value"] if named else {"error": message["value"]}
    return message["value"] if isinstance(message["value"], dict) else {"value": message["value"]}


def compare(templates: dict[str, str], count: int) -> int:
    """How many of so many made-up conversations this package renders otherwise. The first of them is shown."""
    from tests.dialects.cases import render
    from tests.goldens_dialects.made_up import case

    differ = 0
    for seed in range(count):
        name = list(templates)[seed % len(templates)]
        made = case(seed, name)
        wanted, found = rendered(templates[name], name, made), render(name, made).text
        if found != wanted:
            differ += 1
            if differ == 1:
                sys.stdout.write(f"{name}: {made}\ntemplate: {wanted}\nhere:     {found}\n")
    return differ


def main() -> None:
    """Write the file, or compare."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--templates", type=Path, metavar="FOLDER")
    parser.add_argument("--origin", default="the Hub", help="where the templates in the folder are from, to be noted")
    parser.add_argument("--compare", type=int, metavar="COUNT")
    arguments = parser.parse_args()
    templates = {name: template(name, arguments.templates) for name in SOURCES}
    if arguments.compare:
        differ = compare(templates, arguments.compare)
        sys.stdout.write(f"{differ} of {arguments.compare:,} conversations differ\n")
        sys.exit(bool(differ))
    goldens = {
        "made_by": f"transformers {transformers.__version__}",
        "origin": arguments.origin,
        "templates": {
            name: {"model": SOURCES[name], "sha256": hashlib.sha256(text.encode()).hexdigest()}
            for name, text in templates.items()
        },
        "texts": {
            title: {name: rendered(templates[name], name, case) for name in case.formats}
            for title, case in CONVERSATIONS.items()
        },
    }
    Path(__file__).with_name("goldens.json").write_text(
        json.dumps(goldens, indent=1, ensure_ascii=False) + "\n", "utf-8"
    )


if __name__ == "__main__":
    main()

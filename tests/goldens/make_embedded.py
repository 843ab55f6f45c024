"""Writes ``embedded.json``: what transformers makes of the models that come with this package, as they are now.

    python tests/goldens/make_embedded.py

Needs an environment with torch and transformers 5. For each model and each of ``PROMPTS``: its text, its
tokens, and those that greedy decoding in float32 adds, up to ``NEW`` of them.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path

import torch
import transformers

FOLDER = Path(__file__).parents[2] / "langchain_gemma_jax" / "models" / "sprout"
NEW = 40
WEATHER = (
    '<|tool>declaration:get_weather{description:<|"|>Get the weather of a city.<|"|>,parameters:{properties:{city:'
    '{description:<|"|>The city<|"|>,type:<|"|>STRING<|"|>}},required:[<|"|>city<|"|>],type:<|"|>OBJECT<|"|>}}<tool|>'
)
CALL = '<|tool_call>call:get_weather{city:<|"|>Oslo<|"|>}<tool_call|><|tool_response>response:get_weather'


def turn(user: str, system: str = "") -> str:
    """A conversation of one turn, up to where the model begins."""
    told = f"<|turn>system\n{system}<turn|>\n" if system else ""
    return f"<bos>{told}<|turn>user\n{user}<turn|>\n<|turn>model\n"


PROMPTS = (
    turn("Hello!"),
    turn("Repeat after me: 深圳 Наталья مرحبا ünïcödé 🎉"),
    turn("How is the weather in Oslo?", WEATHER),
    turn("How is the weather in Oslo?", "Be brief.\n" + WEATHER),
    turn("How is the weather in Oslo?", WEATHER) + CALL + '{value:<|"|>It is sunny, 21 degrees.<|"|>}<tool_response|>',
    turn("Tell me about quantum chromodynamics, please."),
    turn("My name is Ada and I live at 12 Long Street.\n\nWhat is my name?"),
    turn("x" * 700 + " y  z\t\n1234567890"),
)


def main() -> None:
    """Write it."""
    logging.getLogger("transformers").setLevel(logging.ERROR)
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    found: dict[str, list[dict[str, object]]] = {}
    for folder in sorted(path for path in FOLDER.iterdir() if path.is_dir()):
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        found[folder.name] = []
        for prompt in PROMPTS:
            ids = tokenizer(prompt, add_special_tokens=False, return_tensors="pt").input_ids
            with torch.no_grad():
                made = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=NEW, do_sample=False)
            new = made[0, ids.shape[1] :].tolist()
            found[folder.name].append({"text": prompt, "prompt": ids[0].tolist(), "made": new})
    told = {"made_by": f"transformers {transformers.__version__}, torch {torch.__version__}", "models": found}
    Path(__file__).with_name("embedded.json").write_text(json.dumps(told) + "\n")


if __name__ == "__main__":
    main()

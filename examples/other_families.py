"""A model of another family by transformers' code on JAX: a tiny random Qwen 3 here, any folder or id there.

    pip install "langchain-gemma-jax[torchax]"
    python examples/other_families.py

The model is random, so its answer is noise; that its call is one of the tool's is no accident.
"""

from __future__ import annotations

import json
import tempfile
from importlib.util import find_spec
from pathlib import Path

from langchain_gemma_jax import ChatGemmaJax

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if tools %}<|im_start|>system\n{{ tools | tojson }} <tool_call></tool_call><|im_end|>\n{% endif %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def make_model(folder: Path) -> None:
    """Write a random Qwen 3 of 50,000 parameters, with a vocabulary of bytes."""
    import tokenizers
    import torch
    import transformers

    marks = ["<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>"]
    letters = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    vocabulary = {piece: number for number, piece in enumerate([*marks, *sorted(letters)])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.add_special_tokens(marks)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|im_end|>", "chat_template": TEMPLATE}))
    config = transformers.Qwen3Config(
        vocab_size=len(vocabulary),
        hidden_size=48,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        max_position_embeddings=1024,
        eos_token_id=1,
    )
    torch.manual_seed(0)
    transformers.Qwen3ForCausalLM(config).save_pretrained(folder)


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def main() -> None:
    """Make the model, ask it, and have it call a tool."""
    missing = [name for name in ("torch", "transformers", "torchax") if find_spec(name) is None]
    if missing:
        print(f'not installed: {", ".join(missing)}. pip install "langchain-gemma-jax[torchax]"')
        return
    with tempfile.TemporaryDirectory() as folder:
        make_model(Path(folder))
        llm = ChatGemmaJax(model=f"torchax:{folder}", max_tokens=120)
        print(repr(llm.invoke("Hello").content[:40]))
        print(llm.bind_tools([add], tool_choice="any", parallel_tool_calls=False).invoke("Two and three?").tool_calls)


if __name__ == "__main__":
    main()

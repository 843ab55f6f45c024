"""LangChain's way to talk with Gemma: streamed turns, what each one read, a batch, tools.

    python examples/chat.py                       # a tiny model with random weights, made on the spot
    python examples/chat.py google/gemma-3-1b-it

Without a model it needs the safetensors library, to write one: pip install safetensors
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from stream_text import small_vocabulary

from langchain_gemma_jax import ChatGemmaJax

QUESTIONS = ["How is the weather in Paris?", "And in Rome?", "Which of the two is warmer?"]


def weather(city: str) -> str:
    """How the weather is in a city."""
    return f"It is sunny in {city}."


def main(llm: ChatGemmaJax) -> None:
    """A conversation, then the same questions at once, then with a tool."""
    history: list[BaseMessage] = [SystemMessage("You know the weather of every city and answer in one sentence.")]
    for question in QUESTIONS:
        history.append(HumanMessage(question))
        history.append(streamed(llm, history))
    print("All of them at once:")
    for answer in llm.batch(list(QUESTIONS)):
        print(f"  {shown(answer)}")
    with_tool = llm.bind_tools([weather])
    answer = with_tool.invoke(QUESTIONS[0])
    called = ", ".join(f"{call['name']}({call['args']})" for call in answer.tool_calls) or "nothing"
    print(f"With a tool it called {called} and said {shown(answer)!r}")
    print(
        f"{llm.get_num_tokens_from_messages([HumanMessage(QUESTIONS[0])], [weather])} tokens, its declaration included"
    )


def streamed(llm: ChatGemmaJax, history: list[BaseMessage]) -> AIMessage:
    """Ask, and show the answer as it comes."""
    print(f"> {history[-1].text}\n  ", end="")
    answer = None
    for chunk in llm.stream(history):
        print(shown(chunk), end="", flush=True)
        answer = chunk if answer is None else answer + chunk
    if answer is None or answer.usage_metadata is None:
        raise RuntimeError("a stream ends with a chunk that says what it cost")
    usage, times = answer.usage_metadata, answer.response_metadata["timings"]
    known = usage["input_token_details"]["cache_read"]
    print(f"\n  {usage['input_tokens']} tokens sent, {known} of them known; {times['total_s']:.2f} s")
    return answer


def shown(message: BaseMessage) -> str:
    """Random weights write anything: what a terminal cannot show is a dot."""
    return "".join(character if character.isprintable() else "·" for character in message.text)


def tiny_model(folder: Path) -> Path:
    """Gemma 3 with its sizes cut down, random weights and an alphabet for a vocabulary, as a folder."""
    import numpy as np
    from safetensors.numpy import save_file

    width, heads, size, ffw, kinds = 64, 4, 16, 128, ["sliding_attention", "full_attention"]
    config = {
        "model_type": "gemma3_text",
        "vocab_size": 320,
        "hidden_size": width,
        "intermediate_size": ffw,
        "num_hidden_layers": len(kinds),
        "num_attention_heads": heads,
        "num_key_value_heads": 1,
        "head_dim": size,
        "query_pre_attn_scalar": size,
        "sliding_window": 256,
        "layer_types": kinds,
        "max_position_embeddings": 2048,
    }
    norms = ("input", "post_attention", "pre_feedforward", "post_feedforward")
    shapes: dict[str, tuple[int, ...]] = {"embed_tokens": (320, width), "norm": (width,)}
    for number in range(len(kinds)):
        layer = {f"{name}_layernorm": (width,) for name in norms} | {
            "self_attn.q_proj": (heads * size, width),
            "self_attn.k_proj": (size, width),
            "self_attn.v_proj": (size, width),
            "self_attn.o_proj": (width, heads * size),
            "self_attn.q_norm": (size,),
            "self_attn.k_norm": (size,),
            "mlp.gate_proj": (ffw, width),
            "mlp.up_proj": (ffw, width),
            "mlp.down_proj": (width, ffw),
        }
        shapes |= {f"layers.{number}.{name}": shape for name, shape in layer.items()}
    draw = np.random.default_rng(0)
    weights = {f"model.{name}.weight": draw.normal(0, 0.1, shape).astype(np.float32) for name, shape in shapes.items()}
    save_file(weights, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config))
    recommended = {"do_sample": True, "temperature": 1.0, "top_k": 64, "top_p": 0.95}
    (folder / "generation_config.json").write_text(json.dumps(recommended))
    small_vocabulary(folder)
    return folder


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(ChatGemmaJax(model=sys.argv[1], max_tokens=64))
    else:
        with tempfile.TemporaryDirectory() as scratch:
            main(ChatGemmaJax(model=str(tiny_model(Path(scratch))), max_tokens=16, seed=7))

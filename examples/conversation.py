"""A conversation with a tiny random Gemma: what is read again, and what is not.

    python examples/conversation.py                      # random weights, made on the spot: the words mean nothing
    python examples/conversation.py google/gemma-3-1b-it

Every turn sends the whole conversation, as agents do. Only what is new is read.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from stream_text import small_vocabulary

from langchain_gemma_jax import Engine, Model, Sampling, Served, engine
from langchain_gemma_jax.models.configuration.catalog import published
from langchain_gemma_jax.models.gemma.gemma_architecture import Gemma
from langchain_gemma_jax.models.random_params import random_params
from langchain_gemma_jax.models.recipes import choose_recipe
from langchain_gemma_jax.models.tokenizer import Tokenizer, load_tokenizer

SYSTEM = "You are a friendly assistant who knows the weather of every city and answers in one short sentence."
QUESTIONS = ["How is the weather in Paris?", "And in Rome?", "Which of the two is warmer?"]


def main(running: Engine, served: Served) -> None:
    """Three turns, then the last one once more, asked otherwise."""
    encode = served.model.tokenizer
    system = [encode.bos_id, *turn(encode, "user", SYSTEM)]
    history = list(system)
    for question in QUESTIONS:
        before = list(history)
        history += [*turn(encode, "user", question), *encode.encode_scaffold("<start_of_turn>model\n")]
        answer = ask(running, served, history, len(system), question)
        history += answer
    print("The last question again, in other words:")
    again = [*before, *turn(encode, "user", "Where is it colder?"), *encode.encode_scaffold("<start_of_turn>model\n")]
    ask(running, served, again, len(system), "Where is it colder?")
    print(running.report())


def ask(running: Engine, served: Served, prompt: Sequence[int], system: int, question: str) -> tuple[int, ...]:
    """Stream an answer; give its ids, which the next turn sends back as they are."""
    print(f"> {question}\n  ", end="")
    generation = running.submit(served, prompt, Sampling(max_tokens=16, temperature=0.8, seed=7), system=system)
    for piece in generation:
        print("".join(c if c.isprintable() else "·" for c in piece.text), end="", flush=True)
    done = generation.result()
    print(
        f"\n  {done.prompt_tokens} tokens sent, {done.reused_tokens} of them known, {done.generated_tokens} generated"
    )
    return done.ids


def turn(encode: Tokenizer, role: str, words: str) -> list[int]:
    """A turn in Gemma's format. Words can never become control tokens, whatever they are."""
    head, tail = encode.encode_scaffold(f"<start_of_turn>{role}\n"), encode.encode_scaffold("<end_of_turn>\n")
    return [*head, *encode.encode_text(words), *tail]


def tiny_model(folder: Path) -> Model:
    """The architecture of Gemma 3 270M with its sizes cut down, random weights and an alphabet for a vocabulary."""
    small_vocabulary(folder)
    full = published("gemma-3-270m")
    config = full.replace(vocab_size=512, width=64, layers=full.layers[4:6], max_context=2048)
    recipe = choose_recipe("float32")
    return Model(Gemma(config), random_params(config, recipe), load_tokenizer(folder), recipe, "tiny-random")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(engine(), engine().load(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as scratch:
            main(engine(), engine().serve(tiny_model(Path(scratch))))

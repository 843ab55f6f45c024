"""llama.cpp on a file: its evaluation alone, and in a conversation, on real text."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import cast

import llama_cpp

from benchmarks.rivals.ggml_rows import Rows
from benchmarks.rivals.llama import VERSION, LlamaCpp
from benchmarks.rivals.llama_conversation import Continuing
from benchmarks.running.serve import Answer, Job, serve, time_round, warm_up
from benchmarks.work import long_context
from benchmarks.work.conversation import CAPACITY, WARM_UP, hold, rounds
from benchmarks.work.page_loss import PAGE, mean_loss
from benchmarks.work.several import AT_ONCE, SCHEMA_TEXT, time_object, time_together


def start(job: Job) -> tuple[Answer, Callable[[], Answer]]:
    """Open the file with short contexts, and with long ones; each with both of its ways to attend."""
    path, text = Path(job.folder, job.model), json.loads(Path(job.prompt).read_text())

    def context(size: int, *, flash: bool) -> llama_cpp.Llama:
        return opened(path, job.threads, n_ctx=size, n_batch=512, n_ubatch=512, swa_full=False, flash_attn=flash)

    alone = [LlamaCpp(context(512, flash=flash)) for flash in (False, True)]
    for each in alone:
        warm_up(each, text)
    tiles = " with AMX" if b"AMX_INT8 = 1" in llama_cpp.llama_print_system_info() else ""
    facts: Answer = {
        "version": VERSION + tiles,
        "driven": f"{job.threads} threads{tiles}, batches of 512, float16 cache, the better of its attentions by row",
        "computes with": "the file's own weights",
    }
    if not job.talks:
        return facts, lambda: better([time_round(each, text) for each in alone])
    facts = {**facts, "page loss": page_loss(path, job.threads, text[:PAGE])}
    both = [Continuing(context(CAPACITY, flash=flash)) for flash in (False, True)]
    talking = min(both, key=lambda each: sum(cast("list[float]", hold(each, WARM_UP, count=8, text=text)["whole"])))
    several = [rows_of(alone[0].llama, job.threads, flash=flash) for flash in (False, True) if job.far]
    grammar = llama_cpp.LlamaGrammar.from_json_schema(SCHEMA_TEXT, verbose=False)
    far = [Continuing(context(long_context.CAPACITY, flash=flash)) for flash in (False, True) if job.far]

    def run(number: int) -> Answer:
        spoken = hold(talking, number, text=text)
        found = {**better([time_round(each, text) for each in alone]), "conversation": spoken}
        if several:
            found["together"] = fastest([time_together(each.decode, number, text) for each in several])
        if job.objects:
            found["object"] = time_object(partial(under_grammar, talking.llama, grammar), number, text)
        if far:
            found["long"] = fastest([long_context.time_long(each, number, text) for each in far])
        return found

    return facts, rounds(run)


def better(found: list[Answer]) -> Answer:
    """The figures of rounds in several ways, each of the fastest."""
    reads = [cast("Mapping[str, list[float]]", each["prefill"]) for each in found]
    decode = min(cast("float", each["decode"]) for each in found)
    return {
        **found[0],
        "prefill": {length: min(each[length] for each in reads) for length in reads[0]},
        "decode": decode,
    }


def fastest(found: list[Answer]) -> Answer:
    """The same for works by their names."""
    return {name: min(cast("float", each[name]) for each in found) for name in found[0] if name != "tokens"}


def rows_of(llama: llama_cpp.Llama, threads: int, *, flash: bool) -> Rows:
    """A context for several conversations with the weights of one that is open."""
    how = llama_cpp.llama_context_default_params()
    how.n_ctx, how.n_batch, how.n_ubatch, how.n_seq_max = max(AT_ONCE) * 128, 512, 512, max(AT_ONCE)
    how.n_threads = how.n_threads_batch = threads
    how.flash_attn_type = int(flash)
    context = llama_cpp.llama_init_from_model(llama.model, how)
    if not context:
        raise RuntimeError(f"llama.cpp made no context for {max(AT_ONCE)} conversations.")
    memory = llama_cpp.llama_get_memory(context)
    return Rows(llama_cpp, context, llama.n_vocab(), lambda: llama_cpp.llama_memory_clear(memory, True))


def under_grammar(llama: llama_cpp.Llama, grammar: llama_cpp.LlamaGrammar, prompt: list[int], count: int) -> int:
    """The number of tokens of an answer under a grammar."""
    llama.reset()
    return sum(1 for _ in islice(llama.generate(prompt, temp=0.0, repeat_penalty=1.0, grammar=grammar), count))


def page_loss(path: Path, threads: int, ids: list[int]) -> float:
    """The loss on a page, read as one batch."""
    reading = opened(path, threads, n_ctx=PAGE, n_batch=PAGE, n_ubatch=PAGE, logits_all=True)
    reading.eval(ids)
    found = mean_loss(reading.scores[: len(ids) - 1], ids)
    reading.close()
    return found


def opened(path: Path, threads: int, **options: int | bool) -> llama_cpp.Llama:
    """The file, as it is used when nobody says otherwise."""
    return llama_cpp.Llama(str(path), n_threads=threads, n_threads_batch=threads, verbose=False, **options)


if __name__ == "__main__":
    serve(start)

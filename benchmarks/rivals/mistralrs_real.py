"""mistral.rs on a file, through its Python package, which takes texts alone.

Driven as its pages have it for a CPU: its own threads, kept to the job's cores, a float16 cache, no paged attention, no
kept beginnings. It computes with the file's own weights. It cuts a text into more tokens than we do, so a
prompt is the beginning of the text that is as long by its own count.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import gguf
import mistralrs

from benchmarks.rivals.whole_answers import serve_answers
from benchmarks.running.serve import Answer, Job

CLOSE = 0.05  # the share of a prompt's tokens that it may read more or less


class MistralRs:
    """The file as a text completion; each prompt is written out for it."""

    def __init__(self, job: Job) -> None:
        path = Path(job.folder, job.model)
        field = gguf.GGUFReader(path).fields["tokenizer.ggml.tokens"]
        self._pieces = [bytes(field.parts[at]).decode("utf-8", "replace") for at in field.data]
        which = mistralrs.Which.GGUF(str(path.parent), path.name)
        self._runner = mistralrs.Runner(
            which=which,
            max_seqs=1,
            prefix_cache_n=0,
            no_paged_attn=True,
            token_source="none",  # noqa: S106  nothing is fetched
        )
        self.facts: Answer = {
            "version": f"mistralrs {version('mistralrs')}",
            "driven": f"{job.threads} cores, float16 cache, the wheel of the package index, texts and not ids",
            "computes with": "the file's own weights",
        }

    def prepared(self, prompt: Sequence[int]) -> str:
        """The prompt's text, as far as it is so many tokens to it."""
        text = "".join(self._pieces[token] for token in prompt[1:]).replace("▁", " ")
        most = bisect_right(
            range(len(text)),
            len(prompt),
            key=lambda end: len(self._runner.tokenize_text(text[:end], add_special_tokens=True, enable_thinking=None)),
        )
        self._wanted = len(prompt)
        return text[:most]

    def answer(self, prompt: str, tokens: int) -> Sequence[int]:
        """Stand-ins for the answer's ids, one for each token that it says it made: it gives texts."""
        asked = mistralrs.CompletionRequest(
            model="default", prompt=prompt, max_tokens=tokens, temperature=0.0, top_k=1, best_of=1
        )
        usage = self._runner.send_completion_request(asked).usage
        if abs(usage.prompt_tokens - self._wanted) > CLOSE * self._wanted:
            raise RuntimeError(f"Expected it to read some {self._wanted} tokens, found {usage.prompt_tokens}.")
        return [-1] * usage.completion_tokens


if __name__ == "__main__":
    serve_answers(MistralRs)

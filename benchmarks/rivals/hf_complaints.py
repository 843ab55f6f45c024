"""transformers about three complaints: the file as it opens it, and each context read from its beginning."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import transformers

from benchmarks.complaints.complaints_work import serve_reader
from benchmarks.running.serve import Answer, Job


class Rereading:
    """A model whose cache lives as long as one call, as ``ChatHuggingFace`` uses it."""

    def __init__(self, job: Job) -> None:
        torch.set_num_threads(job.threads)
        load = transformers.AutoModelForCausalLM.from_pretrained
        self._model = load(job.folder, gguf_file=job.model, dtype=getattr(torch, job.dtype)).eval()
        self.facts: Answer = {"version": f"transformers {transformers.__version__}, torch {torch.__version__}"}

    def forget(self) -> None:
        """Nothing is kept that could be forgotten."""

    @torch.inference_mode()
    def first(self, context: Sequence[int]) -> int:
        out = self._model(torch.tensor([list(context)]), use_cache=True, logits_to_keep=1)
        return int(out.logits[0, -1].argmax())


if __name__ == "__main__":
    serve_reader(lambda _: None, Rereading)

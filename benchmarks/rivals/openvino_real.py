"""OpenVINO GenAI on a file: its pipeline for a CPU, which reads GGUF files of some architectures.

Driven with its defaults for latency, in the job's threads. It computes with the file's weights as its reader makes them
anew, and an eight-bit cache, which is its default.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openvino
import openvino_genai

from benchmarks.rivals.whole_answers import serve_answers
from benchmarks.running.serve import Answer, Job


class OpenVino:
    """The file as a pipeline that is given ids."""

    def __init__(self, job: Job) -> None:
        settings = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": job.threads}
        self._pipeline = openvino_genai.LLMPipeline(str(Path(job.folder, job.model)), "CPU", settings)
        self.facts: Answer = {
            "version": f"openvino-genai {openvino_genai.__version__}",
            "driven": f"{job.threads} threads, its hint for latency, its default cache",
            "computes with": "the file's weights as its reader lays them out",
        }

    def prepared(self, prompt: Sequence[int]) -> Any:
        ids = openvino.Tensor(np.array([prompt], np.int64))
        return openvino_genai.TokenizedInputs(ids, openvino.Tensor(np.ones_like(ids.data)))

    def answer(self, prompt: Any, tokens: int) -> Sequence[int]:
        found = self._pipeline.generate(prompt, max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False)
        return list(found.tokens[0])


if __name__ == "__main__":
    serve_answers(OpenVino)

"""All three steps of loading in one call: open a model's files, plan it, read its weights."""

from __future__ import annotations

import os
from typing import Unpack

import jax

from langchain_gemma_jax.ancestry import ancestry
from langchain_gemma_jax.models.configuration.how_to_load import HowToLoad, LoadOptions
from langchain_gemma_jax.models.loading.check_asked import check_asked
from langchain_gemma_jax.models.loading.model import Model
from langchain_gemma_jax.models.loading.open_model import open_again, open_source
from langchain_gemma_jax.models.loading.plan_model import Devices, plan_model
from langchain_gemma_jax.models.loading.read import read, read_again
from langchain_gemma_jax.models.seams.placement import Placement
from langchain_gemma_jax.models.seams.recipe import Recipe
from langchain_gemma_jax.reentry import Inside
from langchain_gemma_jax.stopping import Stop

_loading = Inside("it loaded a model")  # loading holds locks, some on files: a signal handler that loads would deadlock


@_loading.here()
def load(
    source: str | os.PathLike[str],
    *,
    recipe: Recipe | None = None,
    device: jax.Device | Placement | None = None,
    progress: bool | None = None,
    stop: Stop | None = None,
    **how: Unpack[LoadOptions],
) -> Model:
    """Load a model, ready to run.

        model = load("sprout-m")
        model = load("google/gemma-3-1b-it")
        model = load("./my-tuned-gemma", dtype="float32")
        model = load("./gemma-3-4b-it-Q4_K_M.gguf")
        model = load("torchax:Qwen/Qwen3-0.6B")

    Args:
        source: an embedded model's name, a folder (Hugging Face safetensors, or Orbax), a GGUF file, or a model's id
            on the Hugging Face Hub, with ":" and a quantization or a file's name after it for a GGUF file there;
            or "ollama:" and the name of a model that Ollama has fetched; or "torchax:" and a folder or an id, for a
            model of another family, run by transformers' code. A string that is the path of a folder or a file always
            means that one.
        recipe: the memory layout and the products of matrices, and so their dtype. By default the fastest
            on this machine.
        device: the device or placement of the weights. By default the first device of JAX.
        progress: True to draw a progress bar. By default, if standard error is a terminal.
        stop: lets another thread end the download of the files.
        how: further options:

            * ``dtype`` of the matrices on the device, "bfloat16", "float32" or "float16". The checkpoint's own by
              default, but float32 for a float16 one: Gemma's activations can pass float16's range. Norm scales are
              float32 always.
            * ``revision``, on the Hub: a branch, tag or commit.
            * ``token``, on the Hub, for gated models. By default the one that huggingface_hub finds. A folder needs
              none.
            * ``weights``: packs matrices that are dense in the files, while they are read: "int8" or "int4" (8.5 or
              4.5 bits a number). By default they stay as they are in the files.
            * ``activations``: the type of activations in products with packed matrices: "float32", or "int8", rounded
              to eight bits first. By default "int8" where the package's kernels multiply, as they are faster with it;
              else "float32".
            * ``cache_dtype``: "int8" keeps the keys and values of global layers in eight bits. By default they are as
              those of local layers.
            * ``devices``: instead of ``device``, the number of devices that the weights are divided among; "auto": the
              fewest on which they fit.
            * ``drafter``: the folder or the Hub's id of a drafter for this model, which guesses its tokens; "off":
              none. By default the one beside the model, in the folder ``assistant`` or ``<its name>-assistant``.
            * ``trust_remote_code``: True allows Python files in the folder of a model "torchax:..." to be run. By
              default they are not run, and a model that needs them is refused.

    Raises:
        InputError: an argument is wrong. DevicesError: the model cannot be divided among this number of devices.
        CheckpointError: the files cannot be used. The subclass says why.
        HubError: the model could not be fetched.
        ForkedError: this process was forked from one that had used JAX.
        ReentrantCallError: a signal handler calls this while its thread loads a model.

    Nothing stays on the device after an error.
    """
    ancestry.refuse_forked()
    asked = HowToLoad.of(dict(how))
    check_asked(source, asked, recipe=recipe, device=device)
    with open_source(source, asked, progress=progress, stop=stop) as opened:
        return read(opened, plan_model(opened, asked, Devices(device), recipe), progress=progress)


@_loading.here()
def load_again(like: Model, *, progress: bool | None = None) -> Model:
    """Load a model again from the files that it was loaded from: only its weights are read.

    Raises:
        CheckpointError: the files cannot be used, or hold another model now. Nothing stays on the device.
    """
    ancestry.refuse_forked()
    with open_again(like) as opened:
        return read_again(opened, opened.planned_again(like), like, progress=progress)

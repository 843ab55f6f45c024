"""Adapters as PEFT saves them: a folder with ``adapter_config.json`` and ``adapter_model.safetensors``."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from langchain_gemma_jax.errors import CheckpointNotFoundError, UnsafeCheckpointError, UnsupportedModelError
from langchain_gemma_jax.models.adapters.adapter import Adapter, Base, Float32s, LowRank, Place, made, paired
from langchain_gemma_jax.models.adapters.peft_config import peft_config
from langchain_gemma_jax.models.checkpoint.folder import ADAPTER, ADAPTER_WEIGHTS
from langchain_gemma_jax.models.checkpoint.safetensors import SafetensorsFile
from langchain_gemma_jax.models.configuration.links import real_file
from langchain_gemma_jax.models.configuration.strict_json import read_object, short

_PROJECTIONS = "q_proj|k_proj|v_proj|o_proj|gate_proj|up_proj|down_proj"
_NAME = re.compile(
    r"base_model\.model\.(?P<module>(?:model\.|language_model\.){0,3}"
    rf"layers\.(?P<layer>\d{{1,4}})\.(?:self_attn|mlp)\.(?P<projection>{_PROJECTIONS}))\.lora_(?P<half>[AB])\.weight"
)


def read_folder(folder: Path, base: Base) -> Adapter:
    """Read the adapter in a folder for a model.

    Raises:
        CheckpointError: the files cannot be used, or are for another model. ConfigError, UnsupportedModelError: the
        configuration is malformed, or asks for something that is not applied here.
    """
    config = peft_config(read_object(real_file(folder, ADAPTER), folder / ADAPTER), folder / ADAPTER)
    if not (folder / ADAPTER_WEIGHTS).exists():
        if (folder / "adapter_model.bin").exists():
            raise UnsafeCheckpointError(
                folder,
                ADAPTER_WEIGHTS,
                "adapter_model.bin, a pickle",
                "Reading a pickle runs the code in it. Save it again with PEFT's save_pretrained.",
            )
        raise CheckpointNotFoundError(folder, f"{ADAPTER_WEIGHTS} beside {ADAPTER}", "no such file")
    file = SafetensorsFile(folder, ADAPTER_WEIGHTS)
    try:
        halves: dict[str, dict[Place, Float32s]] = {"A": {}, "B": {}}
        modules: dict[Place, str] = {}
        for name in file.entries:
            if (found := _NAME.fullmatch(name)) is None:
                raise UnsupportedModelError(
                    f"{file.path}: adapters change the projections {_PROJECTIONS.replace('|', ', ')} of a language "
                    f"model's layers; found {short(name)}. Merge it into its base model (in PEFT, merge_and_unload), "
                    "save the result, and load that."
                )
            place = int(found["layer"]), found["projection"]
            halves[found["half"]][place] = file.read(name).astype(np.float32)
            modules[place] = found["module"]
    finally:
        file.close()
    pairs: dict[Place, LowRank] = {}
    for place, (down, up) in paired(file.path, halves["A"], halves["B"]).items():
        scale = config.scale(modules[place], down.shape[0])
        pairs[place] = LowRank(down, (up * np.float32(scale)).astype(np.float32))
    return made(folder.resolve().name, file.path, repr(config.base) if config.base else "", pairs, base)

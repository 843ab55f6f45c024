"""Writes the vectors of ``adapters/``: what PEFT on transformers computes for random adapters on tiny models.

    python tests/goldens/make_adapters.py

Needs an environment with torch, transformers 5 and peft. Neither weights nor adapters are stored:
``tests/parity/made_up.py`` makes the same ones from the same names wherever it runs. Each file holds

    tokens [2, all], lengths [2]   two prompts, and the 64 tokens each that greedy decoding adds
    positions [2, few]             where the logits were kept
    logits [2, few, vocabulary]    of one forward over each row
    plain [2, few, vocabulary]     the same without the adapter
    spread                         the standard deviation of all logits
    tensors, adapter               the stored names and shapes of the model and of the adapter, as JSON
    config                         the adapter_config.json that PEFT wrote
    made_by                        the versions
"""

from __future__ import annotations

import json
import logging
import sys
import tempfile
from pathlib import Path

import numpy as np
import peft
import torch
import transformers

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.goldens.adapter_cases import ADAPTED, BASE, SEED, adapter_tensor
from tests.goldens.make import written
from tests.parity.architectures import MULTIMODAL, SHRUNK, WINDOW
from tests.parity.made_up import NEW_TOKENS, prompts
from tests.parity.reference_hf import greedy, make


def saved(model: peft.PeftModel) -> tuple[dict[str, list[int]], str]:
    """The names and shapes of an adapter's tensors, and its configuration, as PEFT saves them."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        content = Path(folder, "adapter_model.safetensors").read_bytes()
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        shapes = {name: header[name]["shape"] for name in sorted(header) if name != "__metadata__"}
        return shapes, Path(folder, "adapter_config.json").read_text()


def main() -> None:
    """Write them all."""
    logging.getLogger("transformers").setLevel(logging.ERROR)
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    for case, (name, options) in ADAPTED.items():
        model = make(name, {**SHRUNK, **MULTIMODAL}[name], SEED)
        tensors, _ = written(model)
        adapted = peft.get_peft_model(model, peft.LoraConfig(**options, lora_dropout=0.0)).eval()
        adapted.peft_config["default"].base_model_name_or_path = BASE
        shapes, config = saved(adapted)
        made = {key: torch.from_numpy(adapter_tensor(key, tuple(shape), case)) for key, shape in shapes.items()}
        wrong = peft.set_peft_model_state_dict(adapted, made)
        if wrong.unexpected_keys:
            raise ValueError(f"{case}: PEFT does not know {wrong.unexpected_keys}")
        tokens, lengths, logits = greedy(model, prompts(name, SEED))
        kept = [[WINDOW - 1, WINDOW, 3 * WINDOW, end - 1, end, end + NEW_TOKENS - 1] for end in lengths]
        with adapted.disable_adapter(), torch.no_grad():
            plain = model(torch.from_numpy(tokens), use_cache=False).logits.numpy()
        spread = np.std(np.concatenate([row[: end + NEW_TOKENS] for row, end in zip(logits, lengths, strict=True)]))
        np.savez_compressed(
            Path(__file__).parent / "adapters" / f"{case}.npz",
            tokens=tokens.astype(np.int32),
            lengths=lengths.astype(np.int32),
            positions=np.array(kept, np.int32),
            logits=np.stack([row[positions] for row, positions in zip(logits, kept, strict=True)]),
            plain=np.stack([row[positions] for row, positions in zip(plain, kept, strict=True)]),
            spread=spread,
            tensors=tensors,
            adapter=json.dumps(shapes),
            config=config,
            made_by=f"peft {peft.__version__}, transformers {transformers.__version__}, torch {torch.__version__}",
        )


if __name__ == "__main__":
    main()

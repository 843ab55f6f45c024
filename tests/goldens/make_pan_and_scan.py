"""Writes ``pan_and_scan.npz``: which pieces of pictures transformers shows a Gemma 3, and the ids around them.

    python tests/goldens/make_pan_and_scan.py

Needs an environment with torch, transformers 5 and Pillow. ``tests/parity/scanned_pictures.py`` says which pictures. Of
each there are

    count_<number>, pixels_<number>  how many pieces, and the last picture that is shown, as bytes
    ids_<number>                     what the processor makes of a text with the picture in it
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import transformers
from transformers.models.gemma3.image_processing_pil_gemma3 import Gemma3ImageProcessorPil
from transformers.models.gemma3.processing_gemma3 import Gemma3Processor

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.parity.media_models import picture
from tests.parity.scanned_pictures import MARKS, MODEL, PROCESSOR, SCANS, SOFT_TOKENS, TEXT, vocabulary


def processor() -> Gemma3Processor:
    """Gemma 3's processor, with a tiny vocabulary."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "tokenizer.json")
        path.write_text(json.dumps(vocabulary()))
        begin, soft, end = MARKS
        tokenizer = transformers.PreTrainedTokenizerFast(
            tokenizer_file=str(path),
            bos_token="<bos>",
            eos_token="<eos>",
            pad_token="<pad>",
            extra_special_tokens={"boi_token": begin, "image_token": soft, "eoi_token": end},
        )
    return Gemma3Processor(Gemma3ImageProcessorPil(**PROCESSOR), tokenizer, image_seq_length=SOFT_TOKENS)


def main() -> None:
    """Write the file."""
    made, kept = processor(), {}
    for index, (number, scan) in enumerate(SCANS):
        options = {f"pan_and_scan_{key}": value for key, value in scan.items()}
        pixels = picture(MODEL, 0, number)
        found = made.image_processor(images=pixels, do_pan_and_scan=True, return_tensors="np", **options)
        kept[f"count_{index}"] = np.asarray(found["num_crops"]).reshape(-1)
        values = np.asarray(found["pixel_values"], np.float32)
        kept[f"pixels_{index}"] = np.round((values[-1] * 0.5 + 0.5) * 255).astype(np.uint8)
        text = made(images=[pixels], text=[TEXT], do_pan_and_scan=True, add_special_tokens=False, **options)
        kept[f"ids_{index}"] = np.asarray(text["input_ids"][0], np.int32)
    made_by = f"transformers {transformers.__version__}"
    np.savez_compressed(Path(__file__).with_name("pan_and_scan.npz"), **kept, made_by=made_by)


if __name__ == "__main__":
    main()

"""The token ids that llama.cpp makes of texts, by the tokenizer in a GGUF file.

.envs/llama/bin/python tests/real/reference_llama.py FILE < texts.json > ids.json
"""

from __future__ import annotations

import json
import sys

import llama_cpp

model = llama_cpp.Llama(sys.argv[1], vocab_only=True, verbose=False)
json.dump([model.tokenize(text.encode(), add_bos=False, special=False) for text in json.load(sys.stdin)], sys.stdout)

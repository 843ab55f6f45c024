r"""Text to token ids and back, for both formats that Gemma ships in.

    tokenizer = load_tokenizer(folder)
    ids = tokenizer.encode_scaffold("<start_of_turn>user\n") + tokenizer.encode_text(words)
    tokenizer.decode(ids, keep_control=True)

``control.py`` decides which strings are control tokens, ``interface.py`` keeps text and control tokens
apart, ``stream.py`` decodes while a model generates. Any thread may use a tokenizer. The room may import
``models.checkpoint`` (its links), ``models.configuration`` and ``errors``.
"""

from langchain_gemma_jax.models.tokenizer.interface import Tokenizer
from langchain_gemma_jax.models.tokenizer.load import load_tokenizer, tokenizer_digest
from langchain_gemma_jax.models.tokenizer.stream import StreamDecoder

__all__ = ["StreamDecoder", "Tokenizer", "load_tokenizer", "tokenizer_digest"]

"""Tokenizer files in the formats that Gemma ships in, read without trust: SentencePiece, and Hugging Face's JSON.

The thread that loads a model runs this code. The room owns the readers; what they give is in ``models.tokenizer``,
which it may import, beside ``errors``.
"""

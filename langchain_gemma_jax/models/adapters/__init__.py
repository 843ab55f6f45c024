"""Adapters of low rank (LoRA) in files: PEFT's folders and llama.cpp's GGUF adapters, read for one model and checked.

Callers' own threads run this code, before a request is submitted. The room owns the files that it opens until they are
read; what it gives is plain arrays in host memory. It may import ``models.gguf``, ``models.checkpoint``,
``models.seams`` and ``models.configuration``.
"""

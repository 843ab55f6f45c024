"""Gemma itself: configuration, forward pass, matmul recipes, tokenizers, checkpoint readers."""

"""Makes the embedded models: their tokenizer, what they learn from, the training loop, and their scores."""

"""Reading model files: which tensors a folder holds, what they are called, and where they go."""

"""Any causal language model of Hugging Face transformers on JAX, through torchax.

    model = load("torchax:Qwen/Qwen3-0.6B")

transformers has the code of the model and reads its weights, torchax traces that code for JAX, and the engine serves
the result like a Gemma: ``torch_model.py`` is the architecture, ``traced_pass.py`` its cache and its attention. PyTorch
is imported only by ``libraries.py``, and only for a model whose name begins with "torchax:". Loading runs in the
caller's thread, tracing in the thread that makes a program, one at a time. The room
may import the rooms of ``models`` and ``errors``.
"""

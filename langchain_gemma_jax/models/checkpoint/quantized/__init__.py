"""Google's quantized releases as folders of safetensors: their configuration, their tensors, their products.

Everything here is traced or runs on the thread that loads a model. The room owns the files that it opens until the
caller closes them. It may import ``models.packed``, ``models.checkpoint`` and ``models.configuration``.
"""

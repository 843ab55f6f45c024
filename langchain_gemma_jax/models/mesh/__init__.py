"""One model on several devices of this process: how its arrays are divided, and what the devices tell each other.

``device_mesh`` is the placement, ``partitions`` its arithmetic, ``divided_gemma`` the forward pass in which each device
works with its part, ``tensor_parallel`` divides models of other families, and ``counts`` says how many devices there
are to be. The thread that loads a model comes here, and whoever traces its programs. The room may import
``models.gemma``, ``models.configuration`` and the seams of ``models``.
"""

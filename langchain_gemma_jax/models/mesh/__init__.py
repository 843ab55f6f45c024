"""One model on several devices of this process: the placement of its arrays, and the choice of devices.

``device_mesh`` is the placement, ``tensor_parallel`` divides models of other families than Gemma, and ``counts``
chooses the number of devices. The code runs on the thread that loads a model, and where programs are traced. The room
may import ``models.gemma``, ``models.configuration`` and the seams of ``models``.
"""

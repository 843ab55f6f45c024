"""What models see: pictures prepared as they were trained on, and the towers that make vectors of them.

``support`` says what a model can take, and ``place`` turns a decoded picture into what stands in a prompt; both are
numpy on the caller's thread. The towers are traced code: pure functions over a tree of weights, which the engine
runs. The room may import ``media`` and the rooms of ``models`` below it.
"""

"""Models of all kinds: found, checked, loaded into memory, and described to the engine.

This room owns a loaded ``Model`` and the three seams by which models differ: ``architecture``, ``weights`` and
``placement``. Its sub-rooms fetch files (``hub``), read them (``checkpoint``, ``tokenizer``), say what a model is
(``configuration``), compute (``gemma``) and choose how to multiply (``recipes``). Callers' own threads load models
here; what is traced runs on whichever thread traces it. It may import ``private`` and the plain files below it.
"""

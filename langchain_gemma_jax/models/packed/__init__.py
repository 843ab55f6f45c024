"""Matrices that stay packed: block formats as pytrees of small arrays, their products and their rows.

The code is traced or runs on the thread that loads a model. The room owns no file and no state. It may import
``models.weights``, ``models.checkpoint.parts`` and ``models.configuration``.
"""

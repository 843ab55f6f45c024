"""Downloads from the Hugging Face Hub or a mirror of it: requests, stopping, errors.

The thread that loads a model runs this code, and another thread may stop it. The room owns no file: the Hub's library
keeps them in its cache. It may import ``models.checkpoint``, ``models.configuration`` and ``stopping``.
"""

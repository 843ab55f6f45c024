"""Downloads from the Hugging Face Hub, or from a mirror of it: what is asked, what is stopped, what goes wrong.

The thread that loads a model runs this code, and another one may stop it. The room owns no file: the Hub's library
keeps them in its cache. It may import ``models.checkpoint``, ``models.configuration`` and ``stopping``.
"""

"""The table of settings: each once, with its name, type, check, default and documentation.

The models of LangChain inherit their fields from it, a call's options and their form on the wire are made of it, and so
are flags of the command and the page of settings. Plain Python, on the thread of the caller. The room may import
``routing``, ``dialects``, ``engine.base``, ``models.configuration`` and what is below them.
"""

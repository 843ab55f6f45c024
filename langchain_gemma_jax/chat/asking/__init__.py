"""The request of one call: settings, tools, the form of the answer and the grammar that it is held to, all checked.

The caller's thread runs it, when a model is made, when tools are bound and at each call. The room may import
``routing``, ``dialects``, ``grammar``, the sampling options of ``engine.base``, and from ``models`` what is known of
published ones.
"""

"""Pictures and sounds as they arrive: decoded, bounded, told apart by what is in them.

This room owns the way from a message's bytes to plain arrays. It knows no model: what a model makes of a picture is
said in ``models.vision``. Everything here is numpy on the caller's thread; no JAX. The
room may import the plain files below it.
"""

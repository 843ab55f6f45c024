"""Compiled programs, kept from one process to the next, and trusted no further than their digests go."""

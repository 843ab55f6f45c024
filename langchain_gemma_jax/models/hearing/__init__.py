"""The audio encoder of Gemma 4's small sizes: spectrograms of sounds, and the conformer that makes soft tokens of them.

``spectrogram`` is numpy on the caller's thread, ``conformer`` is traced code. The room may import ``vision``, whose
seams it shares, and the rooms of ``models`` below it.
"""

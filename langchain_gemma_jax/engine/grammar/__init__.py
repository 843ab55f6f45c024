"""What a text is held to: a grammar, how it is told to llguidance, and the shortest way to end a text that has begun.

    nodes.py         what a grammar is made of
    characters.py, pattern.py, pattern_text.py    sets of characters, patterns of them, patterns as schemas write them
    leaves.py        the parts of a text that have no further structure: strings, numbers, free text
    automaton.py, utf8.py                         which byte can come next in a leaf, and how far its end is
    lark.py          a grammar in llguidance's language
    ending.py        where in its grammar a text is, and its shortest ending

Plain Python: a grammar is made where tools are bound, long before there is a model.
"""

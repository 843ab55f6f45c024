"""What a text is held to: a grammar, and how it is told to llguidance, which knows what can come next.

    nodes.py           what a grammar is made of
    terminals.py       the parts of a text that have no further structure, as llguidance's terminals
    pattern_text.py    patterns as schemas write them
    reading.py         what compiling and matching may cost; whether a text fits a terminal, and whether any does
    lark.py            a grammar in llguidance's language

Plain Python: a grammar is made where tools are bound, long before there is a model.
"""

"""The stages of training: each adds to what is made up, and what the ones before it make stays as it is.

The first is what a model begins with, and the second has more of what was still wrong then.
"""

LIKE_PEOPLE = 3  # what people have and say
WIDER = 4  # more of that
PLAINER = 5  # plain sentences, in very many ways, and fewer words at random
FULLER = 6  # more of both, and what is told is not in a list
LIFELIKE = 7  # values have the shapes that people write
HANDS_ON = 8  # what agents hand to computers: commands, queries, code, paths; and numbers in words
CALLING = 9  # the same, and more of the calls themselves
LAST = CALLING

"""Who runs what, when, on which memory.

    engine().load(...)      a model
    engine().submit(...)    a request: a stream of pieces, then a completion

``owner.py`` has the loop; ``process.py`` sees to it that there is one engine a process.
"""

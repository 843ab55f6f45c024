"""The layer between LangChain and the engine: the options of a call, messages in, messages out.

Plain Python in rooms of its own, from the top down: ``calling``, ``model_choice``, ``answering``, ``asking``,
``history``. Nothing here is run by the owner thread: the caller's thread does it all, or one of the threads that
begin calls for an event loop. The room may import ``routing``, ``dialects``, ``grammar``, the ``engine``, ``models``
and LangChain's core.
"""

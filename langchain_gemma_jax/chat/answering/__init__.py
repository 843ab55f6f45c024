"""What comes of a call: events out of tokens, an answer out of events, LangChain's messages and objects out of answers.

The caller's thread runs it; a long answer to an event loop is put together in a thread beside the loop. The room may
import ``chat.asking``, ``dialects``, and from the ``engine`` what a request gives.
"""

"""Results of a call: events from tokens, an answer from events, LangChain's messages and objects from answers.

The caller's thread runs it; a long answer to an event loop is put together in a thread beside the loop. The room may
import ``chat.asking``, ``dialects``, and from the ``engine`` what a request gives.
"""

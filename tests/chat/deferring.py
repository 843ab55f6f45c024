"""A chat model whose tools are all deferred, whoever binds them."""

from __future__ import annotations

from langchain_gemma_jax import ChatGemmaJax
from langchain_gemma_jax.chat.asking.tool_choice import openai_tools


class Deferring(ChatGemmaJax):
    """Has to search for each tool before it can call it."""

    def bind_tools(self, tools, **given):
        return super().bind_tools([{**form, "defer_loading": True} for form in openai_tools(tools)], **given)

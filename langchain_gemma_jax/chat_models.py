"""The chat model, at the import path that LangChain's partner packages use."""

from langchain_gemma_jax.chat_model import ChatGemmaJax

__all__ = ["ChatGemmaJax"]

"""The chat model, where LangChain's partner packages have theirs."""

from langchain_gemma_jax.chat_model import ChatGemmaJax

__all__ = ["ChatGemmaJax"]

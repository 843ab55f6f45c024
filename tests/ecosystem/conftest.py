"""The same models and engines as the chat model's own tests."""

from tests.chat.conftest import chat_of, folder_of, running, scripted, whole_of

__all__ = ["chat_of", "folder_of", "running", "scripted", "whole_of"]

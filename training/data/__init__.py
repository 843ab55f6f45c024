"""Conversations to learn from, all of them made up by the templates and word lists in this package."""

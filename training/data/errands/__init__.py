"""Scenarios of training alone, in their short form: a few lines each."""

"""Benchmarks, one folder a subject: README.md says what each program measures."""

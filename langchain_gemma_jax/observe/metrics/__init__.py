"""The engine's numbers for Prometheus, under names of its own and under vLLM's.

A scrape reads what the engine has counted already, on the scraper's thread: it waits for no lock of the engine and
touches no device. It may import the engine's report, counters and process.
"""

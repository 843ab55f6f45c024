"""The engine's numbers for Prometheus, under names of its own and under vLLM's.

Read on the threads of whoever scrapes, from what the engine counted already: a scrape waits for no lock of the engine
and touches no device. It may import the engine's report, counters and process.
"""

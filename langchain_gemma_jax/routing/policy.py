"""The default policy of a route: use the smallest size that will do, and do not switch back and forth."""

from __future__ import annotations

from langchain_gemma_jax.routing.signals import Choice, Signals

PER_TOOL, PER_RESULT = 0.5, 1.0
MOST_OF_TOOLS = 3.0  # many tools are hard to choose from, but they do not make small talk hard
FORCED = STRUCTURED = 4.0
PER_TOKEN = 1 / 1000
UP, DOWN = 4.0, 2.0  # the load from which on the largest size is wanted, and up to which the smallest will do
QUIET_TURNS = 2  # turns without a call before a smaller size takes over again
PATIENCE_S = 30.0  # a switch to a larger size that takes longer is left, unless something failed


def load(signals: Signals) -> float:
    """Return a score of how demanding a step is."""
    return (
        min(MOST_OF_TOOLS, PER_TOOL * signals.tools)
        + FORCED * signals.forced
        + STRUCTURED * signals.structured
        + PER_RESULT * signals.results
        + PER_TOKEN * signals.prompt_tokens
    )


def default_policy(signals: Signals) -> Choice:
    """Choose the smallest size that will do; a larger one after a failed call; otherwise keep the last one.

    When answers are judged, the smallest size tries first: its answer says more than any guess made before.

    >>> default_policy(Signals(sizes=("light", "heavy"), tools=2, forced=True))
    Choice(size='heavy', reason='load 5.0: it asks much')
    """
    sizes, last = signals.sizes, signals.last
    if last is None:
        return _first(signals)
    place = sizes.index(last)
    if signals.failed and place + 1 < len(sizes):
        return Choice(sizes[place + 1], f"a call failed on {last}")
    if signals.results:
        return Choice(last, "a tool loop is not split")
    asked, at = load(signals), _place(signals)
    cost = signals.switch_s.get(sizes[at], 0.0)
    if at > place and asked >= UP and not signals.judged:
        if cost > PATIENCE_S:
            return Choice(last, f"load {asked:.1f}, and a switch would take {cost:.0f} s")
        return Choice(sizes[at], f"load {asked:.1f}: more than {last} is for")
    if at < place and asked <= DOWN:
        if signals.quiet_turns < QUIET_TURNS:
            return Choice(last, f"load {asked:.1f}, and tools were called not long ago")
        return Choice(sizes[at], f"load {asked:.1f}: {signals.quiet_turns} turns without a call")
    return Choice(last, f"load {asked:.1f}: as before")


def _first(signals: Signals) -> Choice:
    if signals.judged:
        return Choice(signals.sizes[0], "it tries, and a larger one takes over if it may be wrong")
    asked = load(signals)
    place = _place(signals)
    if DOWN < asked < UP:
        # Between the two either would do, and one that is there need not be loaded.
        there = [size for size in signals.sizes if size in signals.resident]
        if there:
            return Choice(there[-1], f"load {asked:.1f}: it is in memory")
    return Choice(signals.sizes[place], f"load {asked:.1f}: " + ("it asks much" if place else "it asks little"))


def _place(signals: Signals) -> int:
    """Return the index of the size for a load: the smallest up to ``DOWN``, the largest from ``UP``, linear between."""
    highest = len(signals.sizes) - 1
    share = (load(signals) - DOWN) / (UP - DOWN)
    return min(highest, max(0, round(share * highest)))

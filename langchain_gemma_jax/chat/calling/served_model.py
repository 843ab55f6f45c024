"""The engine's model for a call: loaded as the call asks for it, kept for as long as it says, and submitted to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from langchain_gemma_jax.chat.asking.options import Options, name_source
from langchain_gemma_jax.engine.api.generation import Generation
from langchain_gemma_jax.engine.base.guards import Asking
from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.engine.requests.clock import Clock, Steps
from langchain_gemma_jax.engine.requests.prompt import Prompt
from langchain_gemma_jax.errors import GemmaJaxError
from langchain_gemma_jax.models.configuration.how_to_load import HowToLoad
from langchain_gemma_jax.settings.durations import seconds_of

if TYPE_CHECKING:
    from langchain_gemma_jax.engine.residency.served import Served


def load(model: str, how: HowToLoad, keep_alive: float | str | None, clock: Clock) -> Served:
    """Return a model, loaded if it is not yet, and if there is time for that. This thread waits.

    Raises:
        GemmaJaxError: as ``engine().load`` has it. It says so if the environment named the model.
    """
    from langchain_gemma_jax.engine.api.process import engine

    limit = {} if clock.left is None else {"timeout": clock.left}  # else the engine's own, which is for room alone
    try:
        served = engine().load(model, **limit, **how.arguments())
    except GemmaJaxError as error:
        name_source(error, model)
        raise
    return _kept(served, keep_alive)


def arriving(options: Options, clock: Clock) -> Steps[Served]:
    """Load a call's model in steps, so that no thread waits for it. The errors are those of ``load``."""
    from langchain_gemma_jax.engine.api.process import engine

    asks = Asking(options.app, options.guards)
    return _named(engine().arriving(options.model, options.how_to_load, clock, asks), options)


def submit(
    served: Served, prompt: Sequence[int] | Prompt, sampling: Sampling, options: Options, clock: Clock, system: int = 0
) -> Generation:
    """Have the engine continue a prompt, as part of the call that a clock is for."""
    from langchain_gemma_jax.engine.api.process import engine

    if options.adapter is not None:
        whole = prompt if isinstance(prompt, Prompt) else Prompt.of_tokens(prompt)
        prompt = whole.under(engine().adapter(served, options.adapter, token=options.how_to_load.token))
    generation = engine().submit(
        served,
        prompt,
        sampling,
        scope=options.scope,
        system=system,
        app=options.app,
        guards=options.guards,
        timeout=clock.left,
        ahead=options.ahead,
    )
    generation.on(clock)
    return generation


def _named(steps: Steps[Served], options: Options) -> Steps[Served]:
    try:
        served = yield from steps
    except GemmaJaxError as error:
        name_source(error, options.model)
        raise
    return _kept(served, options.keep_alive)


def _kept(served: Served, keep_alive: float | str | None) -> Served:
    from langchain_gemma_jax.engine.api.process import engine

    if keep_alive is not None:
        engine().keep_alive(served, seconds_of(keep_alive, "keep_alive"))
    return served

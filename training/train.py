"""Trains an embedded model from nothing, and goes on where it was stopped.

    python -m training.train sprout-s runs/sprout-s

How much is read and in which batches is in ``presets.py``. Each setting can be given by itself. With the same settings,
a run gives the same weights on the same kind of device.

The run's folder gets the tokenizer, the checkpoint, progress lines in ``log.txt`` and the loss as
``loss.svg``. The same command goes on from the checkpoint. All devices share each batch.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from threading import Event
from typing import Any, cast, get_type_hints

import jax
import jax.numpy as jnp
import numpy as np
import optax  # type: ignore[import-untyped]

from langchain_gemma_jax.models.seams.params import Params
from training import begin, checkpoints, passed_on, presets
from training.checkpoints import Progress
from training.configs import HF_CONFIGS, model_config
from training.data.stream import Plan, batches
from training.forward import mean_loss
from training.look import HEADS
from training.memory import begin_anew_with_large_pages, keep_what_is_freed
from training.optimizer import optimizer
from training.plot import plot
from training.which import AFTER, OF_TOOLS

CHECKPOINT = "checkpoint.safetensors"


@dataclass(frozen=True)
class Settings:
    """What makes a run what it is: with the same settings it gives the same weights."""

    model: str
    tokens: int
    rows: int
    length: int
    ramp_tokens: int
    warmup_tokens: int
    rate: float = 3e-3
    decay_share: float = 0.5
    long_share: float = 0.1  # of the steps, at the end, have rows four times as long, and a quarter as many
    prompt_weight: float = 0.1
    inner_weight: float = 1.0  # of tokens inside a word or a number
    look_weight: float = 0.3  # of heads that are taught where to look
    strange: float = 0.0  # of tools: they do what no real word is for
    stage: int = 1  # of what is made up: each has more than the one before (``data/world.py``)
    seed: str = "sprout"
    dtype: str = "bfloat16"
    grown_from: str = ""  # the folder of the exported model that it begins as, grown if that is smaller
    kept_share: float = 1.0  # of what is exported is what it ends as, and the rest what it began as

    @property
    def step_tokens(self) -> int:
        return self.rows * self.length

    @property
    def steps(self) -> int:
        return max(4, self.tokens // self.step_tokens)


State = tuple[Params, Any]


def initial(settings: Settings) -> State:
    """New parameters and the optimizer's state."""
    config = model_config(settings.model)
    if settings.grown_from:
        return _with_memory(settings, begin.where_it_ended(Path(settings.grown_from), config, settings.seed))
    return _with_memory(settings, begin.at_nothing(config, settings.seed))


def _with_memory(settings: Settings, params: Params) -> State:
    return params, jax.jit(_optimizer(settings).init)(params)


def _optimizer(settings: Settings) -> optax.GradientTransformation:
    steps = settings.steps
    warmup = min(max(1, settings.warmup_tokens // settings.step_tokens), steps // 4)
    decay = max(1, int(steps * settings.decay_share))
    return optimizer(settings.rate, steps, warmup, decay, jnp.dtype(settings.dtype))


def load_params(run: Path) -> tuple[Params, dict[str, Any]]:
    """The parameters of a run's checkpoint, and its settings."""
    settings = checkpoints.read_progress(run / CHECKPOINT).settings
    return _load(run, Settings(**settings))[0], settings


def kept(run: Path) -> tuple[Params, Settings]:
    """What a run leaves: what it ended as, or a mean of that and of what it began as, which has most of both."""
    params, chosen = load_params(run)
    settings = Settings(**chosen)
    if (share := settings.kept_share) < 1:
        began = begin.where_it_ended(Path(settings.grown_from), model_config(settings.model), "")
        params = cast("Params", jax.tree.map(lambda end, start: share * end + (1 - share) * start, params, began))
    return params, settings


def _load(run: Path, settings: Settings) -> State:
    return checkpoints.load(
        run / CHECKPOINT, _with_memory(settings, begin.at_nothing(model_config(settings.model), settings.seed))
    )


@lru_cache(maxsize=1)
def train_step(settings: Settings) -> Callable[..., tuple[State, dict[str, jax.Array]]]:
    """One step, compiled once a process: ``state, batch -> state, figures``."""
    made = _optimizer(settings)
    config, dtype = model_config(settings.model), jnp.dtype(settings.dtype)
    looking = HEADS.get(settings.model, ()) if settings.look_weight else ()
    after: Sequence[int] = AFTER.get(settings.model, ()) if settings.look_weight else ()
    after = after if settings.stage > 1 else after[:OF_TOOLS]
    passing = passed_on.AFTER.get(settings.model, ()) if settings.look_weight else ()

    @partial(jax.jit, donate_argnums=0)
    def step(state: State, batch: Mapping[str, jax.Array]) -> tuple[State, dict[str, jax.Array]]:
        params, memory = state
        (_, figures), gradients = jax.value_and_grad(mean_loss, has_aux=True)(
            params, config, batch, dtype, looking, settings.look_weight, after, passing
        )
        updates, memory = made.update(gradients, memory, cast("optax.Params", params))
        return (cast("Params", optax.apply_updates(cast("optax.Params", params), updates)), memory), figures

    return step


def train(
    settings: Settings,
    run: Path,
    *,
    workers: int = 0,
    save_seconds: float = 300,
    seconds: float | None = None,
    stop: Event | None = None,
) -> None:
    """Train until ``settings.tokens`` are read, for so many seconds, or until ``stop``. What is done is saved."""
    stop = stop or Event()
    begin.prepare(run, Path(settings.grown_from) if settings.grown_from else None)
    if (run / CHECKPOINT).exists():
        progress, state = checkpoints.read_progress(run / CHECKPOINT), _load(run, settings)
    else:
        progress, state = Progress(0, dataclasses.asdict(settings), []), initial(settings)
    history, first = progress.history, progress.step
    share, whole = _shardings()
    state = jax.device_put(state, whole)
    step = train_step(settings)
    plan = Plan(
        run / "tokenizer",
        settings.seed,
        settings.rows,
        settings.length,
        settings.ramp_tokens,
        long_from=settings.steps - int(settings.steps * settings.long_share) if settings.long_share else None,
        prompt_weight=settings.prompt_weight,
        inner_weight=settings.inner_weight,
        strange=settings.strange,
        stage=settings.stage,
    )

    def save(done: int) -> None:
        checkpoints.save(run / CHECKPOINT, jax.device_get(state), Progress(done, dataclasses.asdict(settings), history))
        plot(run / "loss.svg", history, settings.model)

    began = saved = time.monotonic()
    recent: list[dict[str, jax.Array]] = []
    with closing(batches(plan, first, workers)) as stream, (run / "log.txt").open("a") as log:
        for number in range(first, settings.steps):
            state, figures = step(state, jax.device_put(next(stream), share))
            recent.append(figures)
            now = time.monotonic()
            if number % 20 == 19 or number + 1 == settings.steps:
                loss, accuracy = (
                    float(np.mean([float(each[name]) for each in recent])) for name in ("loss", "accuracy")
                )
                shown = {
                    kind: np.mean([np.asarray(each[kind]) for each in recent], axis=0)
                    for kind in ("looks", "which", "passed")
                    if kind in recent[0]
                }
                recent = []
                tokens = (number + 1) * settings.step_tokens
                history.append([tokens, loss, accuracy])
                speed = (number + 1 - first) * settings.step_tokens / (time.monotonic() - began)
                line = (
                    f"{tokens / 1e6:8.2f} M tokens  loss {loss:7.4f}  accuracy {accuracy:6.2%}  {speed:9,.0f} tokens/s"
                )
                for kind, shares in shown.items():
                    line += f"  {kind} " + " ".join(f"{share:4.0%}" for share in shares)
                sys.stdout.write(line + "\n")
                sys.stdout.flush()
                log.write(line + "\n")
                log.flush()
            if now - saved > save_seconds:
                save(number + 1)
                saved = now
            if stop.is_set() or (seconds is not None and now - began > seconds):
                save(number + 1)
                return
    save(settings.steps)


def _shardings() -> tuple[jax.sharding.Sharding, jax.sharding.Sharding]:
    """Batches are shared among the devices by rows; each device has all parameters."""
    mesh = jax.sharding.Mesh(np.asarray(jax.devices()), ("rows",))
    by_rows, nothing = jax.sharding.PartitionSpec("rows"), jax.sharding.PartitionSpec()
    return jax.sharding.NamedSharding(mesh, by_rows), jax.sharding.NamedSharding(mesh, nothing)


def default_workers() -> int:
    """How many processes should make conversations: none where each core is wanted for training itself."""
    return 0 if jax.default_backend() == "cpu" else max(1, (os.cpu_count() or 2) - 2)


def main() -> None:
    """Train an embedded model, or go on with it."""
    keep_what_is_freed()
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("model", choices=sorted(HF_CONFIGS))
    parser.add_argument("run", type=Path, help="the run's folder")
    for name, kind in get_type_hints(Settings).items():
        if name != "model":
            parser.add_argument("--" + name.replace("_", "-"), type=kind)
    parser.add_argument("--workers", type=int, default=default_workers(), help="processes that make conversations")
    parser.add_argument("--seconds", type=float, default=None, help="stop and save after so long")
    parser.add_argument("--save-seconds", type=float, default=300, help="between checkpoints")
    arguments = vars(parser.parse_args())
    names = {field.name for field in dataclasses.fields(Settings)}
    chosen = {name: value for name, value in arguments.items() if name in names and value is not None}
    run = arguments["run"]
    if (run / CHECKPOINT).exists():  # a run keeps its settings
        chosen = checkpoints.read_progress(run / CHECKPOINT).settings | chosen
    settings = Settings(**presets.preset(arguments["model"]) | chosen)
    sys.stdout.write(json.dumps(dataclasses.asdict(settings)) + "\n")
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    train(
        settings,
        run,
        workers=arguments["workers"],
        save_seconds=arguments["save_seconds"],
        seconds=arguments["seconds"],
        stop=stop,
    )


if __name__ == "__main__":
    begin_anew_with_large_pages()
    main()

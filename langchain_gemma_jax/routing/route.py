"""``Route``: several sizes of model, a policy that chooses among them, and the checks of both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.routing.calibration import ENOUGH, KNOWN, Calibration
from langchain_gemma_jax.routing.policy import default_policy
from langchain_gemma_jax.routing.signals import Choice, Signals

Policy: TypeAlias = Callable[[Signals], Choice]

AUTO = "auto"


@dataclass(frozen=True, init=False)
class Route:
    """Sizes by name, smallest first, and the policy that chooses among them.

        Route(light="google/gemma-3-270m-it", heavy="google/gemma-3-4b-it")
        Route(small="./270m", middle="./1b", large="./4b", confidence=0.6)
        Route(light="./270m", heavy="./1b", policy=lambda signals: Choice("heavy", "always"))

    If an answer of a smaller size is not likely enough to be right, the next larger size answers again. ``confidence``,
    from 0 to below 1, is the probability that is required; 0 takes every answer. None requires 0.7 of the sizes that
    have a known calibration. ``calibration`` sets one by size: ``{"light": Calibration(calls=1.5)}``.

    Raises:
        InputError: fewer than two sizes, one that is no model's name, two that are the same model.
    """

    sizes: Mapping[str, str]
    policy: Policy = default_policy
    confidence: float | None = None
    calibration: Mapping[str, Calibration] = field(default_factory=dict)

    def __init__(
        self,
        *,
        policy: Policy = default_policy,
        confidence: float | None = None,
        calibration: Mapping[str, Calibration] | None = None,
        **sizes: str,
    ) -> None:
        for name, model in sizes.items():
            if not _is_model(model):
                raise InputError(f"route: expected a folder or a model's id for {name!r}; found {model!r}.")
        if len(sizes) < 2 or len(set(sizes.values())) < len(sizes):
            raise InputError(
                "route: expected two or more models that differ, smallest first, such as Route(light=..., heavy=...); "
                f"found {dict(sizes)!r}."
            )
        if confidence is not None and not _is_share(confidence):
            raise InputError(f"route: expected a confidence from 0 to below 1, or None; found {confidence!r}.")
        for name, known in (calibration or {}).items():
            if name not in sizes or not isinstance(known, Calibration):
                names = ", ".join(sizes)
                raise InputError(f"route: expected a Calibration for one of {names}; found {name!r}: {known!r}.")
        if not callable(policy):
            raise InputError(f"route: expected a policy that takes Signals and gives a Choice; found {policy!r}.")
        object.__setattr__(self, "sizes", dict(sizes))
        object.__setattr__(self, "policy", policy)
        object.__setattr__(self, "confidence", confidence)
        object.__setattr__(self, "calibration", dict(calibration or {}))

    @property
    def plain(self) -> Route | dict[str, str]:
        """The route in a form that can be stored and sent: its sizes, if it has nothing else."""
        plain = self.policy is default_policy and self.confidence is None and not self.calibration
        return dict(self.sizes) if plain else self

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the sizes, smallest first."""
        return tuple(self.sizes)

    def name_of(self, model: str | None) -> str | None:
        """Return the name of the size that has this model, or None."""
        return next((name for name, known in self.sizes.items() if known == model), None)

    def larger(self, name: str) -> str | None:
        """Return the next larger size; None after the largest."""
        place = self.names.index(name) + 1
        return self.names[place] if place < len(self.names) else None

    def judge(self, name: str) -> Calibration | None:
        """Return the calibration by which a size's answers are judged; None if all of them are taken."""
        if self.confidence == 0 or self.larger(name) is None:
            return None
        known = self.calibration.get(name) or KNOWN.get(self.sizes[name])
        return Calibration() if known is None and self.confidence is not None else known

    @property
    def enough(self) -> float:
        """The probability of being right that an answer needs in order to be taken."""
        return ENOUGH if self.confidence is None else self.confidence

    @property
    def judged(self) -> bool:
        """True if the answers of all sizes but the largest are judged."""
        return all(self.judge(name) is not None for name in self.names[:-1])

    def choose(self, signals: Signals) -> Choice:
        """Ask the policy for a choice, and check it.

        Raises:
            InputError: the policy returned something other than a choice among the sizes.
        """
        return checked_choice(self.policy(signals), self.names)


def checked_choice(choice: object, names: Sequence[str]) -> Choice:
    """Return a policy's result, checked to be a choice among these names.

    Raises:
        InputError: it is not.
    """
    if not isinstance(choice, Choice) or choice.size not in names:
        raise InputError(f"route: expected the policy to give a Choice of {', '.join(names)}; it gave {choice!r}.")
    return choice


def as_route(value: object) -> Route | None:
    """Return a ``Route`` from one, or from a dictionary of sizes by name.

    Raises:
        InputError: it is neither.
    """
    if value is None or isinstance(value, Route):
        return value
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        if options := set(value) & {"policy", "confidence", "calibration"}:
            raise InputError(f"route: {', '.join(sorted(options))} cannot be in a dictionary. Use Route(...).")
        return Route(**value)
    raise InputError(
        'route: expected Route(light=..., heavy=...), or a dictionary such as {"light": "./a", "heavy": "./b"}; found '
        f"{value!r}."
    )


def _is_model(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip()) and value != AUTO


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1


# The type of a route as a setting. ``as_route`` checks the value, and pydantic only sees Any: it would read the source
# of everything that a Route is made of, which takes as long as importing a quarter of this package.
if TYPE_CHECKING:
    Sizes: TypeAlias = Route | dict[str, str]
else:
    Sizes = Any

"""The same error for several readers: equal, and no two of them the same object."""

from __future__ import annotations

import traceback
import weakref

import pytest

from langchain_gemma_jax.engine.host.error_copies import again, clear_functions
from langchain_gemma_jax.errors import ContextLengthError, CorruptCheckpointError, DeviceFailedError, EngineError


def raised(error: Exception) -> Exception:
    error.add_note("a note")
    error.__cause__ = KeyError("cause")
    try:
        raise error
    except type(error) as caught:
        return caught


@pytest.mark.parametrize(
    "error",
    [
        OSError(2, "no such file", "a.json"),
        ContextLengthError(9, 5),
        CorruptCheckpointError("a/b", "this", "that", "Try again."),
        DeviceFailedError("broken"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_twin_is_equal_in_everything(error):
    original = raised(error)
    twin = again(original)
    assert twin is not original
    assert type(twin) is type(original)
    assert str(twin) == str(original)
    assert {k: v for k, v in vars(twin).items() if k != "__notes__"} == {
        k: v for k, v in vars(original).items() if k != "__notes__"
    }
    assert twin.__cause__ is original.__cause__
    assert twin.__suppress_context__
    assert twin.__notes__ == original.__notes__
    assert twin.__notes__[-1] == "a note"


def test_raising_a_twin_leaves_the_original_and_other_twins_alone():
    original = raised(DeviceFailedError("broken"))
    before = traceback.format_exception(original)
    first, second = again(original), again(original)
    for _ in range(3):
        with pytest.raises(DeviceFailedError):
            raise first
    first.add_note("mine")
    assert traceback.format_exception(original) == before == traceback.format_exception(second)
    assert len(traceback.extract_tb(first.__traceback__)) > len(traceback.extract_tb(original.__traceback__))


class OddError(Exception):
    """Its constructor does not take what an exception remembers of it."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


class ChangingError(Exception):
    """A copy says something else."""

    def __init__(self, text: str) -> None:
        super().__init__(f"<{text}>")


@pytest.mark.parametrize("error", [OddError(1, 2), ChangingError("x")])
def test_what_cannot_be_copied_is_told_by_name(error):
    twin = again(error)
    assert type(twin) is EngineError
    assert type(error).__name__ in str(twin)
    assert str(error) in str(twin)
    assert twin.__cause__ is error


class Large:
    """Something that a function works on."""


def test_an_error_keeps_nothing_alive_of_functions_and_ends_no_generator():
    error, kept = ValueError("the same object is raised again"), []

    def works() -> None:
        large = Large()
        kept.append(weakref.ref(large))
        raise error

    def goes_on():
        while True:
            try:
                works()
            except ValueError:
                yield 1

    generator = goes_on()
    assert next(generator) == 1
    with pytest.raises(ValueError, match="again"):
        works()
    clear_functions(error)
    assert [each() for each in kept] == [None, None]
    assert next(generator) == 1, "it was not closed"

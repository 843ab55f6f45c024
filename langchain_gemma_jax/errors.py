"""The errors that this package raises.

GemmaJaxError
├── InputError (also ValueError)           an argument that is not possible
│   ├── UnknownModelError                  a name that is no folder, no file and no model's id
│   ├── UnsupportedModelError              an architecture, a size or an option that is not implemented
│   ├── DevicesError                       a model cannot be divided among this number of devices
│   ├── ConfigError                        a config.json that cannot be read
│   ├── ContextLengthError                 a prompt that the model's context cannot hold
│   ├── SchemaError                        a JSON schema that cannot be made a grammar
│   └── MediaError                         an image, a sound or a file that a model cannot be given
│       ├── UnreadableMediaError           it is none, is truncated, or is of a kind that is not supported
│       ├── MediaLimitError                it is too large, too long, or one too many
│       └── MediaAccessError               its path or link is not allowed, or leads to a place that is not
├── CheckpointError                        a model's files cannot be used
│   ├── CheckpointNotFoundError            no such folder, or nothing readable in it
│   ├── CorruptCheckpointError             truncated, overlapping, malformed, of the wrong length
│   ├── TensorMismatchError                a tensor is missing, or has another shape or dtype
│   ├── UnsafeCheckpointError              a pickle, or a link that leaves the model's folder
│   └── TokenizerError                     the tokenizer is absent or malformed
├── HubError                               a model could not be fetched by its id
│   ├── ModelNotOnHubError                 no such id, or no such revision
│   ├── GatedModelError                    the license has to be accepted, or a token is missing
│   └── OfflineError                       the Hub cannot be reached and the model is not cached
├── EngineError                            a request was accepted or submitted, and could not be completed
│   ├── BusyError                          the queue is full
│   ├── DeadlineError (also TimeoutError)  its time was up
│   ├── CancelledRequestError              its caller cancelled it
│   ├── DeviceMemoryError                  it needs more memory than there is
│   ├── DeviceFailedError                  a device call raised; every request of its model in flight gets this
│   ├── HostLostError                      a host of a group is lost, or never came
│   ├── ClosedError                        the engine or the model was closed
│   ├── ForkedError                        this process was forked from one that had used JAX
│   ├── ReentrantCallError                 a call, by a signal handler or a hook, that would wait for itself
│   └── GuardError                         a guard that is set to "raise" was tripped
├── ServerError                            an engine in another process could not answer
│   ├── ServerUnreachableError             no server answers there, or the connection broke
│   └── ApiKeyError                        it requires a key, or rejects this one
├── CutOffError                            an answer was cut off before the requested object was complete. Also
│                                          LangChain's OutputParserException, so it is made in chat/answering/cut_off.py
└── InstallationError (also RuntimeError)  the installation cannot be trusted
    └── UnsafeJaxError                     a JAX release that is known to compute wrong results

Catch ``GemmaJaxError`` to catch them all:

    try:
        model = load("google/gemma-3-1b-it")
    except GatedModelError as error:
        print(error)            # says where to accept the license, and how to pass a token
    except GemmaJaxError as error:
        print("cannot load the model:", error)

Each error has a note with its place in ``docs/errors.md``, which tracebacks and the command line show last.
``is_retryable`` is True if the same call may succeed when it is made again. Where LangChain has errors for the same
things, ours inherit from them too: see ``model_errors``.
"""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path
from typing import Any, ClassVar, Self

PAGE = "docs/errors.md"


class GemmaJaxError(Exception):
    """The base class of all errors of this package."""

    is_retryable = False
    """True if the same call may succeed when it is made again. LangChain's middleware uses it."""

    anchor: ClassVar[str] = "gemmajaxerror"
    """The heading of the page about errors that explains this class, or the one it inherits from."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__module__ == __name__:
            cls.anchor = cls.__name__.lower()

    def __new__(cls, *arguments: Any, **_: Any) -> Self:
        """Make an error with its link, as a note: the message stays what programs and people compare."""
        made = super().__new__(cls, *arguments)
        made.add_note(f"More: {PAGE}#{cls.anchor}")
        return made


class InputError(GemmaJaxError, ValueError):
    """An argument that is not possible. The message says which values are."""


class UnknownModelError(InputError):
    """A name that is not an embedded model, a folder, a file or a model's id on the Hub."""


class UnsupportedModelError(InputError):
    """An architecture, a size or an option that is not implemented."""


class DevicesError(InputError):
    """A model cannot be divided among this number of devices. ``working`` has the numbers that work here."""

    def __init__(self, message: str, working: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.working = working


class ConfigError(InputError):
    """A model configuration that cannot be read."""


class ContextLengthError(InputError):
    """A prompt that is too long for the context, by ``excess`` tokens. ``advice`` says what would help.

    ``at_least``: the prompt is far too long, so that its tokens were not all counted.
    """

    def __init__(self, tokens: int, limit: int, advice: str = "", at_least: bool = False) -> None:  # noqa: FBT001, FBT002
        self.tokens, self.limit, self.excess, self.advice = tokens, limit, tokens - limit, advice
        self.at_least = at_least
        least = "at least " if at_least else ""
        super().__init__(
            f"The prompt has {least}{tokens} tokens and the context has room for {limit} and an answer: {least}"
            f"{self.excess} too many. Shorten it{advice and ', or '}{advice}."
        )

    def __reduce__(self) -> tuple[type[ContextLengthError], tuple[int, int, str, bool]]:
        return type(self), (self.tokens, self.limit, self.advice, self.at_least)


class SchemaError(InputError):
    """A JSON schema that is malformed or too large, that no value fits, or that a grammar cannot promise.

    ``at`` is the place in the schema.
    """

    def __init__(self, at: str, problem: str) -> None:
        self.at, self.problem = at, problem
        super().__init__(f"The schema, at {at}: {problem}.")

    def __reduce__(self) -> tuple[type[SchemaError], tuple[str, str]]:
        return type(self), (self.at, self.problem)


class MediaError(InputError):
    """An image, a sound or a file in a message that the model cannot read.

    ``at`` is the block, such as ``messages[2].content[0]``; ``problem`` describes the problem; ``limit`` names the
    limit that was exceeded, if one was.
    """

    def __init__(self, at: str, problem: str, limit: str = "") -> None:
        self.at, self.problem, self.limit = at, problem, limit
        super().__init__(f"{at}: {problem}.")

    def __reduce__(self) -> tuple[type[MediaError], tuple[str, str, str]]:
        return type(self), (self.at, self.problem, self.limit)


class UnreadableMediaError(MediaError):
    """An image, a sound or a document that is invalid, truncated, or of a kind that is not supported."""


class MediaLimitError(MediaError):
    """An image, a sound or a document that is too large or too long, or one of too many. ``limit`` names the limit."""


class MediaAccessError(MediaError):
    """A path or a link that is not allowed, or leads to a place that is not."""


class CheckpointError(GemmaJaxError):
    """A model's files cannot be used.

    The message always has the path, what was expected there, and what was found.
    They are also attributes, for programs.
    """

    def __init__(self, path: str | PathLike[str], expected: str, found: str, advice: str = "") -> None:
        self.path, self.expected, self.found, self.advice = _named(path), expected, found, advice
        text = f"{self.path}: expected {expected}, found {found}."
        super().__init__(f"{text} {advice}" if advice else text)

    def __reduce__(self) -> tuple[type[CheckpointError], tuple[str, str, str, str]]:
        return type(self), (self.path, self.expected, self.found, self.advice)


def _named(path: str | PathLike[str]) -> str:
    """Return a path as text: in full, where it says nothing by itself, as ``.`` does."""
    return str(Path(path).absolute()) if Path(path).name in {"", ".."} else fspath(path)


class CheckpointNotFoundError(CheckpointError):
    """There is no such folder, or nothing in it that can be read."""


class CorruptCheckpointError(CheckpointError):
    """A file is truncated or malformed, or changed while it was read."""


class TensorMismatchError(CheckpointError):
    """A tensor is missing, or its shape or dtype is not what the configuration asks for."""


class UnsafeCheckpointError(CheckpointError):
    """A pickle, or a link that leaves the model's folder. Neither is opened."""


class TokenizerError(CheckpointError):
    """The tokenizer is absent or malformed."""


class HubError(GemmaJaxError):
    """A model could not be fetched by its id."""


class ModelNotOnHubError(HubError):
    """There is no such model, or no such revision of it."""


class GatedModelError(HubError):
    """The model's license has to be accepted first, or no valid token was found."""


class OfflineError(HubError):
    """The Hub cannot be reached, and the model is not in the local cache."""

    is_retryable = True


class EngineError(GemmaJaxError):
    """A request was accepted or submitted, and could not be completed."""


class BusyError(EngineError):
    """The queue is full. Try again later, or allow a longer one: ``configure(max_waiting=...)``."""

    is_retryable = True


class DeadlineError(EngineError, TimeoutError):
    """The request's time was up. The text that it had generated has been delivered."""

    is_retryable = True  # by then a model may have been loaded, or a program compiled


class CancelledRequestError(EngineError):
    """The request was cancelled by its caller."""


class DeviceMemoryError(EngineError):
    """A request or a model needs more memory than there is, even after everything idle was evicted.

    ``holders`` has a line for each model that takes memory, if models compete for it.
    """

    def __init__(self, message: str = "", holders: tuple[str, ...] = ()) -> None:
        self.holders = holders
        super().__init__(message)


class DeviceFailedError(EngineError):
    """A call of the device failed. All running requests of its model get this error; other models continue.

    ``__cause__`` is the original error.
    """

    is_retryable = True


class HostLostError(EngineError):
    """A process of a group of hosts is lost, does not answer, or never joined. The group ends and must be replaced."""

    is_retryable = True  # with the group that replaces it


class ClosedError(EngineError):
    """The engine, or the model, was closed."""

    is_retryable = True  # with a call that gets a new engine, as each call of a chat model does


class ForkedError(EngineError):
    """The process was forked after JAX was used, which JAX does not survive. Spawn it instead."""


class ReentrantCallError(EngineError):
    """A call that would wait for itself: from the engine's own threads, or from a signal handler at a bad moment."""


class GuardError(EngineError):
    """A guard that is set to "raise" was tripped. The message says why."""


class ServerError(GemmaJaxError):
    """The server is not one of this package, or has another version."""


class ServerUnreachableError(ServerError):
    """No server answers at the address, or the connection broke before the answer was complete."""

    is_retryable = True  # it may have been started by then


class ApiKeyError(ServerError):
    """The server requires an API key, or rejects the one that was sent."""


class InstallationError(GemmaJaxError, RuntimeError):
    """A library is missing, or has a release that does not work."""


class UnsafeJaxError(InstallationError):
    """The JAX release is known to compute wrong results."""

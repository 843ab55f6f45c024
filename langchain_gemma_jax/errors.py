"""Everything that this package raises on purpose.

GemmaJaxError
├── InputError (also ValueError)           what the caller passed is not possible
│   ├── UnsupportedModelError              an architecture, a size or an option that is not implemented
│   └── ConfigError                        a config.json that cannot be understood
├── CheckpointError                        a model's files cannot be used
│   ├── CheckpointNotFoundError            no such folder, or nothing readable in it
│   ├── CorruptCheckpointError             truncated, overlapping, malformed, of the wrong length
│   ├── TensorMismatchError                a tensor is missing, or has another shape or dtype
│   ├── UnsafeCheckpointError              a pickle, or a link that leaves the model's folder
│   └── TokenizerError                     the tokenizer is absent or malformed
├── HubError                               a model could not be fetched by its id
│   ├── ModelNotOnHubError                 no such id, or no such revision
│   ├── GatedModelError                    the licence has to be accepted, or a token is missing
│   └── OfflineError                       the Hub cannot be reached and the model is not cached
└── InstallationError (also RuntimeError)  the installation cannot be trusted
    └── UnsafeJaxError                     a JAX release that is known to compute wrong results

Catch ``GemmaJaxError`` to catch them all:

    try:
        model = load("google/gemma-3-1b-it")
    except GatedModelError as error:
        print(error)            # says where to accept the licence, and how to pass a token
    except GemmaJaxError as error:
        print("cannot load the model:", error)
"""

from __future__ import annotations

from os import PathLike


class GemmaJaxError(Exception):
    """The root of the tree above."""


class InputError(GemmaJaxError, ValueError):
    """An argument that is not possible. The message gives what is."""


class UnsupportedModelError(InputError):
    """An architecture, a size or an option that is not implemented."""


class ConfigError(InputError):
    """A model configuration that cannot be understood."""


class CheckpointError(GemmaJaxError):
    """A model's files cannot be used.

    The message always holds three things: the path, what was expected there, and what was found.
    They are also attributes, for programs.
    """

    def __init__(self, path: str | PathLike[str], expected: str, found: str, advice: str = "") -> None:
        self.path, self.expected, self.found, self.advice = str(path), expected, found, advice
        text = f"{self.path}: expected {expected}, found {found}."
        super().__init__(f"{text} {advice}" if advice else text)

    def __reduce__(self) -> tuple[type[CheckpointError], tuple[str, str, str, str]]:
        return type(self), (self.path, self.expected, self.found, self.advice)


class CheckpointNotFoundError(CheckpointError):
    """There is no such folder, or nothing in it that can be read."""


class CorruptCheckpointError(CheckpointError):
    """A file is truncated, overlaps itself, has holes or is malformed."""


class TensorMismatchError(CheckpointError):
    """A tensor is missing, or its shape or dtype is not what the configuration asks for."""


class UnsafeCheckpointError(CheckpointError):
    """A pickle, or a link that leaves the model's folder. Neither is ever opened."""


class TokenizerError(CheckpointError):
    """The tokenizer is absent or malformed."""


class HubError(GemmaJaxError):
    """A model could not be fetched by its id."""


class ModelNotOnHubError(HubError):
    """There is no such model, or no such revision of it."""


class GatedModelError(HubError):
    """The model's licence has to be accepted first, or no valid token was found."""


class OfflineError(HubError):
    """The Hub cannot be reached, and the model is not in the local cache."""


class InstallationError(GemmaJaxError, RuntimeError):
    """The installation cannot be trusted."""


class UnsafeJaxError(InstallationError):
    """This JAX release is known to compute wrong results."""

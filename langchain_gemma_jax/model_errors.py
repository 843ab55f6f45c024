"""Gives this package's errors their places among LangChain's, which its middleware tells apart.

An error of ours stays what it is, and is LangChain's error for the same thing too: a prompt that is too long is a
``ContextLengthError`` and a ``ContextOverflowError``. Importing this module sees to it. Whatever can meet LangChain
does: the door, when one of the errors is asked of it, and the models. The engine alone needs no LangChain.

Errors that the installed langchain-core does not have yet are left out.
"""

from __future__ import annotations

from langchain_core import exceptions

from langchain_gemma_jax import errors

# LangChain's name -> ours. Those below them in our tree are the same.
PLACES = {
    "ModelError": (
        errors.CheckpointError,
        errors.HubError,
        errors.EngineError,
        errors.ServerError,
        errors.InstallationError,
    ),
    "ModelInvalidRequestError": (errors.InputError,),
    "ContextOverflowError": (errors.ContextLengthError,),
    "ModelNotFoundError": (errors.UnknownModelError, errors.CheckpointNotFoundError, errors.ModelNotOnHubError),
    "ModelPermissionDeniedError": (errors.GatedModelError,),
    "ModelConnectionError": (errors.OfflineError, errors.ServerUnreachableError),
    "ModelAuthenticationError": (errors.ApiKeyError,),
    "ModelRateLimitError": (errors.BusyError,),
    "ModelTimeoutError": (errors.DeadlineError,),
    "ModelAPIError": (
        errors.DeviceFailedError,
        errors.DeviceMemoryError,
        errors.ClosedError,
        errors.HostLostError,
    ),
}


def join(theirs: object) -> None:
    """Make our errors LangChain's too, as far as ``theirs``, a module, has them."""
    for name, ours in PLACES.items():
        place = getattr(theirs, name, None)
        if not isinstance(place, type):
            continue  # a newer langchain-core has it
        for error in ours:
            if not issubclass(error, place):
                error.__bases__ = (*error.__bases__, place)


join(exceptions)

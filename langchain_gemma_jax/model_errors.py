"""Makes this package's errors subclasses of LangChain's, which its middleware handles differently.

Each of our errors also inherits from LangChain's error for the same thing: a prompt that is too long is a
``ContextLengthError`` and a ``ContextOverflowError``. Importing this module does that. The package imports it when one
of the errors is imported from it, and so do the models. The engine alone does not need LangChain.

Errors that the installed langchain-core does not have yet are left out.
"""

from __future__ import annotations

from langchain_core import exceptions

from langchain_gemma_jax import errors

# LangChain's name -> ours. Their subclasses inherit it.
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
    """Make our errors subclasses of LangChain's, as far as the module ``theirs`` has them."""
    for name, ours in PLACES.items():
        place = getattr(theirs, name, None)
        if not isinstance(place, type):
            continue  # a newer langchain-core has it
        for error in ours:
            if not issubclass(error, place):
                error.__bases__ = (*error.__bases__, place)


join(exceptions)

"""Import of training frameworks, which may be there and still not work."""

from __future__ import annotations

from types import ModuleType

from trtdeploy.core.errors import (
    InputError,
    MissingDependencyError,
    NotPossibleError,
    TrtdeployError,
)
from trtdeploy.core.optional import import_optional
from trtdeploy.export.pytorch.quiet import quiet_frameworks


def import_framework(module: str, *, needed_for: str, install: str) -> ModuleType:
    """Import a package of the user without what it prints, or say how to get it or repair it.

    Raises:
        MissingDependencyError: The package is absent, or its own code fails while it is imported,
            as torchvision does beside a PyTorch from another index.
    """
    try:
        with quiet_frameworks():
            return import_optional(module, needed_for=needed_for, install=install)
    except TrtdeployError:
        raise
    except Exception as error:
        raise explain_broken_framework(module, error) from error


def explain_failed_build(label: str, error: Exception, *, downloads: bool) -> TrtdeployError:
    """Return the error for a framework that did not build the model it was asked for.

    Args:
        label: The model and its settings.
        error: What the framework raised.
        downloads: Whether it was to fetch weights; what is no complaint about values is then the
            network's.
    """
    reason = f"{type(error).__name__}: {error}"
    about_values = isinstance(error, (TypeError, ValueError, RuntimeError, KeyError))
    if downloads and (isinstance(error, OSError) or not about_values):
        return NotPossibleError(
            f"the weights of {label} cannot be fetched: {reason}",
            hint="Is the network up? Without --download the weights come from --weights FILE.",
        )
    return InputError(f"{label}: {reason}")


def explain_broken_framework(module: str, error: BaseException) -> MissingDependencyError:
    """Return the error for a package whose own import fails, with the innermost reason."""
    while error.__cause__ is not None:
        error = error.__cause__
    package = module.partition(".")[0]
    together = " ".join(dict.fromkeys(("torch", "torchvision", package)))
    return MissingDependencyError(
        f"{package} is installed and cannot be imported: {type(error).__name__}: {error}",
        hint="Packages made for another PyTorch do that. Install them from one index in one "
        f"command: pip install --upgrade {together}",
    )

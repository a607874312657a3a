"""Import of packages that only some users have."""

from __future__ import annotations

import importlib
from types import ModuleType

from trtdeploy.core.errors import MissingDependencyError


def import_optional(module: str, *, needed_for: str, install: str) -> ModuleType:
    """Import ``module`` or say who needs it and how to get it.

    Args:
        module: Dotted module name.
        needed_for: Completes "... is needed for"; e.g. ``"compiling RTX engines"``.
        install: The command that installs it.

    Raises:
        MissingDependencyError: The module is absent, or present but broken (the loader's own
            words are kept, because a missing shared library looks like a missing package).
    """
    try:
        return importlib.import_module(module)
    except (ImportError, OSError) as error:  # OSError: a library that ctypes cannot load
        raise MissingDependencyError(
            f"{module} is needed for {needed_for} and cannot be imported: {error}",
            hint=f"Install it with: {install}",
        ) from error

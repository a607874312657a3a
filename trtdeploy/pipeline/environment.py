"""What a result was made with."""

from __future__ import annotations

import platform
from typing import Any

from trtdeploy import __version__
from trtdeploy.backends.installed import PACKAGES, find_installed


def describe_platform() -> str:
    """Return system and processor, e.g. ``Linux x86_64``."""
    return f"{platform.system()} {platform.machine()}"


def describe_environment() -> dict[str, Any]:
    """Return versions of trtdeploy, Python and every vendor package that is installed."""
    found = {name: find_installed(name).version for name in PACKAGES}
    return {
        "trtdeploy": __version__,
        "python": platform.python_version(),
        "platform": describe_platform(),
        "packages": {name: version for name, version in found.items() if version},
    }

"""``reproduce.sh``: the command that makes the same folder again."""

from __future__ import annotations

import shlex
from typing import Any

from trtdeploy.config.shape_syntax import format_shape_argument, format_value_argument
from trtdeploy.core.ranges import OptimizationProfile
from trtdeploy.pipeline.request import BuildRequest


def render_reproduce_script(
    request: BuildRequest,
    source: dict[str, Any],
    profiles: tuple[OptimizationProfile, ...],
    environment: dict[str, Any],
) -> str:
    """Return a shell script with every size spelled out and the versions in comments.

    Args:
        request: The build.
        source: The manifest's entry of the source model.
        profiles: Optimization profiles as resolved; several come from the deploy profile itself.
        environment: Versions, for the comments.
    """
    command = ["trtdeploy", "build", f"./{source['file']}", "--profile", str(request.profile)]
    for text in request.overrides:
        command += ["--set", text]
    for pattern in request.pins:
        command += ["--pin", pattern]
    if request.data is not None:
        command += ["--data", request.data.name]
    if request.prepare_only:
        command.append("--prepare-only")
    dynamic = {
        entry["name"]
        for entry in source["inputs"]
        if entry["shape"] is None or any(isinstance(dim, str) for dim in entry["shape"])
    }
    if len(profiles) == 1:
        for name, shape in profiles[0].shapes.items():
            if name in dynamic:
                command += ["--shape", format_shape_argument(name, shape)]
        for name, values in profiles[0].values.items():
            command += ["--value", format_value_argument(name, values)]
    versions = ", ".join(f"{name} {v}" for name, v in sorted(environment["packages"].items()))
    return "\n".join(
        [
            "#!/bin/sh",
            f"# Made by trtdeploy {environment['trtdeploy']} on {environment['platform']}, "
            f"Python {environment['python']}",
            f"# with {versions}",
            f"# Source model: {_one_line(source['file'])}, sha256 {source['sha256']}",
            "set -eu",
            " ".join(shlex.quote(word) for word in command) + ' "$@"',
            "",
        ]
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())

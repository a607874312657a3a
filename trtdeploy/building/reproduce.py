"""``reproduce.sh``: the command that makes the same folder again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping

from trtdeploy.backends.installed import Environment
from trtdeploy.building.request import BuildRequest
from trtdeploy.config.shape_syntax import format_shape_argument, format_value_argument
from trtdeploy.config.shape_table import AxisSizes, ShapeTable, TensorSizes
from trtdeploy.core.ranges import OptimizationProfile, ValueRange
from trtdeploy.report.document import SourceModel


def render_reproduce_script(
    request: BuildRequest,
    source: SourceModel,
    profiles: tuple[OptimizationProfile, ...],
    environment: Environment,
) -> str:
    """Return a shell script with every size spelled out and the versions in comments.

    Args:
        request: What was asked for; paths are written without their folders.
        source: The manifest's entry of the source model.
        profiles: Optimization profiles as resolved; several come from the deploy profile itself.
        environment: Versions, for the comments.
    """
    command = [
        *("trtdeploy", "build", f"./{source.file}", "--profile", str(request.profile)),
        *_list_options(request),
        *_list_sizes(request, source, profiles),
    ]
    versions = ", ".join(f"{name} {v}" for name, v in sorted(environment.packages.items()))
    return "\n".join(
        [
            "#!/bin/sh",
            f"# Made by trtdeploy {environment.trtdeploy} on {environment.platform}, "
            f"Python {environment.python}",
            f"# with {versions}",
            f"# Source model: {_one_line(source.file)}, sha256 {source.sha256}",
            *_name_unspoken(request.shapes, profiles),
            "set -eu",
            " ".join(shlex.quote(word) for word in command) + ' "$@"',
            "",
        ]
    )


def _list_options(request: BuildRequest) -> list[str]:
    """Return everything but the sizes; files and folders by name, as they lie beside the script."""
    repeated = {
        "--set": request.overrides,
        "--pin": request.pins,
        "--calib": tuple(path.name for path in request.calibration_data),
        "--data": () if request.data is None else (request.data.name,),
        "--output-dir": () if request.output_dir is None else (request.output_dir.name,),
    }
    switches = {
        "--synthetic-calib": request.synthetic_calibration,
        "--prepare-only": request.prepare_only,
        "--no-parity": not request.check_parity,
    }
    words = [word for option, values in repeated.items() for v in values for word in (option, v)]
    return words + [option for option, is_given in switches.items() if is_given]


def _list_sizes(
    request: BuildRequest, source: SourceModel, profiles: tuple[OptimizationProfile, ...]
) -> list[str]:
    """Return the sizes as resolved; with several profiles, those that were given over all of them.

    The command line cannot spell several profiles: what makes them differ is in the deploy profile.
    """
    if len(profiles) != 1:
        return _list_given_sizes(request.shapes)
    dynamic = {spec.name for spec in source.inputs if spec.is_dynamic}
    words: list[str] = []
    for name, shape in profiles[0].shapes.items():
        if name in dynamic:
            words += ["--shape", format_shape_argument(name, shape)]
    for name, values in profiles[0].values.items():
        words += ["--value", format_value_argument(name, values)]
    return words


def _list_given_sizes(given: ShapeTable) -> list[str]:
    words: list[str] = []
    for symbol, sizes in given.symbols.items():
        if None in (sizes.min, sizes.opt, sizes.max):
            continue
        points = ":".join(str(size) for size in (sizes.min, sizes.opt, sizes.max))
        words += ["--symbol", f"{symbol}={points}"]
    if given.inputs:  # JSON, because it can also leave points out
        table = {
            name: tensor.model_dump(exclude_none=True) for name, tensor in given.inputs.items()
        }
        words += ["--shape-json", json.dumps(table)]
    for name, tensor in given.values.items():
        if tensor.min is None or tensor.opt is None or tensor.max is None:
            continue
        values = ValueRange(tensor.min, tensor.opt, tensor.max)
        words += ["--value", format_value_argument(name, values)]
    return words


def _name_unspoken(given: ShapeTable, profiles: tuple[OptimizationProfile, ...]) -> list[str]:
    """Sizes from Python may leave points out, which ``--symbol`` and ``--value`` cannot."""
    partial = [*_list_partial(given.symbols), *_list_partial(given.values)]
    if len(profiles) == 1 or not partial:
        return []
    return [f"# Left out, because only Python can say it: sizes of {_one_line(', '.join(partial))}"]


def _list_partial(table: Mapping[str, AxisSizes | TensorSizes]) -> list[str]:
    return [name for name, s in table.items() if None in (s.min, s.opt, s.max)]


def _one_line(text: str) -> str:
    return " ".join(text.split())

"""``trtdeploy profiles``."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from trtdeploy.cli import options
from trtdeploy.cli.output import OutputFormat, format_rows, sink


def profiles(
    name: Annotated[
        Optional[str],  # noqa: UP045
        typer.Argument(metavar="[NAME]", help="Name or YAML file to show and validate."),
    ] = None,
    overrides: options.Overrides = None,
    output: options.Output = OutputFormat.HUMAN,
) -> None:
    """List the deploy profiles, or show one.

    Showing one validates it first, so this also checks a file of your own.

    \b
    Examples:
      trtdeploy profiles
      trtdeploy profiles orin-fp16
      trtdeploy profiles my-board.yaml --set build.workspace=2GiB
    """
    sink.format = output
    if name is None:
        _list_all()
    else:
        _show(name, tuple(overrides or []))


def _list_all() -> None:
    from trtdeploy.config.loading import list_deploy_profiles, load_deploy_profile
    from trtdeploy.precision.recipe import RECIPES

    rows: list[tuple[str, object]] = []
    payload = []
    for name in list_deploy_profiles():
        resolved = load_deploy_profile(name)
        chosen = resolved.profile
        ready = chosen.recipe in RECIPES
        note = "" if ready else "  (recipe not in this version)"
        rows.append(
            (name, f"{chosen.recipe:<5} {chosen.backend:<12} {resolved.device.title}{note}")
        )
        payload.append(
            {
                "name": name,
                "recipe": chosen.recipe,
                "backend": chosen.backend,
                "device": resolved.device.name,
                "available": ready,
            }
        )
    sink.data(format_rows(rows), {"profiles": payload})


def _show(name: str, overrides: tuple[str, ...]) -> None:
    import yaml

    from trtdeploy.config.loading import load_deploy_profile

    resolved = load_deploy_profile(name, overrides)
    data = {
        "profile": resolved.profile.model_dump(mode="json", exclude_defaults=True),
        "device": resolved.device.model_dump(mode="json", exclude_defaults=True),
    }
    sink.data(yaml.safe_dump(data, sort_keys=False, allow_unicode=True), resolved.to_dict())

"""``trtdeploy profiles``."""

from __future__ import annotations

from typing import Annotated, Any, Optional

import typer

from trtdeploy.cli import options
from trtdeploy.cli.output import OutputFormat, format_table, sink
from trtdeploy.core.errors import UsageError


def profiles(
    name: Annotated[
        Optional[str],  # noqa: UP045
        typer.Argument(metavar="[NAME]", help="Name or YAML file to show and validate."),
    ] = None,
    overrides: options.Overrides = None,
    devices: Annotated[
        bool, typer.Option("--devices", help="List devices, or show one, instead of profiles.")
    ] = False,
    output: options.Output = OutputFormat.HUMAN,
) -> None:
    """List the deploy profiles, or show one.

    Showing one validates it first, so this also checks a file of your own.

    \b
    Examples:
      trtdeploy profiles
      trtdeploy profiles orin-fp16
      trtdeploy profiles my-board.yaml --set build.workspace=2GiB
      trtdeploy profiles --devices              what --set device=NAME may name
      trtdeploy profiles --devices orin-nano-8gb
    """
    if devices and overrides:
        raise UsageError("--set changes a deploy profile, and --devices shows devices")
    if devices:
        _list_devices() if name is None else _show_device(name)
    elif name is None:
        _list_all()
    else:
        _show(name, tuple(overrides or []))


def _list_all() -> None:
    from trtdeploy.config.loading import list_deploy_profiles, load_deploy_profile

    rows, payload = [], []
    for name in list_deploy_profiles():
        resolved = load_deploy_profile(name)
        chosen = resolved.profile
        rows.append((name, chosen.recipe, chosen.backend, resolved.device.title))
        payload.append(
            {
                "name": name,
                "recipe": chosen.recipe,
                "backend": chosen.backend,
                "device": resolved.device.name,
            }
        )
    sink.data(format_table(rows), {"profiles": payload})


def _list_devices() -> None:
    from trtdeploy.config.loading import list_devices, load_device

    found = [load_device(name) for name in list_devices()]
    rows = [(device.name, device.compute_capability or "-", device.title) for device in found]
    payload = [
        {
            "name": device.name,
            "title": device.title,
            "kind": device.kind,
            "compute_capability": device.compute_capability,
            "memory_bytes": device.memory,
            "precisions": list(device.precisions),
            "dla_cores": device.dla_cores,
            "tensorrt_rtx": device.tensorrt_rtx,
        }
        for device in found
    ]
    sink.data(format_table(rows), {"devices": payload})


def _show_device(name: str) -> None:
    from trtdeploy.config.loading import load_device

    device = load_device(name)
    sink.data(
        _format_yaml(device.model_dump(mode="json", exclude_defaults=True)),
        device.model_dump(mode="json"),
    )


def _show(name: str, overrides: tuple[str, ...]) -> None:
    from pydantic_core import to_jsonable_python

    from trtdeploy.config.loading import load_deploy_profile

    resolved = load_deploy_profile(name, overrides)
    data = {
        "profile": resolved.profile.model_dump(mode="json", exclude_defaults=True),
        "device": resolved.device.model_dump(mode="json", exclude_defaults=True),
    }
    sink.data(_format_yaml(data), to_jsonable_python(resolved))


def _format_yaml(data: dict[str, Any]) -> str:
    import yaml

    return str(yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=72))

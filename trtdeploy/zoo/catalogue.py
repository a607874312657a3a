"""Reading ``zoo.yaml``."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from trtdeploy.config.documents import Document, MergedDocument
from trtdeploy.config.validation_text import validate_document
from trtdeploy.config.yaml_text import load_yaml_mapping
from trtdeploy.core.errors import InputError, UsageError
from trtdeploy.core.names import suggest_name
from trtdeploy.zoo.entry import Zoo, ZooModel

_PACKAGE: Final = Path(__file__).resolve().parents[1]
# A wheel carries the file as trtdeploy/zoo_data/zoo.yaml; a checkout has it beside the package.
_CANDIDATES: Final = (_PACKAGE / "zoo_data" / "zoo.yaml", _PACKAGE.parent / "models" / "zoo.yaml")


def load_zoo(path: Path | None = None) -> Zoo:
    """Read and validate the zoo.

    Args:
        path: The file; None takes the shipped one.

    Raises:
        InputError: It is missing, or not as the format wants it; every problem is named.
    """
    path = path or _find_shipped()
    document = Document(path.name, path.parent, load_yaml_mapping(path, path.name))
    merged = MergedDocument()
    merged.add(document)
    zoo, problems = validate_document(Zoo, merged, path.name, {})
    if zoo is None:
        raise InputError("\n".join(problems))
    return zoo


def find_model(zoo: Zoo, name: str) -> ZooModel:
    """Return the model called ``name``.

    Raises:
        UsageError: There is none; the closest name is suggested.
    """
    if name not in zoo.models:
        raise UsageError(
            f"there is no model {name!r}. {suggest_name(name, zoo.models)}",
            hint="See them all with: trtdeploy models list",
        )
    return zoo.models[name]


def _find_shipped() -> Path:
    for candidate in _CANDIDATES:
        if candidate.is_file():
            return candidate
    raise InputError(
        "the list of models is missing from this installation",
        hint="Reinstall it: pip install --force-reinstall trtdeploy",
    )

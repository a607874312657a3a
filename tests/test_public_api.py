"""What ``import trtdeploy`` offers."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import trtdeploy


@pytest.mark.parametrize("name", [n for n in trtdeploy.__all__ if n != "__version__"])
def test_every_public_name_is_documented_and_typed(name: str) -> None:
    thing = getattr(trtdeploy, name)
    assert inspect.getdoc(thing)
    if inspect.isfunction(thing):
        signature = inspect.signature(thing)
        assert signature.return_annotation is not inspect.Signature.empty
        for parameter in signature.parameters.values():
            assert parameter.annotation is not inspect.Parameter.empty, parameter


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        _ = trtdeploy.nonsense


def test_importing_the_package_loads_nothing_of_weight() -> None:
    heavy = {"numpy", "onnx", "pydantic", "typer"}
    code = f"import sys, trtdeploy; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

"""A combination that cannot work is the fault of whoever said it: the file, or ``--set``."""

from __future__ import annotations

from pathlib import Path

import pytest

from trtdeploy.config.loading import load_deploy_profile
from trtdeploy.core.errors import DeployProfileError, UsageError

BLAMED: dict[str, tuple[str, list[str], list[str]]] = {
    "the key itself": (
        "orin-fp16", ["recipe=fp8"], ["--set recipe=fp8 on orin-fp16.yaml: recipe: fp8: "]
    ),
    "another key": (
        "h100-fp8", ["device=orin-nx-8gb"],
        ["--set device=orin-nx-8gb on h100-fp8.yaml: recipe: fp8: ",
         "--set device=orin-nx-8gb on h100-fp8.yaml: build.workspace: "],
    ),
    "one of several": (
        "orin-fp16", ["build.refit=true", "recipe=fp8", "build.aux_streams=1"],
        ["--set recipe=fp8 on orin-fp16.yaml: recipe"],
    ),
    "only together": (
        "agx-orin-fp16", ["build.dla_core=0", "recipe=bf16"],
        ["--set build.dla_core=0 --set recipe=bf16 on agx-orin-fp16.yaml: recipe: bf16: a DLA"],
    ),
    "said twice": (
        "orin-fp16", ["recipe=fp8", "recipe=fp8"],
        ["--set recipe=fp8 --set recipe=fp8 on orin-fp16.yaml: recipe"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("name", "overrides", "lines"), BLAMED.values(), ids=BLAMED)
def test_overrides_that_cause_it_are_named(
    name: str, overrides: list[str], lines: list[str]
) -> None:
    with pytest.raises(UsageError) as info:
        load_deploy_profile(name, overrides)
    found = str(info.value).splitlines()
    assert len(found) == len(lines)
    for line, start in zip(found, lines, strict=True):
        assert line.startswith(start)


def test_a_fault_of_the_file_stays_the_files(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("extends: orin-fp16\nrecipe: fp8\n")
    with pytest.raises(DeployProfileError) as info:
        load_deploy_profile(path, ["build.aux_streams=1", "build.dla_core=0"])
    recipe, other = sorted(str(info.value).splitlines(), key=lambda line: "dla_core" in line)[:2]
    assert "mine.yaml: recipe: fp8" in recipe
    assert not recipe.startswith("--set")
    assert other.startswith("--set build.dla_core=0 on ")
    assert info.value.exit_code == 3


def test_an_override_that_mends_a_file_is_not_to_blame(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("extends: orin-fp16\ntyping: strange\n")
    with pytest.raises(UsageError) as info:
        load_deploy_profile(path, ["typing=auto", "recipe=fp8"])
    assert "--set recipe=fp8 on" in str(info.value)
    assert "typing" not in str(info.value)

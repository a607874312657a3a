"""Deploy profiles: extends, overrides, and errors that name file, key and remedy."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

from trtdeploy.config.loading import (
    ResolvedProfile,
    list_deploy_profiles,
    load_deploy_profile,
    load_device,
)
from trtdeploy.core.errors import DeployProfileError, TrtdeployError, UsageError

Write = Callable[[str, str], str]

MINIMAL = "device: orin-nano-8gb\nbackend: tensorrt\nrecipe: fp16\n"


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_file(name: str, text: str) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write_file


def fail(name: str, *overrides: str) -> TrtdeployError:
    with pytest.raises(TrtdeployError) as caught:
        load_deploy_profile(name, overrides)
    return caught.value


def test_minimal_file_gets_defaults(write: Write) -> None:
    resolved = load_deploy_profile(write("mine.yaml", MINIMAL))
    assert resolved.name == "mine"
    assert resolved.device.name == "orin-nano-8gb"
    assert resolved.profile.typing == "auto"
    assert resolved.profile.build.workspace is None
    assert resolved.profile.precision.io == "keep"


def test_extends_shipped_profile_and_merges_deeply(write: Write) -> None:
    text = "extends: orin-fp16\nbuild: {optimization_level: 2}\nprecision: {keep_fp32: ['*norm*']}"
    resolved = load_deploy_profile(write("mine.yaml", text))
    assert resolved.profile.build.workspace == 1 << 30
    assert resolved.profile.build.optimization_level == 2
    assert resolved.profile.precision.keep_fp32 == ("*norm*",)
    assert [path.name for path in resolved.parents] == ["orin-fp16.yaml"]


def test_extends_path_is_relative_to_the_file(write: Write) -> None:
    write("base/b.yaml", "extends: orin-fp16\nbuild: {workspace: 2GiB, timing_cache: false}\n")
    path = write("mine.yaml", "extends: base/b.yaml\nbuild: {workspace: 512 MiB}\n")
    build = load_deploy_profile(path).profile.build
    assert (build.workspace, build.timing_cache) == (512 << 20, False)


def test_null_takes_a_value_back(write: Write) -> None:
    path = write("mine.yaml", "extends: orin-fp16\nbuild: {workspace: null}\n")
    assert load_deploy_profile(path).profile.build.workspace is None


def test_section_with_nothing_in_it_is_unset(write: Write) -> None:
    path = write(
        "mine.yaml", MINIMAL + "title:\nbuild:\n  # workspace: 1GiB\nshapes:\n  symbols:\n"
    )
    profile = load_deploy_profile(path).profile
    assert (profile.title, profile.build.timing_cache, profile.shapes.symbols) == ("", True, {})
    no_limit = load_deploy_profile(path, ["build.timeout_s=null"]).profile
    assert no_limit.build.timeout_s is None


def test_file_may_be_called_like_the_shipped_one_it_extends(write: Write) -> None:
    path = write("orin-fp16.yaml", "extends: orin-fp16\nrecipe: fp32\n")
    assert load_deploy_profile(path).profile.recipe == "fp32"


def test_extends_cycle_is_shown(write: Write) -> None:
    write("b.yaml", "extends: ./a.yaml\n")
    error = fail(write("a.yaml", "extends: ./b.yaml\n"))
    assert "extends itself" in error.message
    assert error.message.count("a.yaml") >= 3


def test_extends_chain_is_limited(write: Write) -> None:
    for index in range(10):
        write(f"p{index}.yaml", f"extends: ./p{index + 1}.yaml\n")
    assert "extends more than 8 files" in fail(write("start.yaml", "extends: ./p0.yaml")).message


@pytest.mark.parametrize(
    ("parent", "expected"),
    [
        ("orin-fp61", "extends: there is no deploy profile 'orin-fp61'. Did you mean 'orin-fp16'?"),
        ("./none.yaml", "there is no such file"),
        ("[a]", "extends: expected a name or a path"),
        ('"a\\0b.yaml"', "cannot be read"),
    ],
)
def test_wrong_extends_is_named(write: Write, parent: str, expected: str) -> None:
    assert expected in fail(write("mine.yaml", f"extends: {parent}\n")).message


def test_unknown_key_names_file_path_and_nearest(write: Write) -> None:
    path = write("mine.yaml", MINIMAL + "build: {workspce: 1GiB}\n")
    error = fail(path)
    assert error.message == f"{path}: build.workspce: unknown key. Did you mean 'workspace'?"
    assert isinstance(error, DeployProfileError)


def test_unknown_key_is_blamed_on_the_file_that_has_it(write: Write) -> None:
    base = write("base.yaml", MINIMAL + "build: {workspce: 1GiB}\n")
    path = write("mine.yaml", "extends: ./base.yaml\nparity: {atoll: 1.0}\n")
    lines = fail(path).message.splitlines()
    assert any(line.startswith(base) and "build.workspce" in line for line in lines)
    assert any(line.startswith(path) and "'atol'" in line for line in lines)


def test_key_in_the_wrong_section_is_sent_home(write: Write) -> None:
    error = fail(write("mine.yaml", MINIMAL + "workspace: 1GiB\n"))
    assert "It belongs at 'build.workspace'." in error.message


def test_all_problems_of_a_file_come_at_once(write: Write) -> None:
    text = (
        "device: orin-nano\nbackend: tensorr\nrecipe: fp61\nbuild: {workspace: lots, refit: maybe}"
        "\nprecision: {keep_fp32: conv}\nname: x\n"
    )
    lines = fail(write("mine.yaml", text)).message.splitlines()
    wanted = [
        ("name", "follows from the file's name"),
        ("backend", "Did you mean 'tensorrt'?"),
        ("recipe", "Did you mean 'fp16'?"),
        ("build.workspace", "write it like 512MiB"),
        ("build.refit", "expected true or false, given 'maybe'"),
        ("precision.keep_fp32", "expected a list"),
        ("device", "there is no device 'orin-nano'. Did you mean 'orin-nano-"),
    ]
    for key, text in wanted:
        assert any(f": {key}: " in line and text in line for line in lines), (key, lines)
    assert len(lines) == len(wanted)


def test_required_keys_are_asked_for(write: Write) -> None:
    lines = fail(write("mine.yaml", "title: x\n")).message.splitlines()
    assert [line.split(": ")[1] for line in lines] == ["device", "backend", "recipe"]
    assert "Valid: 'onnxruntime', 'tensorrt', 'tensorrt_rtx'." in lines[1]


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("build.workspace=4", "less than 1MiB; write the unit, like 512MiB or 4GiB"),
        ("build.workspace=true", "is not a byte size"),
        ("build.workspace=" + "9" * 400 + "GiB", "more memory than any device has"),
        ("build.workspace=1GB2", "is not a byte size"),
        ("build.optimization_level=6", "less than or equal to 5"),
        ("build.optimization_level=true", "expected a whole number"),
        ("build.timeout_s=0", "greater than 0"),
        ("build.timeout_s=.inf", "finite number"),
        ("build.timing_cache='yes'", "expected true or false"),
        ("build.compute_capabilities=[sm89]", "given 'sm89'"),
        ("recipe=int4", "INT4 is weight-only and has no recipe here"),
        ("parity.atol=-1", "greater than or equal to 0"),
        ("device=4090", "expected text"),
        ("shapes.symbols.N={}", "no size given"),
        ("shapes.symbols.N.mni=1", "Did you mean 'min'?"),
        ("shapes.defaults.bacth=1", "Did you mean 'batch'?"),
        ("shapes.inputs.x.min=[a]", "shapes.inputs.x.min[0]: expected a whole number"),
        ('shapes.inputs."a.b".mix=[1]', 'shapes.inputs."a.b".mix: unknown key'),
        ("optimization_profiles=[{nme: a}]", "optimization_profiles[0].nme: unknown key"),
        ("optimization_profiles=[{name: a}, {name: a}]", "used twice: 'a'"),
        ("extends=l4-fp16", "only a file can extend another"),
        ("build", "expected KEY=VALUE"),
        ("=1", "expected KEY=VALUE"),
        ("build..workspace=1GiB", "expected KEY=VALUE"),
        ("title=!!python/object:x {}", "'!!python/object:x' is not allowed"),
        ("title=[", "not valid YAML"),
        (".".join("a" * 3000) + "=1", "more than 16 levels"),
    ],
)
def test_wrong_override_is_a_usage_error(override: str, expected: str) -> None:
    error = fail("orin-fp16", override)
    assert isinstance(error, UsageError)
    assert error.message.startswith("--set ")
    assert expected in error.message


def test_overrides_apply_in_order() -> None:
    overrides = ["build.workspace=2GiB", "build.workspace=3GiB", "shapes.symbols.N=4", "title="]
    resolved = load_deploy_profile("orin-fp16", overrides)
    assert resolved.profile.build.workspace == 3 << 30
    assert resolved.profile.shapes.symbols["N"].max == 4
    assert resolved.overrides == tuple(overrides)


def test_override_reaches_names_with_dots() -> None:
    override = 'shapes.inputs."serving.default x".min=[1, 3]'
    resolved = load_deploy_profile("orin-fp16", [override])
    assert resolved.profile.shapes.inputs["serving.default x"].min == (1, 3)


def test_unquoted_compute_capabilities_are_understood() -> None:
    resolved = load_deploy_profile("rtx4090-fp16", ["build.compute_capabilities=[12.0, 8.6]"])
    assert resolved.profile.build.compute_capabilities == ("12.0", "8.6")


def test_missing_name_suggests_and_explains_paths() -> None:
    error = fail("orin-fp61")
    assert "Did you mean 'orin-fp16'?" in error.message
    assert "./orin-fp61.yaml" in error.hint
    assert "Valid: " in fail("").message
    assert "there is no deploy profile" in fail("x" * 5000).message


def test_missing_name_points_at_a_file_here(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("mine.yaml", MINIMAL)
    write("bare", MINIMAL)
    monkeypatch.chdir(tmp_path)
    assert "give it as ./mine.yaml" in fail("mine").hint
    assert load_deploy_profile("./mine.yaml").name == "mine"
    assert load_deploy_profile(Path("mine.yaml")).name == "mine"
    assert load_deploy_profile("bare").name == "bare"


def test_device_may_be_a_file_beside_the_profile(write: Write) -> None:
    write("boards/b.yaml", "extends: orin-nano-8gb\ntitle: Mine\nmemory: 16GiB\n")
    path = write("mine.yaml", MINIMAL.replace("orin-nano-8gb", "boards/b.yaml"))
    device = load_deploy_profile(path).device
    assert (device.name, device.memory, device.dla_cores) == ("b", 16 << 30, 0)


def test_problems_of_a_device_file_are_reported(write: Write) -> None:
    board = write("b.yaml", "kind: jetson\ntitle: x\ncompute_capability: '8.7'\nmemry: 8GiB\n")
    path = write("mine.yaml", MINIMAL.replace("orin-nano-8gb", "./b.yaml"))
    assert f"{path}: device: " in fail(path).message
    with pytest.raises(DeployProfileError, match=r"memry: unknown key\. Did you mean 'memory'"):
        load_device(board)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kind: jetson", "compute_capability: every GPU has a compute capability"),
        ("kind: cpu\ncompute_capability: 8.9", "a cpu has none"),
        ("kind: cpu", "precisions: cannot be derived"),
        ("kind: geforce\ncompute_capability: 19.0", "precisions: cannot be derived"),
        ("kind: geforce\ncompute_capability: 8.9\ntflops: {fp61: 1}", "Did you mean 'fp16'?"),
        ("kind: geforce\ncompute_capability: 8.9\nbandwidth_gb_s: -1", "greater than 0"),
    ],
)
def test_wrong_device_is_refused(write: Write, text: str, expected: str) -> None:
    with pytest.raises(DeployProfileError) as caught:
        load_device(write("d.yaml", f"title: x\n{text}\n"))
    assert expected in caught.value.message


def test_frozen() -> None:
    profile = load_deploy_profile("orin-fp16").profile
    with pytest.raises(ValueError, match="frozen"):
        profile.recipe = "fp32"


RESOLVED = TypeAdapter(ResolvedProfile)


@pytest.mark.parametrize("name", list_deploy_profiles())
def test_manifest_form_reads_back(name: str) -> None:
    resolved = load_deploy_profile(name, ["build.timeout_s=5"])
    assert RESOLVED.validate_json(RESOLVED.dump_json(resolved)) == resolved


def test_edited_manifest_is_refused() -> None:
    data = json.loads(RESOLVED.dump_json(load_deploy_profile("orin-fp16")))
    data["profile"]["build"]["workspce"] = 1
    data["device"].pop("kind")
    with pytest.raises(ValidationError) as caught:
        RESOLVED.validate_json(json.dumps(data))
    places = [".".join(map(str, error["loc"])) for error in caught.value.errors()]
    assert places == ["profile.build.workspce", "device.kind"]


def test_an_edit_that_cannot_work_is_refused() -> None:
    data = json.loads(RESOLVED.dump_json(load_deploy_profile("orin-fp16")))
    data["profile"]["recipe"] = "fp8"
    read = RESOLVED.validate_json(json.dumps(data))
    with pytest.raises(DeployProfileError, match=r"^m\.json: recipe: fp8: .* has no FP8"):
        read.require_sound("m.json")

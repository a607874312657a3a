"""A build from parsing to the plan on disk, and every way in which TensorRT can refuse it."""

from pathlib import Path
from typing import Any

import pytest

from trtdeploy.backends.compiler.compile_request import CompileRequest, EngineSpec
from trtdeploy.backends.compiler.network import ParseFailedError, ask_parser
from trtdeploy.backends.compiler.parser_answer import ParserError
from trtdeploy.config.deploy_profile import BuildSection
from trtdeploy.core.errors import CompileError, NotPossibleError

from .engine_cases import RTX, TENSORRT, WEAK_ONLY, list_networks, make_network, run_build
from .standin import VERSIONS, StandinModule, make_trt_module


@pytest.fixture(params=VERSIONS)
def trt(request: pytest.FixtureRequest) -> StandinModule:
    """Return the stand-in of each version."""
    return make_trt_module(request.param)


def fail_parsing(trt: StandinModule) -> None:
    """Have the parser refuse a node in one way and the graph in another."""
    error = {"desc": "false", "func": "checkDet", "code": "UNSUPPORTED_NODE"}
    graph = {"desc": "Network must have one output", "func": "importModel", "code": "INVALID_GRAPH"}
    made = [
        trt.context.make("ParserError", **error, name="/a/Det", op="Det"),
        trt.context.make("ParserError", **graph, name="", op=""),
    ]
    for member in ("desc", "func"):
        trt.script[f"ParserError.{member}"] = lambda e, key=member: e._state[key]
    trt.script["ParserError.code"] = lambda e: trt.context.member("ErrorCode", e._state["code"])
    if "node_name" in trt.context.class_api("ParserError")["attributes"]:
        trt.script["ParserError.node_name"] = lambda e: e._state["name"]
        trt.script["ParserError.node_operator"] = lambda e: e._state["op"]
    trt.script["OnnxParser.parse_from_file"] = lambda _parser, _path: False
    trt.script["OnnxParser.num_errors"] = len(made)
    trt.script["OnnxParser.get_error"] = lambda _parser, index: made[index]
    trt.script["OnnxParser.supports_operator"] = lambda _parser, op_name: op_name != "Det"


def test_the_plan_is_written_whole(trt: StandinModule, tmp_path: Path) -> None:
    build = run_build(trt, tmp_path)
    assert (tmp_path / "model.engine").read_bytes() == f"plan of {trt.context.label}".encode()
    assert [path.name for path in tmp_path.iterdir()] == ["model.engine"]
    assert build.result.version == trt.__version__
    assert build.result.parse_s >= 0 <= build.result.build_s


def test_the_file_is_parsed_by_name_so_that_external_data_is_found(
    trt: StandinModule, tmp_path: Path
) -> None:
    run_build(trt, tmp_path)
    (parsed,) = trt.calls.select("OnnxParser", "parse_from_file")
    assert parsed.args == (str(tmp_path / "model.onnx"),)


@pytest.mark.parametrize(
    ("version", "last"),
    [*((v, ["prove precision"]) for v in TENSORRT), *((v, []) for v in RTX)],
)
def test_phases_are_reported(version: str, last: list[str], tmp_path: Path) -> None:
    trt = make_trt_module(version)
    assert run_build(trt, tmp_path).phases == ["parse", "build", *last]


def test_progress_is_reported_where_tensorrt_tells_it(trt: StandinModule, tmp_path: Path) -> None:
    goes_on: list[object] = []

    def build(_builder: Any, _network: Any, config: Any) -> bytes:
        if "IProgressMonitor" in trt.context.api["classes"]:
            monitor = config.progress_monitor
            monitor.phase_start("Tactic selection", None, 2)
            goes_on.append(monitor.step_complete("Tactic selection", 1))
            monitor.phase_finish("Tactic selection")
        return b"plan"

    trt.script["Builder.build_serialized_network"] = build
    phases = run_build(trt, tmp_path).phases
    has_monitor = trt.context.label != "TensorRT 8.6.1"
    assert ("build: Tactic selection" in phases) is has_monitor
    assert goes_on == ([True] if has_monitor else [])


def test_the_parser_refuses_the_model(trt: StandinModule, tmp_path: Path) -> None:
    fail_parsing(trt)
    with pytest.raises(ParseFailedError) as info:
        run_build(trt, tmp_path)
    named = trt.context.label != "TensorRT 8.6.1"
    assert info.value.errors == (
        ParserError(
            "checkDet: false",
            "UNSUPPORTED_NODE",
            "/a/Det" if named else "",
            "Det" if named else "",
        ),
        ParserError("Network must have one output", "INVALID_GRAPH", "", ""),
    )
    assert trt.calls.select("Builder", "build_serialized_network") == []


def test_the_builder_returns_nothing(trt: StandinModule, tmp_path: Path) -> None:
    def build(builder: Any, _network: Any, _config: Any) -> None:
        severity = trt.ILogger.Severity
        builder.logger.log(severity.WARNING, "weights are subnormal")
        builder.logger.log(severity.ERROR, "no implementation for node conv")
        builder.logger.log(severity.INTERNAL_ERROR, "assertion failed")

    trt.script["Builder.build_serialized_network"] = build
    said = r"returned no engine: no implementation for node conv \| assertion failed"
    with pytest.raises(CompileError, match=said) as info:
        run_build(trt, tmp_path)
    assert info.value.exit_code == 6
    assert list(tmp_path.iterdir()) == []


def test_warnings_are_kept_once_and_written_to_the_log(
    trt: StandinModule, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def build(builder: Any, _network: Any, _config: Any) -> bytes:
        for _ in range(2):
            builder.logger.log(trt.ILogger.Severity.WARNING, "weights are subnormal")
        builder.logger.log(trt.ILogger.Severity.VERBOSE, "a million of these")
        builder.logger.log(trt.ILogger.Severity.INFO, "done")
        return b"plan"

    trt.script["Builder.build_serialized_network"] = build
    assert run_build(trt, tmp_path).result.warnings == ("weights are subnormal",)
    written = capsys.readouterr().err.splitlines()
    assert written == ["[WARNING] weights are subnormal"] * 2 + ["[INFO] done"]


@pytest.mark.parametrize("version", TENSORRT)
def test_an_engine_that_does_not_load_is_not_kept(version: str, tmp_path: Path) -> None:
    trt = make_trt_module(version)
    trt.script["Runtime.deserialize_cuda_engine"] = None
    with pytest.raises(CompileError, match="cannot load the engine"):
        run_build(trt, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", ["CUDA initialization failure with error: 35", ""])
def test_tensorrt_does_not_start_without_a_driver(
    words: str, trt: StandinModule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(logger: Any) -> None:
        if words:
            logger.log(trt.ILogger.Severity.ERROR, words)
        raise TypeError("pybind11::init(): factory function returned nullptr")

    monkeypatch.setattr(trt, "Builder", fail)
    for run in (lambda: run_build(trt, tmp_path), lambda: ask(trt)):
        with pytest.raises(NotPossibleError, match=words or "returned nullptr") as info:
            run()
        assert str(info.value).startswith(f"{trt.context.label} does not start")
        assert info.value.exit_code == 5


def ask(trt: StandinModule) -> dict[str, Any]:
    """Ask the parser of a stand-in."""
    request = CompileRequest(
        spec=EngineSpec(trt.__name__),
        options=BuildSection(),
        model_path="model.onnx",
        parse_only=True,
    )
    return ask_parser(trt, request)


def test_the_probe_parses_the_network_that_a_build_would(trt: StandinModule) -> None:
    trt.set_network(make_network())
    answer = ask(trt)
    assert answer == {"parser": trt.context.label, "unsupported_operators": [], "errors": []}
    flags = trt.context.api["enums"]["NetworkDefinitionCreationFlag"]
    if trt.context.label.removeprefix("TensorRT ") in WEAK_ONLY:
        assert list_networks(trt) == [1 << flags["EXPLICIT_BATCH"]]
    assert trt.calls.select("Builder", "create_builder_config") == []


def test_the_probe_names_operators_where_the_parser_does(trt: StandinModule) -> None:
    fail_parsing(trt)
    answer = ask(trt)
    named = trt.context.label != "TensorRT 8.6.1"
    assert [error["op_type"] for error in answer["errors"]] == ["Det" if named else "", ""]
    assert answer["unsupported_operators"] == (["Det"] if named else [])
    assert len(list_networks(trt)) == 1

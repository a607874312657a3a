"""What the installed parser says, merged with what the static checks found."""

from __future__ import annotations

from tests.builders import chain, in_memory
from tests.preflight import models
from trtdeploy.backends.compiler.parser_answer import ParserAnswer, ParserError
from trtdeploy.preflight.checking import check_model
from trtdeploy.preflight.report import CheckReport
from trtdeploy.preflight.target import CheckTarget

RTX = CheckTarget("tensorrt_rtx", "1.7.1")
PLUGIN = "Plugin not found"


def check(
    make: models.MakeModel,
    *errors: ParserError,
    unsupported: tuple[str, ...] = (),
    crashed: str = "",
) -> CheckReport:
    answer = ParserAnswer("TensorRT-RTX 1.7.1.116", frozenset(unsupported), errors, crashed)
    return check_model(in_memory(make()), target=RTX, parser=answer)


def relu() -> object:
    return chain(["Relu"])


def test_report_says_who_was_asked() -> None:
    assert check(relu).asked == "TensorRT-RTX 1.7.1.116 (installed parser)"
    without = check_model(in_memory(chain(["Relu"])), target=RTX)
    assert without.asked.startswith("shipped table: OnnxParser.supports_operator")


def test_error_without_a_static_explanation_is_a_blocker_of_its_own() -> None:
    report = check(relu, ParserError("no  such\nthing", "UNSUPPORTED_NODE", "v0", "Relu"))
    (finding,) = report.blockers
    assert (finding.code, finding.node, finding.op_type) == ("parser-error", "v0", "Relu")
    assert "no such thing (UNSUPPORTED_NODE)" in finding.message


def test_error_is_added_to_the_static_finding_of_its_node() -> None:
    error = ParserError("TensorRT does not support UINT8", "UNSUPPORTED_NODE", "mid_uint8", "Cast")
    (finding,) = check(models.uint8_inside, error).blockers
    assert (finding.code, finding.node) == ("uint8-inside", "mid_uint8")
    assert "TensorRT does not support UINT8" in finding.message


def test_error_at_a_node_the_user_did_not_name_finds_it_by_operator() -> None:
    error = ParserError(PLUGIN, "INVALID_NODE", "FancyWarp_1", "FancyWarp")
    report = check(models.unknown_operators, error)
    (finding,) = [f for f in report.blockers if PLUGIN in f.message]
    assert (finding.code, finding.node) == ("unknown-operator", "unnamed #1")


def test_error_without_a_node_is_explained_by_text_in_the_model() -> None:
    error = ParserError("Failed to import initializer: labels", "INVALID_GRAPH", "", "")
    report = check(models.unknown_operators, error)
    (finding,) = [f for f in report.blockers if "Failed to import" in f.message]
    assert finding.code == "string-tensor"
    assert len(report.blockers) == 5


def test_parser_overrules_the_shipped_table() -> None:
    assert not check(models.determinant).blockers
    (finding,) = check(relu, unsupported=("Relu",)).blockers
    assert (finding.code, finding.node) == ("unsupported-operator", "v0")


def test_plugin_that_is_not_shipped_is_missing_whatever_the_parser_says() -> None:
    assert [f.code for f in check(models.missing_plugin).blockers] == ["missing-plugin"]


def test_crash_is_a_blocker_and_the_table_answers() -> None:
    report = check(models.determinant, crashed="Assertion failed: 0 == 1")
    assert {f.code for f in report.blockers} == {"parser-crashed", "unsupported-operator"}
    assert any("0 == 1" in f.message for f in report.blockers)

"""What the command line's own parser refuses is one JSON document too, when that was asked for."""

from __future__ import annotations

import json

import pytest

from trtdeploy.cli.main import run

WRONG = {
    "missing argument": (["build"], "Missing argument 'MODEL'"),
    "missing option": (["check", "net.onnx"], "Missing option '--profile'"),
    "unknown option": (["build", "net.onnx", "--nonsense"], "--nonsense"),
    "unknown command": (["bild"], "bild"),
    "wrong value": (["parity", "a", "-r", "b", "--max-drop", "much"], "--max-drop"),
    "one of ours": (["build", "net.onnx"], "build needs --profile"),
}


@pytest.mark.parametrize("spelling", [["--output", "json"], ["--output=json"]])
@pytest.mark.parametrize(("arguments", "said"), WRONG.values(), ids=WRONG)
def test_usage_errors_are_json_when_asked(
    arguments: list[str], said: str, spelling: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*arguments, *spelling]) == 2
    captured = capsys.readouterr()
    error = json.loads(captured.out)["error"]
    assert said in error["message"]
    assert error["exit_code"] == 2
    assert (error["kind"], bool(error["hint"])) == ("UsageError", True)
    assert "Traceback" not in captured.err


def test_people_get_the_parsers_own_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["build", "--output", "json"]) == 2
    assert run(["build"]) == 2
    captured = capsys.readouterr()
    assert captured.out.count('"error"') == 1  # the format of one run is not that of the next
    assert "Usage: trtdeploy build" in captured.err


def test_what_follows_two_dashes_is_no_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "--", "--output", "json"]) == 2
    assert capsys.readouterr().out == ""


def test_an_override_that_cannot_work_is_a_usage_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["profiles", "orin-fp16", "--set", "recipe=fp8"]) == 2
    assert "error: --set recipe=fp8 on orin-fp16.yaml: recipe: fp8" in capsys.readouterr().err

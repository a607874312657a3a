from __future__ import annotations

from pathlib import Path

import pytest

from trtdeploy.core.errors import InputError, MissingDependencyError, NotPossibleError
from trtdeploy.export.framework_import import (
    explain_broken_framework,
    explain_failed_build,
    import_framework,
)


def test_an_absent_package_says_how_to_get_it() -> None:
    with pytest.raises(MissingDependencyError, match="no_such_framework is needed") as caught:
        import_framework("no_such_framework", needed_for="this", install="pip install it")
    assert caught.value.hint == "Install it with: pip install it"


def test_a_package_whose_code_fails_is_told_from_an_absent_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "raise RuntimeError('operator torchvision::nms does not exist')"
    (tmp_path / "broken_framework.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MissingDependencyError, match="installed and cannot be imported") as caught:
        import_framework("broken_framework", needed_for="this", install="-")
    assert "RuntimeError: operator torchvision::nms" in caught.value.message
    assert "torchvision broken_framework" in caught.value.hint


def test_what_a_package_prints_while_it_is_imported_is_kept_from_stdout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "chatty_framework.py").write_text("print('Creating new settings')")
    monkeypatch.syspath_prepend(tmp_path)
    import_framework("chatty_framework", needed_for="this", install="-")
    assert capsys.readouterr().out == ""


def test_the_innermost_reason_is_named() -> None:
    inner = RuntimeError("operator torchvision::nms does not exist")
    outer = ModuleNotFoundError("Could not import module 'BertModel'")
    outer.__cause__ = inner
    assert "torchvision::nms" in explain_broken_framework("torchvision.models", outer).message


class ConnectError(Exception):
    """As clients raise it that know no ``OSError``."""


@pytest.mark.parametrize(
    ("error", "downloads", "kind"),
    [
        (TypeError("no setting 'x'"), False, InputError),
        (TypeError("no setting 'x'"), True, InputError),
        (OSError("no route"), True, NotPossibleError),
        (ConnectError("no route"), True, NotPossibleError),
        (ConnectError("no route"), False, InputError),
    ],
)
def test_the_network_is_told_from_settings(
    error: Exception, downloads: bool, kind: type[Exception]
) -> None:
    found = explain_failed_build("timm:x", error, downloads=downloads)
    assert type(found) is kind
    assert str(error) in found.message

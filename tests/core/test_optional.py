from __future__ import annotations

import sys
from pathlib import Path

import pytest

from trtdeploy.core.errors import MissingDependencyError
from trtdeploy.core.optional import import_optional


def test_a_present_module_is_returned() -> None:
    assert import_optional("json", needed_for="this test", install="-") is sys.modules["json"]


def test_an_absent_module_says_who_needs_it_and_how_to_get_it() -> None:
    with pytest.raises(MissingDependencyError, match="no_such_sdk is needed for compiling") as info:
        import_optional("no_such_sdk", needed_for="compiling", install="pip install no_such_sdk")
    assert info.value.hint == "Install it with: pip install no_such_sdk"


def test_a_broken_module_keeps_the_words_of_the_loader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_sdk.py").write_text("raise ImportError('libnvinfer.so.10 is missing')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MissingDependencyError, match=r"libnvinfer\.so\.10 is missing"):
        import_optional("broken_sdk", needed_for="compiling", install="-")

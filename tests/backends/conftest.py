"""Fixtures of the tests of the compiler process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.backends.compiler.fake_compiler import SOURCE, MakeCompiler


@pytest.fixture
def make_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeCompiler:
    """Return the function that puts the fake compiler on PYTHONPATH for this test."""

    def make(behaviour: str) -> Path:
        package = tmp_path / "sdk" / "tensorrt_rtx"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(SOURCE)
        pids = tmp_path / "pids"
        monkeypatch.setenv("PYTHONPATH", str(package.parent))
        monkeypatch.setenv("FAKE_COMPILER", behaviour)
        monkeypatch.setenv("FAKE_PID_FILE", str(pids))
        return pids

    return make

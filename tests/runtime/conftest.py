"""The machine that loading believes it runs on."""

from __future__ import annotations

import pytest

from trtdeploy.runtime import loading, machine_check

from .folders import Machine, Use


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Use:
    """Return what makes this process believe it runs on a machine."""

    def put(machine: Machine) -> Machine:
        monkeypatch.setattr(loading, "import_trt", lambda _module, _activity: machine.trt)
        monkeypatch.setattr(loading, "open_device_memory", lambda _index: machine.memory)
        monkeypatch.setattr(machine_check, "describe_platform", lambda: "Linux x86_64")
        return machine

    return put

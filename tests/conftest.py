"""What every test shares: fixed seeds, and a reason where there is no GPU."""

from __future__ import annotations

import ctypes
import random

import hypothesis
import numpy as np
import pytest

# Derandomized: the same examples on every run. No deadline: a shared machine stalls now and then,
# and the timeout of pytest ends what hangs.
hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None)
hypothesis.settings.load_profile("repeatable")


def find_no_gpu_reason() -> str | None:
    """Ask the driver, not an SDK: return why no GPU can be used, None when one can."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "no NVIDIA driver: libcuda.so.1 cannot be loaded"
    count = ctypes.c_int(0)
    if status := driver.cuInit(0):
        return f"the NVIDIA driver does not start: cuInit returned {status}"
    if status := driver.cuDeviceGetCount(ctypes.byref(count)):
        return f"the NVIDIA driver lists no devices: cuDeviceGetCount returned {status}"
    return None if count.value else "the NVIDIA driver sees no GPU"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    gpu_tests = [item for item in items if item.get_closest_marker("gpu")]
    reason = find_no_gpu_reason() if gpu_tests else None
    if reason is not None:
        for item in gpu_tests:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(autouse=True)
def _fixed_seeds() -> None:
    """Back up tests that forget a generator of their own; ``default_rng(seed)`` is the rule."""
    random.seed(0)
    np.random.seed(0)

"""What a machine with a GPU has: TensorRTs that can compile for it, and CUDA packages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from trtdeploy.backends.compiler.compile_process import compile_engine
from trtdeploy.backends.compiler.compile_request import CompileRequest, EngineSpec
from trtdeploy.backends.cuda.device_memory import DeviceMemory, GpuDevice
from trtdeploy.backends.cuda.opening import open_device_memory
from trtdeploy.backends.engine.engine_loading import EngineRequest
from trtdeploy.backends.engine.tensorrt_session import TensorrtSession, open_engine
from trtdeploy.backends.installed import is_installed
from trtdeploy.backends.trt_module import import_trt
from trtdeploy.config.compute_capability import TENSORRT_RTX_TARGETS
from trtdeploy.config.deploy_profile import BuildSection
from trtdeploy.core.ranges import OptimizationProfile


@dataclass(frozen=True)
class EngineMaker:
    """Compiles for the GPU of this machine and opens sessions.

    Attributes:
        module: ``tensorrt`` or ``tensorrt_rtx``.
        memory: The GPU.
        folder: Where files go.
    """

    module: str
    memory: DeviceMemory
    folder: Path

    @property
    def device(self) -> GpuDevice:
        """The GPU."""
        return self.memory.device

    def compile(self, model: Path, *profiles: OptimizationProfile, **fields: Any) -> bytes:
        """Return the plan of an ONNX file."""
        is_rtx = self.module == "tensorrt_rtx"
        capabilities = (self.device.compute_capability,) if is_rtx else ()
        engine = self.folder / "model.engine"
        request = CompileRequest(
            model_path=str(model),
            engine_path=str(engine),
            options=BuildSection(compute_capabilities=capabilities),
            spec=EngineSpec(self.module, optimization_profiles=profiles, **fields),
        )
        compile_engine(request, self.folder / "build.log")
        return engine.read_bytes()

    def open(self, plan: bytes, *profiles: OptimizationProfile, **request: Any) -> TensorrtSession:
        """Open a session over a plan."""
        trt = import_trt(self.module, "testing")
        described = EngineRequest(optimization_profiles=profiles, **request)
        return open_engine(trt, plan, self.memory, described)


@pytest.fixture(params=["tensorrt", "tensorrt_rtx"])
def maker(request: pytest.FixtureRequest, tmp_path: Path) -> EngineMaker:
    """Return the maker of each installed TensorRT; skip with the reason for the others."""
    if not is_installed(request.param):
        pytest.skip(f"{request.param} is not installed")
    if not (is_installed("cuda") or is_installed("pycuda")):
        pytest.skip("neither cuda-python nor PyCUDA is installed")
    memory = open_device_memory()
    capability = memory.device.compute_capability
    if request.param == "tensorrt_rtx" and capability not in TENSORRT_RTX_TARGETS:
        pytest.skip(f"TensorRT-RTX does not compile for {memory.device.name} ({capability})")
    return EngineMaker(request.param, memory, tmp_path)


Opener = Callable[[int], DeviceMemory]


@pytest.fixture(params=["cuda", "pycuda"])
def open_memory(request: pytest.FixtureRequest) -> Opener:
    """Return the opener of each installed CUDA package."""
    if not is_installed(request.param):
        pytest.skip(f"{request.param} is not installed")
    from trtdeploy.backends.cuda.cuda_python_memory import open_cuda_memory
    from trtdeploy.backends.cuda.pycuda_memory import open_pycuda_memory

    return {"cuda": open_cuda_memory, "pycuda": open_pycuda_memory}[request.param]

"""One engine builder for TensorRT 8.6, 10.x, 11.x and TensorRT-RTX.

The ``trt`` module is an argument, so the same code runs against every version and, in the contract
tests, against a stand-in generated from each version's real API.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trtdeploy.backends.compiler.builder_config import (
    apply_options,
    load_timing_cache,
    save_timing_cache,
)
from trtdeploy.backends.compiler.compile_request import (
    CompileRequest,
    CompileResult,
    PrecisionProof,
)
from trtdeploy.backends.compiler.compiler_log import CompilerLog, make_logger, make_progress_monitor
from trtdeploy.backends.compiler.network import count_layer_types, make_builder, parse_network
from trtdeploy.backends.compiler.optimization_profiles import add_optimization_profiles
from trtdeploy.backends.compiler.precision_proof import prove_from_inspector, prove_from_network
from trtdeploy.backends.compiler.weak_typing import apply_weak_typing
from trtdeploy.backends.trt_module import (
    find_network_flags,
    is_rtx,
    name_product,
    resolve_typing,
)
from trtdeploy.core.errors import CompileError, NotPossibleError

Report = Callable[[str], None]


def build_engine(trt: Any, request: CompileRequest, report: Report) -> CompileResult:
    """Compile ``request.model_path`` into ``request.engine_path``.

    Args:
        trt: The ``tensorrt`` or ``tensorrt_rtx`` module.
        request: What to build.
        report: Called with the name of each phase as it starts.

    Raises:
        ParseFailedError: The parser refused the model.
        CompileError: The builder refused it, or the engine lost its precision.
        NotPossibleError: This TensorRT or this machine lacks something the request asks for.
        OptimizationProfileError: The optimization profiles do not fit the model.
    """
    spec, log = request.spec, CompilerLog()
    logger = make_logger(trt, log)
    typing = resolve_typing(trt, spec.typing)
    _refuse_strong_model(trt, request, typing)
    builder = make_builder(trt, logger, log)
    config = builder.create_builder_config()
    flags = apply_options(trt, builder, config, request)
    report("parse")
    parse_started = time.perf_counter()
    network = builder.create_network(find_network_flags(trt, typing))
    parser = parse_network(trt, network, logger, request.model_path)
    parse_s = time.perf_counter() - parse_started
    proof: PrecisionProof | None = None
    if typing == "weak":
        flags += apply_weak_typing(trt, config, network, request)
    else:
        proof = prove_from_network(count_layer_types(trt, network), spec.low_dtype)
    add_optimization_profiles(builder, config, network, spec.optimization_profiles)
    load_timing_cache(config, request.timing_cache_path)
    build_started = time.perf_counter()
    plan = _build_plan(trt, builder, config, network, log, report)
    build_s = time.perf_counter() - build_started
    del parser  # owned the weights until here
    if proof is None or not is_rtx(trt):  # whose plans load on their own GPU only
        report("prove precision")
        proof = _prove_engine(trt, logger, plan, request, proof)
    _write_plan(plan, Path(request.engine_path))
    save_timing_cache(config, request.timing_cache_path)
    return CompileResult(
        backend=spec.module,
        version=str(trt.__version__),
        flags=tuple(flags),
        typing=typing,
        precision=proof,
        warnings=log.warnings(),
        parse_s=round(parse_s, 3),
        build_s=round(build_s, 3),
    )


def _refuse_strong_model(trt: Any, request: CompileRequest, typing: str) -> None:
    """Refuse a model with FP16 scales where the parser reads FP32 scales only."""
    flags = request.weak_flags or ()
    # INT8 beside a narrow float has scales of that type
    narrow_scales = "INT8" in flags and len(flags) > 1
    if typing == "weak" and request.spec.typing != "weak" and narrow_scales:
        raise NotPossibleError(
            f"{name_product(trt)} reads opset 17 and FP32 scales, and the model was typed with "
            "FP16 scales for a newer one",
            hint="Build the folder again from the ONNX file with --set typing=weak.",
        )


def _build_plan(
    trt: Any, builder: Any, config: Any, network: Any, log: CompilerLog, report: Report
) -> Any:
    monitor = make_progress_monitor(trt, report)
    if monitor is not None:
        config.progress_monitor = monitor
    report("build")
    plan = builder.build_serialized_network(network, config)
    if plan is None:
        raise CompileError(
            "the TensorRT builder returned no engine: " + (log.last_errors() or "no reason given"),
            hint="",
        )
    return plan


def _prove_engine(
    trt: Any, logger: Any, plan: Any, request: CompileRequest, network_proof: PrecisionProof | None
) -> PrecisionProof:
    runtime = trt.Runtime(logger)
    if request.options.version_compatible:
        runtime.engine_host_code_allowed = True  # the plan carries a lean runtime; it is our own
    engine = runtime.deserialize_cuda_engine(plan)
    if engine is None:
        raise CompileError("TensorRT cannot load the engine it has just built")
    inspector = engine.create_engine_inspector()
    text = inspector.get_engine_information(trt.LayerInformationFormat.JSON)
    return prove_from_inspector(text, request.spec.low_dtype, network_proof)


def _write_plan(plan: Any, path: Path) -> None:
    temporary = path.with_name(path.name + ".tmp")
    with temporary.open("wb") as file:
        file.write(memoryview(plan))
    temporary.replace(path)

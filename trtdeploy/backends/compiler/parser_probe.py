"""Asking the installed parser what it makes of a model, without building anything."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from trtdeploy.backends.compiler.compile_request import CompileRequest
from trtdeploy.backends.compiler.compiler_log import CompilerLog, make_logger
from trtdeploy.backends.compiler.network import ParseFailedError, make_builder, parse_network
from trtdeploy.backends.trt_module import find_network_flags, name_product, resolve_typing


def ask_parser(trt: Any, request: CompileRequest) -> dict[str, Any]:
    """Parse the model and return a ``ParserAnswer`` as plain data.

    Of ``request.spec`` nothing is used: parsing needs no config.

    Raises:
        NotPossibleError: TensorRT does not start on this machine.
    """
    log = CompilerLog()
    logger = make_logger(trt, log)
    builder = make_builder(trt, logger, log)
    network = builder.create_network(find_network_flags(trt, resolve_typing(trt, "auto")))
    errors: list[dict[str, str]] = []
    try:
        parser = parse_network(trt, network, logger, request.model_path)
    except ParseFailedError as failed:
        errors = [asdict(error) for error in failed.errors]
        parser = failed.parser
    operators = {*request.operators, *(error["op_type"] for error in errors)} - {""}
    unsupported = {op for op in operators if not parser.supports_operator(op)}
    return {
        "parser": name_product(trt),
        "unsupported_operators": sorted(unsupported),
        "errors": errors,
    }

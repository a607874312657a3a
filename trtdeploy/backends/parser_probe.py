"""Asking the installed parser what it makes of a model, without building anything."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from trtdeploy.backends.compiler_log import CompilerLog, make_logger
from trtdeploy.backends.network import ParseFailedError, parse_network
from trtdeploy.backends.request import CompileRequest
from trtdeploy.backends.trt_module import find_network_flags, name_product, resolve_typing


def ask_parser(trt: Any, request: CompileRequest) -> dict[str, Any]:
    """Parse the model and return a ``ParserAnswer`` as plain data.

    ``request.fp32_nodes`` is not used; ``request.recipe`` neither: parsing needs no config.
    """
    logger = make_logger(trt, CompilerLog())
    builder = trt.Builder(logger)
    network = builder.create_network(find_network_flags(trt, resolve_typing(trt, "auto")))
    errors: list[dict[str, str]] = []
    unsupported: set[str] = set()
    try:
        parse_network(trt, network, logger, request.model_path)
    except ParseFailedError as failed:
        errors = [asdict(error) for error in failed.errors]
        operators = {error.op_type for error in failed.errors if error.op_type}
        unsupported = {op for op in operators if not failed.parser.supports_operator(op)}
    return {
        "parser": name_product(trt),
        "unsupported_operators": sorted(unsupported),
        "errors": errors,
    }

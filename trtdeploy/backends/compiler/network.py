"""From a logger to a builder, from an ONNX file to a network, and what a parser makes of it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from trtdeploy.backends.compiler.compile_request import CompileRequest
from trtdeploy.backends.compiler.compiler_log import CompilerLog, make_logger
from trtdeploy.backends.compiler.parser_answer import ParserError
from trtdeploy.backends.trt_module import find_network_flags, name_product, resolve_typing
from trtdeploy.core.errors import NotPossibleError


class ParseFailedError(Exception):
    """The parser refused the model; carries its errors and the parser itself."""

    def __init__(self, errors: tuple[ParserError, ...], parser: Any) -> None:
        super().__init__(f"{len(errors)} parser errors")
        self.errors = errors
        self.parser = parser


def make_builder(trt: Any, logger: Any, log: CompilerLog) -> Any:
    """Return a ``Builder``.

    Raises:
        NotPossibleError: TensorRT starts on no machine without a GPU and its driver.
    """
    try:
        return trt.Builder(logger)
    except TypeError as error:  # pybind11's words for a factory that returned null
        raise NotPossibleError(
            f"{name_product(trt)} does not start on this machine: {log.last_errors() or error}",
            hint="It needs an NVIDIA GPU and a driver that is new enough: run 'trtdeploy doctor'.",
        ) from error


def parse_network(trt: Any, network: Any, logger: Any, model_path: str) -> Any:
    """Fill ``network`` from ``model_path`` and return the parser, which owns the weights.

    Raises:
        ParseFailedError: With every error the parser reported.
    """
    parser = trt.OnnxParser(network, logger)
    if not parser.parse_from_file(model_path):
        raise ParseFailedError(read_parser_errors(parser), parser)
    return parser


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


def read_parser_errors(parser: Any) -> tuple[ParserError, ...]:
    """Return the parser's errors; node name and operator only where the version gives them."""
    errors = [parser.get_error(position) for position in range(parser.num_errors)]
    return tuple(
        ParserError(
            message=_read_message(error),
            code=error.code().name,
            node=_ask(error, "node_name"),
            op_type=_ask(error, "node_operator"),
        )
        for error in errors
    )


def _read_message(error: Any) -> str:
    """Return the description; a bare condition like ``false`` gets the function it failed in."""
    text = str(error.desc()).strip()
    return text if " " in text else f"{error.func()}: {text}"


def _ask(error: Any, method: str) -> str:
    asked = getattr(error, method, None)
    return str(asked()) if asked is not None else ""


def count_layer_types(trt: Any, network: Any) -> dict[str, int]:
    """Return how many layers give each element type as first output, e.g. ``{"HALF": 61}``.

    Constants and casts are left out: they carry a type, they do not compute in it.
    """
    carriers = (trt.LayerType.CAST, trt.LayerType.CONSTANT)
    counts: dict[str, int] = {}
    for layer in iterate_layers(network):
        if layer.num_outputs and layer.type not in carriers:
            name = layer.get_output_type(0).name
            counts[name] = counts.get(name, 0) + 1
    return counts


def iterate_layers(network: Any) -> list[Any]:
    """Return the layers in order."""
    return [network.get_layer(position) for position in range(network.num_layers)]


def iterate_inputs(network: Any) -> list[Any]:
    """Return the input tensors in order."""
    return [network.get_input(position) for position in range(network.num_inputs)]

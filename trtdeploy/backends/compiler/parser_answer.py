"""What an installed TensorRT ONNX parser says about a model."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ParserError:
    """One error of the ONNX parser.

    Preflight's ``Finding`` has fields of these names with other content (a code of ours, the text
    for people), and backends know nothing of preflight.

    Attributes:
        message: The parser's own words.
        code: Name of the error code, e.g. ``UNSUPPORTED_NODE``.
        node: Name of the ONNX node; empty when the error concerns the whole graph.
        op_type: Operator of that node; empty when unknown.
    """

    message: str
    code: str
    node: str
    op_type: str


@dataclass(frozen=True)
class ParserAnswer:
    """Result of asking a parser.

    Attributes:
        parser: Who answered, e.g. ``TensorRT-RTX 1.7.1.116``.
        unsupported_operators: Operator names of the model that the parser does not know.
        errors: Errors of a full parse; empty when it succeeded.
        crashed: Last words of a parser that took its process down; empty otherwise.
    """

    parser: str
    unsupported_operators: frozenset[str]
    errors: tuple[ParserError, ...]
    crashed: str = ""

"""FindParserErrorsCheck: what the installed parser said."""

from __future__ import annotations

from collections.abc import Iterator

from trtdeploy.backends.compiler.parser_answer import ParserAnswer, ParserError
from trtdeploy.preflight.context import CheckContext
from trtdeploy.preflight.finding import (
    WHOLE_GRAPH,
    Affects,
    Finding,
    FindingKind,
    Place,
    Severity,
)

PARSER_ERROR = FindingKind("parser-error", Severity.BLOCKER, Affects.ENGINE)
PARSER_CRASHED = FindingKind("parser-crashed", Severity.BLOCKER, Affects.ENGINE)


class FindParserErrorsCheck:
    """Pass on the errors of a full parse; those that a static check explains are merged later."""

    def find(self, context: CheckContext) -> Iterator[Finding]:
        """Yield one finding per error, and one for a crash."""
        answer = context.parser
        if answer is None:
            return
        for error in answer.errors:
            place = _find_place(context, error)
            yield PARSER_ERROR.at(
                place,
                f"{answer.parser} refuses {_name_node(error, place)}: {_read_words(error)}",
                "Change the node as the parser says, or replace it by other operators.",
            )
        if answer.crashed:
            yield _report_crash(answer)


def _report_crash(answer: ParserAnswer) -> Finding:
    return PARSER_CRASHED.at(
        WHOLE_GRAPH,
        f"{answer.parser} crashed while it read the model; its last words: {answer.crashed}",
        "Cut the model in half to find the node, and report it to NVIDIA; another TensorRT "
        "version may read it.",
    )


def _read_words(error: ParserError) -> str:
    message = " ".join(error.message.split()) or "no reason given"
    return f"{message} ({error.code})" if error.code else message


def _name_node(error: ParserError, place: Place) -> str:
    """Return ``it``, or the name of a node that only the parsed model has."""
    return "it" if place.node or not error.node else f"the node {error.node!r}"


def _find_place(context: CheckContext, error: ParserError) -> Place:
    """Return the place of the node an error names.

    Nodes that have no name in the user's model, and those a recipe has added, have one in the
    model that was parsed; they come back with an empty name.
    """
    places = [checked.place for checked in context.prepared.nodes]
    for place in places:
        if error.node and place.node == error.node:
            return place
    unnamed = [p for p in places if p.op_type == error.op_type and p.node.startswith("unnamed #")]
    if error.op_type and len(unnamed) == 1:
        return unnamed[0]
    return Place("", error.op_type)

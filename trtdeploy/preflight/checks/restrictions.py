"""FindRestrictionsCheck: operators the engine has, used in a way it does not support."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from trtdeploy.preflight.context import CheckContext
from trtdeploy.preflight.finding import Affects, Finding, FindingKind, Severity
from trtdeploy.preflight.restriction import Restriction
from trtdeploy.preflight.restriction_table import RESTRICTIONS

RESTRICTION_KINDS = {
    code: FindingKind(code, Severity.BLOCKER, Affects.ENGINE)
    for code in sorted({restriction.code for restriction in RESTRICTIONS})
}
"""One kind of finding per kind of restriction."""


class FindRestrictionsCheck:
    """Hold every node against the limits of ``restriction_table``."""

    def find(self, context: CheckContext) -> Iterator[Finding]:
        """Yield one finding per node and limit."""
        by_operator: dict[str, list[Restriction]] = defaultdict(list)
        for restriction in RESTRICTIONS:
            if restriction.binds(context.target):
                for operator in restriction.operators:
                    by_operator[operator].append(restriction)
        engine = context.target.engine_title
        for checked in context.standard_nodes():
            for restriction in by_operator.get(checked.node.op_type, ()):
                reason = restriction.explain(context, checked)
                if reason:
                    yield RESTRICTION_KINDS[restriction.code].at(
                        checked.place,
                        f"{engine} does not import this {checked.node.op_type}: {reason}",
                        restriction.remedy,
                    )

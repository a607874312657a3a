"""The record of everything that the code under test did to a stand-in module."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["call", "get", "set", "int", "probe"]


@dataclass(frozen=True)
class CallRecord:
    """One thing that was done to the stand-in.

    Attributes:
        kind: ``call`` of a method or function; ``get`` of a property or an enum member; ``set`` of
            a property; ``int`` for the conversion of an enum member to a number; ``probe`` for the
            look-up of a name that this version doesn't have (what `hasattr` does).
        target: The class, the enum, or ``trt`` for the module itself.
        member: The method, property, function or enum member.
        args: Positional arguments as passed; for ``set`` the value.
        kwargs: Keyword arguments as passed.
        arguments: Both, by the parameter names of the signature that matched.
        instance: The object whose method or property it was.
    """

    kind: Kind
    target: str
    member: str
    args: tuple[object, ...] = ()
    kwargs: Mapping[str, object] = field(default_factory=dict)
    arguments: Mapping[str, object] = field(default_factory=dict, compare=False, repr=False)
    instance: object = field(default=None, compare=False, repr=False)


class CallLog(list[CallRecord]):
    """All records in order, with the two questions that tests ask most."""

    def select(
        self, target: str | None = None, member: str | None = None, kind: Kind | None = None
    ) -> list[CallRecord]:
        """Return the records that have all the given fields."""
        return [
            record
            for record in self
            if target in {None, record.target}
            and member in {None, record.member}
            and kind in {None, record.kind}
        ]

    def members_used(self, enum: str) -> set[str]:
        """Return which members of an enum had an effect: passed, assigned or made a number.

        Reading a member is recorded as ``get`` but isn't enough, because a `hasattr` that succeeds
        can't be told from any other read.
        """
        used = {record.member for record in self.select(target=enum, kind="int")}
        for record in self:
            for value in (*record.args, *record.kwargs.values()):
                if type(value).__name__ == enum:
                    used.add(str(getattr(value, "name", "")))
        return used

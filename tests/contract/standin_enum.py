"""Enums of a stand-in, with exactly the members and numbers that one version has.

They behave as pybind11's do: ``int(member)`` works, ``1 << member`` and iteration don't, and a
member equals only a member of its own enum.
"""

from collections.abc import Mapping
from typing import ClassVar

from .argument_type import StandinValue
from .call_record import CallLog, CallRecord

ITEM_SIZES: Mapping[str, float] = {
    **dict.fromkeys(("INT8", "UINT8", "BOOL", "FP8"), 1),
    **dict.fromkeys(("INT4", "FP4"), 0.5),
    **dict.fromkeys(("HALF", "BF16"), 2),
    **dict.fromkeys(("FLOAT", "INT32"), 4),
    "INT64": 8,
}


class StandinEnumType(type):
    """Metaclass that records which members are read, and which are looked for in vain."""

    _log: CallLog
    _label: str
    _members: Mapping[str, "StandinEnum"]

    def __getattr__(cls, name: str) -> "StandinEnum":
        """Return a member. None is an attribute of the class, so every read comes through here."""
        members = cls.__dict__.get("_members", {})
        if name in members:
            cls._log.append(CallRecord("get", cls.__name__, name))
            member: StandinEnum = members[name]
            return member
        if not name.startswith("_"):
            cls._log.append(CallRecord("probe", cls.__name__, name))
        raise AttributeError(f"enum {cls.__name__} of {cls._label} has no member {name!r}")

    def __call__(cls, value: int) -> "StandinEnum":
        """Return the member with a number."""
        for member in cls._members.values():
            if member.number == value:
                return member
        raise ValueError(f"enum {cls.__name__} of {cls._label} has no value {value}")

    def __dir__(cls) -> list[str]:
        """List the members as well."""
        return [*super().__dir__(), *cls._members]

    @property
    def __members__(cls) -> dict[str, "StandinEnum"]:
        """All members by name. Reading them here isn't recorded as a read."""
        return dict(cls._members)


class StandinEnum(StandinValue, metaclass=StandinEnumType):
    """One member; a second name of a number (``WEIGHTLESS``) shows the first, as in pybind11."""

    _log: ClassVar[CallLog]
    name: str
    number: int
    """The value, for the stand-in itself: reading it leaves no record."""

    @property
    def value(self) -> int:
        """The number of the member."""
        return int(self)

    @property
    def itemsize(self) -> float | None:
        """Bytes of one element; only a DataType has it, and TensorRT has no answer for E8M0."""
        if type(self).__name__ != "DataType":
            raise AttributeError(f"{self!r} has no attribute 'itemsize'")
        return ITEM_SIZES.get(self.name)

    def __int__(self) -> int:
        """Return the number, and record that it was wanted."""
        self._log.append(CallRecord("int", type(self).__name__, self.name))
        return self.number

    __index__ = __int__

    def __eq__(self, other: object) -> bool:
        """Compare with a member of the same enum; anything else, a number too, is unequal."""
        return type(other) is type(self) and other.number == self.number

    def __hash__(self) -> int:
        """Hash as pybind11 does."""
        return hash(self.number)

    def __repr__(self) -> str:
        """Return ``<BuilderFlag.TF32: 6>``."""
        return f"<{type(self).__name__}.{self.name}: {self.number}>"

    def __str__(self) -> str:
        """Return ``BuilderFlag.TF32``."""
        return f"{type(self).__name__}.{self.name}"


def build_enum(
    name: str, numbers: Mapping[str, int], log: CallLog, label: str
) -> type[StandinEnum]:
    """Return an enum class.

    Args:
        name: The name of the enum.
        numbers: Member to number, in the order of their definition.
        log: Where reads are recorded.
        label: How messages name the version.
    """
    enum = StandinEnumType(name, (StandinEnum,), {"_log": log, "_label": label})
    assert issubclass(enum, StandinEnum)
    first_name = {number: member for member, number in reversed(list(numbers.items()))}
    members = {}
    for member_name, number in numbers.items():
        member = object.__new__(enum)
        member.name, member.number = first_name[number], number
        members[member_name] = member
    enum._members = members
    return enum

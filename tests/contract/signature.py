"""Parsing of pybind11's signature texts, and the check of a call against one."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from .argument_type import split_top_level

SIGNATURE = re.compile(r"^(?P<name>\w+)\((?P<parameters>.*)\)(?: -> (?P<returns>.+))?$")
PARAMETER = re.compile(r"^(?P<name>\*{0,2}\w+)(?:: (?P<type>.+?))?(?: = (?P<default>.+))?$")
Accepts = Callable[[str, object], bool]


@dataclass(frozen=True)
class Mismatch:
    """Why a call doesn't fit a signature."""

    reason: str


@dataclass(frozen=True)
class Parameter:
    """One parameter; its name starts with ``*`` or ``**`` for a variadic one."""

    name: str
    type: str
    default: str | None


@dataclass(frozen=True)
class Signature:
    """One signature, without ``self``."""

    text: str
    parameters: tuple[Parameter, ...]
    returns: str
    is_static: bool

    def bind(
        self, args: tuple[object, ...], kwargs: Mapping[str, object], accepts: Accepts
    ) -> dict[str, object] | Mismatch:
        """Return the arguments by parameter name, or why the call doesn't fit.

        Args:
            args: Positional arguments, without ``self``.
            kwargs: Keyword arguments.
            accepts: Tells whether a type text accepts a value.

        Returns:
            The arguments in the order of the parameters; those left to their default are missing.
        """
        if any(parameter.name.startswith("*") for parameter in self.parameters):
            return {**{f"arg{index}": value for index, value in enumerate(args)}, **kwargs}
        if len(args) > len(self.parameters):
            return Mismatch(f"takes {len(self.parameters)} arguments, {len(args)} were given")
        given = dict(zip((p.name for p in self.parameters), args, strict=False))
        for name in kwargs:
            if name in given:
                return Mismatch(f"argument {name!r} was given twice")
        bound = given | dict(kwargs)
        reason = self._check_names(bound) or self._check_types(bound, accepts)
        if reason:
            return Mismatch(reason)
        return {p.name: bound[p.name] for p in self.parameters if p.name in bound}

    def _check_names(self, bound: Mapping[str, object]) -> str | None:
        names = [parameter.name for parameter in self.parameters]
        for name in bound:
            if name not in names:
                return f"unexpected keyword {name!r}"
        for parameter in self.parameters:
            if parameter.default is None and parameter.name not in bound:
                return f"argument {parameter.name!r} is missing"
        return None

    def _check_types(self, bound: Mapping[str, object], accepts: Accepts) -> str | None:
        for parameter in self.parameters:
            value = bound.get(parameter.name)
            is_default = parameter.name not in bound or (
                value is None and parameter.default == "None"
            )
            if not is_default and not accepts(parameter.type, value):
                given = f"{type(value).__name__} {value!r:.80}"
                return f"argument {parameter.name!r} must be {parameter.type}, not {given}"
        return None


@cache
def parse_signature(text: str) -> Signature:
    """Parse ``name(self: C, a: int = 0) -> R``; a text of another form raises ValueError."""
    match = SIGNATURE.match(text)
    if not match:
        raise ValueError(f"not a pybind11 signature: {text!r}")
    parameters = []
    for part in split_top_level(match["parameters"]):
        found = PARAMETER.match(part)
        if not found:
            raise ValueError(f"not a parameter: {part!r} in {text!r}")
        parameters.append(Parameter(found["name"], found["type"] or "object", found["default"]))
    has_self = bool(parameters) and parameters[0].name in {"self", "*args"}
    if parameters and parameters[0].name == "self":
        del parameters[0]
    return Signature(text, tuple(parameters), match["returns"] or "object", not has_self)

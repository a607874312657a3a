"""What all classes of one stand-in module share: the log, the script, and the answer to a call."""

from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from .api_data import ClassApi, ModuleApi
from .argument_type import INT_SEQUENCES, StandinValue, accepts_value, split_generic
from .call_record import CallLog, CallRecord
from .signature import Mismatch, Signature

MODULE_TARGET = "trt"
PLAIN_DEFAULTS: Mapping[str, Callable[[], object]] = {
    "int": int,
    "float": float,
    "str": str,
    "bytes": bytes,
    "list": list,
    "buffer": lambda: memoryview(b""),
    "Buffer": lambda: memoryview(b""),
    "memoryview": lambda: memoryview(b""),
}
Behaviour = Callable[..., object]


class Entry(NamedTuple):
    """What a table holds for a member; it tells a value of None from no entry."""

    value: Any


class Script(dict[str, object]):
    """What to answer, by ``Class.member`` or ``trt.function``: a value, or a function.

    A function is called as the method would be, the object first. A key that this version doesn't
    have raises AttributeError, so that a test can't script what could never happen.
    """

    def __init__(self, api: ModuleApi, label: str) -> None:
        """Create an empty script for one version."""
        super().__init__()
        self._label = label
        self._keys = {f"{MODULE_TARGET}.{name}" for name in api["functions"]}
        for name, described in api["classes"].items():
            self._keys.update(f"{name}.{attribute}" for attribute in described["attributes"])

    def __setitem__(self, key: str, value: object) -> None:
        """Set the answer of one member."""
        if key not in self._keys:
            raise AttributeError(f"{self._label} has no {key} to script")
        super().__setitem__(key, value)


@dataclass
class StandinContext:
    """Everything behind one stand-in module.

    Attributes:
        api: The recorded API of the version.
        label: How messages name the version.
        log: All records, in order.
        script: The test's answers; they win over everything else.
        behaviours: The stand-in's own answers for members that have state, by ``Class.member``.
        types: The classes and enums by name, nested enums included.
        settings: Options of the behaviours, such as the network that the parser finds.
    """

    api: ModuleApi
    label: str
    log: CallLog
    script: Script
    behaviours: dict[str, Behaviour] = field(default_factory=dict)
    types: dict[str, type] = field(default_factory=dict)
    settings: MutableMapping[str, Any] = field(default_factory=dict)

    def class_api(self, name: str) -> ClassApi:
        """Return the recorded API of one class."""
        return self.api["classes"][name]

    def make(self, class_name: str, **state: object) -> Any:
        """Create an object that only TensorRT itself can create, with values for its properties."""
        cls: Any = self.types[class_name]
        instance = cls.__new__(cls)
        instance.__dict__["_state"].update(state)
        return instance

    def member(self, enum: str, name: str) -> Any:
        """Return a member of an enum without a record of it having been read."""
        return self.types[enum].__members__[name]  # type: ignore[attr-defined]  # an enum

    def find(self, table: Mapping[str, object], target: str, member: str) -> Entry | None:
        """Return the entry for a member of a class, else of its nearest base that has one."""
        bases = self.api["classes"][target]["bases"] if target in self.api["classes"] else []
        keys = (f"{name}.{member}" for name in (target, *bases))
        return next((Entry(table[key]) for key in keys if key in table), None)

    def accepts(self, text: str, value: object) -> bool:
        """Tell whether a parameter of type `text` accepts a value in this version."""
        return accepts_value(text, value, self.types)

    def bind(
        self,
        place: str,
        signatures: tuple[Signature, ...],
        args: tuple[object, ...],
        kwargs: Mapping[str, object],
    ) -> tuple[Signature, dict[str, object]]:
        """Return the first overload that a call fits, and its arguments by name.

        Raises:
            TypeError: None fits; the text names the version and quotes every overload.
        """
        reasons = []
        for signature in signatures:
            bound = signature.bind(args, kwargs, self.accepts)
            if not isinstance(bound, Mismatch):
                return signature, bound
            reasons.append(f"{bound.reason}; the signature is {signature.text}")
        raise TypeError(f"{place}() in {self.label}: " + "\n  or ".join(reasons))

    def perform(
        self,
        record: CallRecord,
        signatures: tuple[Signature, ...],
    ) -> object:
        """Check a call, record it with its bound arguments, and return the answer."""
        place = f"{record.target}.{record.member}"
        signature, arguments = self.bind(place, signatures, record.args, record.kwargs)
        self.log.append(replace(record, arguments=arguments))
        owner = () if record.instance is None else (record.instance,)
        if scripted := self.find(self.script, record.target, record.member):
            answer = scripted.value
            if callable(answer) and not isinstance(answer, StandinValue):
                answer = answer(*owner, *record.args, **record.kwargs)
        elif behaviour := self.find(self.behaviours, record.target, record.member):
            answer = behaviour.value(*owner, *arguments.values())
        else:
            return self.default(signature.returns, for_call=True)
        return self.convert(answer, signature.returns)

    def default(self, text: str, *, for_call: bool) -> object:
        """Return a plausible value of a type; a bool is True from a call, False from a property."""
        name, arguments = split_generic(text)
        if name == "bool":
            return for_call
        if name == "tuple":
            return tuple(self.default(argument, for_call=for_call) for argument in arguments)
        if name in PLAIN_DEFAULTS:
            return PLAIN_DEFAULTS[name]()
        if "accessor" in text:  # how pybind11 words the result of get_plugin_registry
            name = "IPluginRegistry"
        if name in self.api["classes"]:
            return self.make(name)
        if name in self.types:
            return next(iter(self.types[name].__members__.values()))  # type: ignore[attr-defined]
        return None

    def convert(self, value: object, text: str) -> object:
        """Turn a plain value into what the type promises: a tuple to Dims, bytes to a plan."""
        name, arguments = split_generic(text)
        if name in INT_SEQUENCES and isinstance(value, tuple | list):
            return self.make(name, values=tuple(value))
        if (
            name == "IHostMemory"
            and isinstance(value, bytes)
            and not isinstance(value, StandinValue)
        ):
            plan: type[Any] = self.types[name]
            return plan.__new__(plan, value)
        if name == "list" and arguments and isinstance(value, tuple | list):
            return [self.convert(item, arguments[0]) for item in value]
        return value

"""Classes of a stand-in, with exactly the methods and properties that one version has."""

import warnings
from collections.abc import Callable
from typing import Any

from .api_data import ClassApi
from .call_record import CallRecord
from .signature import Signature, parse_signature
from .standin_context import StandinContext
from .standin_object import BASES, StandinDims, StandinObject, StandinType, native_class
from .standin_property import StandinProperty


def read_overloads(api: ClassApi, name: str) -> tuple[Signature, ...]:
    """Return the parsed signatures of a method."""
    texts = api.get("overloads", {}).get(name) or [api["signatures"][name]]
    return tuple(parse_signature(text) for text in texts)


def build_method(context: StandinContext, class_name: str, name: str) -> Callable[..., object]:
    """Return the stand-in of one method."""
    signatures = read_overloads(context.class_api(class_name), name)

    def method(self: Any, *args: object, **kwargs: object) -> object:
        target = native_class(type(self)).__name__
        record = CallRecord("call", target, name, args, kwargs, instance=self)
        return context.perform(record, signatures)

    method.__name__ = name
    return method


def build_static_method(context: StandinContext, class_name: str, name: str) -> Any:
    """Return the stand-in of one static method."""
    signatures = read_overloads(context.class_api(class_name), name)

    def method(*args: object, **kwargs: object) -> object:
        return context.perform(CallRecord("call", class_name, name, args, kwargs), signatures)

    return staticmethod(method)


def build_init(context: StandinContext, class_name: str) -> Callable[..., None]:
    """Return the init of a class; it keeps its arguments, so a Builder knows its logger."""
    signatures = read_overloads(context.class_api(class_name), "__init__")

    def init(self: Any, *args: object, **kwargs: object) -> None:
        _, arguments = context.bind(class_name, signatures, args, kwargs)
        context.log.append(
            CallRecord("call", class_name, "__init__", args, kwargs, arguments, instance=self)
        )
        self.__dict__["_is_initialized"] = True
        self._state.update(arguments)
        if isinstance(self, StandinDims):
            values = args[0] if len(args) == 1 and not isinstance(args[0], int) else args
            self._state["values"] = tuple(values)  # type: ignore[arg-type]  # ints by signature

    return init


def enter_deprecated(self: Any) -> Any:
    """Enter a with statement, with the warning that every TensorRT since 8.6 gives."""
    warnings.warn("Context managers for TensorRT types are deprecated.", DeprecationWarning, 2)
    return self


def exit_deprecated(_self: Any, *_exception: object) -> None:
    """Leave a with statement; nothing is freed."""


def hide_bytes(api: ClassApi) -> dict[str, object]:
    """Return properties that hide the methods of bytes, which IHostMemory doesn't have."""

    def hidden(_self: object) -> object:
        raise AttributeError

    return {
        name: property(hidden)
        for name in dir(bytes)
        if not name.startswith("_") and name not in api["attributes"]
    }


def build_class(context: StandinContext, name: str) -> StandinType:
    """Return the stand-in of one class; its base and its nested enums must exist already."""
    api = context.class_api(name)
    body: dict[str, object] = {"_context": context, "_is_native": True, **api.get("constants", {})}
    for enum_name, members in api.get("enums", {}).items():
        enum: Any = context.types[enum_name]
        body |= {enum_name: enum, **{member: enum.__members__[member] for member in members}}
    for method in api["signatures"]:
        is_static = method in api.get("static", ())
        body[method] = (build_static_method if is_static else build_method)(context, name, method)
    if "__init__" in api["signatures"]:
        body["__init__"] = build_init(context, name)
    for property_name, types in api.get("properties", {}).items():
        body[property_name] = StandinProperty(context, property_name, types["get"], types["set"])
    if "__enter__" in api.get("protocols", ()):
        body |= {"__enter__": enter_deprecated, "__exit__": exit_deprecated}
    if name == "IHostMemory":
        body |= hide_bytes(api)
    base = context.types[api["bases"][0]] if api["bases"] else BASES.get(name, StandinObject)
    return StandinType(name, (base,), body)

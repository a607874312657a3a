"""A stand-in for the ``tensorrt`` module of any recorded version, as strict as the real one.

It has the names, numbers and signatures of that version and nothing else, so code that runs
against it makes no call that the real module would refuse by name, number of arguments or type.
What TensorRT would compute, it doesn't compute: a test scripts the answers that it needs.

    trt = make_trt_module("10.3.0")
    trt.script["OnnxParser.parse"] = False
    ...
    assert not trt.calls.select("IBuilderConfig", "set_flag")
"""

from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any, NoReturn

import numpy as np

from .api_data import VERSIONS, ModuleApi, format_label, load_api
from .builder_behaviour import build_builder_behaviours
from .call_record import CallLog, CallRecord
from .network_content import (
    LayerContent,
    NetworkContent,
    TensorContent,
    build_engine_behaviours,
    build_network_behaviours,
    populate_network,
)
from .signature import parse_signature
from .standin_class import build_class
from .standin_context import MODULE_TARGET, Script, StandinContext
from .standin_enum import StandinEnum, build_enum
from .standin_object import StandinObject

__all__ = [
    "VERSIONS",
    "CallLog",
    "CallRecord",
    "LayerContent",
    "NetworkContent",
    "StandinEnum",
    "StandinModule",
    "StandinObject",
    "TensorContent",
    "make_trt_module",
    "populate_network",
]


class StandinModule(ModuleType):
    """A module object with the API of one version.

    Attributes:
        calls: Everything that was done to the module and its objects, in order.
        script: Answers of methods, functions and properties: ``script["Class.member"]`` is the
            value, or a function that is called with the object and the arguments.
    """

    calls: CallLog
    script: Script
    context: StandinContext

    def __getattr__(self, name: str) -> Any:
        """Record the look-up of a name that this version doesn't have, and refuse it."""
        if not name.startswith("_"):
            self.calls.append(CallRecord("probe", MODULE_TARGET, name))
        label = self.context.label
        raise AttributeError(f"module {self.__name__} of {label} has no attribute {name!r}")

    def set_network(self, content: NetworkContent) -> None:
        """Choose what every parser finds from now on, and so what every engine has."""
        self.context.settings["network"] = content


def make_trt_module(version: str) -> StandinModule:
    """Return a new stand-in for one of `VERSIONS`, with an empty log and an empty script."""
    api, label, log = load_api(version), format_label(version), CallLog()
    context = StandinContext(api, label, log, Script(api, label))
    add_enums(context)
    for name in order_by_base(api):
        context.types[name] = build_class(context, name)
    context.behaviours |= build_builder_behaviours(context)
    context.behaviours |= build_network_behaviours(context)
    context.behaviours |= build_engine_behaviours(context)
    context.settings["network"] = NetworkContent()

    module = StandinModule("tensorrt_rtx" if version.startswith("rtx-") else "tensorrt")
    module.calls, module.script, module.context = log, context.script, context
    members: dict[str, object] = {
        "__version__": api["version"],
        **{name: context.types[name] for name in (*api["enums"], *api["classes"])},
        **{alias: context.member(*path.split(".")) for alias, path in api["aliases"].items()},
        **{name: build_function(context, name, text) for name, text in api["functions"].items()},
    }
    vars(module).update(members)
    return module


def add_enums(context: StandinContext) -> None:
    """Build the enums of the module, and those nested in classes under their own name."""
    enums = dict(context.api["enums"])
    for described in context.api["classes"].values():
        enums |= described.get("enums", {})
    for name, members in enums.items():
        context.types[name] = build_enum(name, members, context.log, context.label)


def order_by_base(api: ModuleApi) -> list[str]:
    """Return the class names so that each base comes before what derives from it."""
    return sorted(api["classes"], key=lambda name: len(api["classes"][name]["bases"]))


def build_function(context: StandinContext, name: str, text: str | None) -> Callable[..., object]:
    """Return the stand-in of a module function; one without a signature is written in Python."""
    if text is None:
        written: dict[str, Callable[..., object]] = {
            "volume": volume,
            "nptype": build_nptype(context),
        }
        return written.get(name, refuse_call)
    signatures = (parse_signature(text),)

    def function(*args: object, **kwargs: object) -> object:
        return context.perform(CallRecord("call", MODULE_TARGET, name, args, kwargs), signatures)

    return function


def refuse_call(*_args: object, **_kwargs: object) -> NoReturn:
    """Refuse the functions that only TensorRT itself calls, such as ``common_enter``."""
    raise NotImplementedError("this function is internal to TensorRT")


def volume(iterable: Iterable[int]) -> int:
    """Return the product of the dimensions."""
    product = 1
    for dimension in iterable:
        product *= dimension
    return product


def build_nptype(context: StandinContext) -> Callable[[StandinEnum], object]:
    """Return ``nptype``, which refuses the types that numpy doesn't have."""
    names = {"FLOAT": "float32", "HALF": "float16", "BOOL": "bool_"}
    names |= {name: name.lower() for name in ("INT8", "INT32", "INT64", "UINT8")}

    def nptype(trt_type: StandinEnum) -> object:
        if not isinstance(trt_type, context.types["DataType"]) or trt_type.name not in names:
            raise TypeError("Could not resolve TensorRT datatype to an equivalent numpy datatype.")
        return getattr(np, names[trt_type.name])

    return nptype

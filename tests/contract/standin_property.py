"""Properties of a stand-in class, with the types that one version gives and takes."""

from collections.abc import Callable
from typing import Any

from .argument_type import INT_SEQUENCES
from .call_record import CallRecord
from .standin_context import StandinContext
from .standin_object import native_class


class StandinProperty:
    """One property: checks and records each read and each assignment."""

    def __init__(
        self, context: StandinContext, name: str, get: str | None, set_: str | None
    ) -> None:
        """Create the property from the type texts of its getter and its setter."""
        self._context, self._name, self._get, self._set = context, name, get, set_

    def __get__(self, instance: Any, owner: type) -> Any:
        """Return the script's answer, what was assigned, the behaviour's answer, or a default."""
        if instance is None:
            return self
        context, target = self._context, native_class(owner).__name__
        if self._get is None:
            raise AttributeError(self._name)
        context.log.append(CallRecord("get", target, self._name, instance=instance))
        answer: Any
        if scripted := context.find(context.script, target, self._name):
            answer = (
                call_script(scripted.value, instance)
                if callable(scripted.value)
                else scripted.value
            )
        elif self._name in instance._state:
            answer = instance._state[self._name]
        elif behaviour := context.find(context.behaviours, target, self._name):
            answer = behaviour.value(instance)
        elif self._set is not None and self._holds_object():
            answer = None
        else:
            answer = context.default(self._get, for_call=False)
        return context.convert(answer, self._get)

    def __set__(self, instance: Any, value: object) -> None:
        """Hold the value, if the property can be set and accepts it."""
        context, target = self._context, native_class(type(instance)).__name__
        if self._set is None:
            raise AttributeError(f"{target}.{self._name} of {context.label} is read-only")
        if not (value is None and self._holds_object()) and not context.accepts(self._set, value):
            raise TypeError(
                f"{target}.{self._name} of {context.label} must be {self._set}, "
                f"not {type(value).__name__} {value!r:.80}"
            )
        context.log.append(CallRecord("set", target, self._name, args=(value,), instance=instance))
        instance._state[self._name] = context.convert(value, self._get or self._set)

    def _holds_object(self) -> bool:
        """Tell whether the property holds a pointer to an object, which None resets."""
        name = (self._set or "").rsplit("::", maxsplit=1)[-1]
        return name in self._context.api["classes"] and name not in INT_SEQUENCES


def call_script(function: Callable[[object], object], instance: object) -> object:
    """Call a scripted getter; Python would take its AttributeError for a missing property."""
    try:
        return function(instance)
    except AttributeError as error:
        raise RuntimeError(f"the script failed: {error}") from error

"""The objects of a stand-in: what all have in common, and the few with a behaviour of their own."""

from typing import Any

from .argument_type import INT_SEQUENCES, StandinValue
from .call_record import CallRecord
from .standin_context import StandinContext


class StandinType(type):
    """Metaclass that refuses what pybind11 refuses of a class."""

    _context: StandinContext

    def __call__(cls, *args: object, **kwargs: object) -> Any:
        """Create an object, if the class can be created and a subclass called the base's init."""
        native = native_class(cls)
        if "__init__" not in cls._context.class_api(native.__name__)["signatures"]:
            raise TypeError(f"{native.__name__} of {cls._context.label}: No constructor defined!")
        instance = super().__call__(*args, **kwargs)
        if not instance.__dict__["_is_initialized"]:
            name = native.__name__
            raise TypeError(f"{name}.__init__() must be called when overriding __init__")
        return instance

    def __getattr__(cls, name: str) -> Any:
        """Record the look-up of a name that the class doesn't have, and refuse it."""
        raise missing_member(cls, name)

    def __dir__(cls) -> list[str]:
        """List the public names of the version only."""
        private = [name for name in super().__dir__() if name.startswith("_")]
        return [*private, *cls._context.class_api(native_class(cls).__name__)["attributes"]]


def native_class(cls: type) -> type:
    """Return the class of the stand-in that a class is or derives from."""
    return next(base for base in cls.__mro__ if "_is_native" in base.__dict__)


def missing_member(cls: StandinType, name: str) -> AttributeError:
    """Record a look-up in vain and return the error for it."""
    target = native_class(cls).__name__
    if not name.startswith("_"):
        cls._context.log.append(CallRecord("probe", target, name))
    is_known = name in cls._context.class_api(target)["attributes"]
    problem = f"can't read {name!r}" if is_known else f"has no attribute {name!r}"
    return AttributeError(f"{target} of {cls._context.label} {problem}")


class StandinObject(StandinValue, metaclass=StandinType):
    """Base of all objects; `_state` holds property values and what the object was made from."""

    _context: StandinContext
    _is_native = True
    _state: dict[str, Any]

    def __new__(cls, *_args: object, **_kwargs: object) -> Any:
        """Create an object whose init has not run."""
        instance = super().__new__(cls)
        instance.__dict__.update(_state={}, _is_initialized=False)
        return instance

    def __getattr__(self, name: str) -> Any:
        """Record the look-up of a name that can't be read, and refuse it.

        Python comes here as well after a property has raised AttributeError.
        """
        raise missing_member(type(self), name)

    def __setattr__(self, name: str, value: object) -> None:
        """Set a property; any other name only on an object of a subclass written in Python.

        ``__class__`` is let through: code for TensorRT casts an ILayer to its real class that way.
        """
        cls = type(self)
        known = next((base.__dict__[name] for base in cls.__mro__ if name in base.__dict__), None)
        is_python_subclass = native_class(cls) is not cls
        if hasattr(type(known), "__set__") or is_python_subclass or name == "__class__":
            object.__setattr__(self, name, value)
        elif known is None:
            raise missing_member(cls, name)
        else:
            raise AttributeError(f"{cls.__name__}.{name} of {self._context.label} is read-only")


class StandinDims(StandinObject):
    """Behaviour of Dims and the other classes that hold a few ints."""

    __hash__ = None  # type: ignore[assignment]  # as in TensorRT

    @property
    def _values(self) -> tuple[int, ...]:
        values: tuple[int, ...] = self._state.get("values", ())
        return values

    def __len__(self) -> int:
        """Return the number of dimensions."""
        return len(self._values)

    def __getitem__(self, index: Any) -> Any:
        """Return one dimension, or a tuple for a slice."""
        return self._values[index]

    def __eq__(self, other: object) -> bool:
        """Compare with another Dims, a tuple or a list."""
        return isinstance(other, StandinDims | tuple | list) and self._values == tuple(other)

    def __repr__(self) -> str:
        """Show the dimensions as a tuple."""
        return repr(self._values)


class StandinHostMemory(StandinObject, bytes):
    """A serialized engine: readable through the buffer protocol and in no other way."""

    __len__ = __getitem__ = __iter__ = None  # type: ignore[assignment]  # as in TensorRT

    def __new__(cls, content: bytes | None = None) -> Any:
        """Create it with a content; the default names the version."""
        if content is None:
            content = f"plan of {cls._context.label}".encode()
        instance = bytes.__new__(cls, content)
        instance.__dict__.update(_state={}, _is_initialized=False)
        return instance

    def __bool__(self) -> bool:
        """Be true, as any object without a length."""
        return True

    def __repr__(self) -> str:
        """Show what it is, not its bytes."""
        return f"<IHostMemory of {self._context.label}>"


class StandinNetwork(StandinObject):
    """The sequence protocol of INetworkDefinition."""

    def __len__(self) -> int:
        """Return the number of layers."""
        return len(self._state.get("layers", ()))

    def __getitem__(self, index: int) -> Any:
        """Return a layer; IndexError ends an iteration."""
        return self._state.get("layers", ())[index]


BASES: dict[str, type[StandinObject]] = {
    "IHostMemory": StandinHostMemory,
    "INetworkDefinition": StandinNetwork,
    **dict.fromkeys(INT_SEQUENCES, StandinDims),
}

"""The same value in several types: Casts and converted constants, each made once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from trtdeploy.core.dtypes import DType
from trtdeploy.graph.index import ModelIndex, Scope
from trtdeploy.graph.naming import NameSource
from trtdeploy.graph.weights import narrow_values

TYPE_SUFFIX = {DType.FLOAT16: "fp16", DType.BFLOAT16: "bf16", DType.FLOAT32: "fp32"}


class ValueVariants:
    """Hands out the name under which a value exists in a wanted type.

    Args:
        index: The model under rewriting.
        names: Source of unique names.
        clamps: Largest magnitude allowed per constant, for constants that are clamped.
    """

    def __init__(self, index: ModelIndex, names: NameSource, clamps: dict[str, float]) -> None:
        self._index = index
        self._names = names
        self._clamps = clamps
        self._types: dict[tuple[int, str], DType] = {}
        self._made: dict[tuple[int, str, DType], str] = {}
        self._casts: dict[tuple[int, str], list[NodeProto]] = {}

    def set_type(self, scope: Scope, name: str, dtype: DType) -> None:
        """State the type in which ``name``, owned by ``scope``, is now computed."""
        self._types[id(scope), name] = dtype

    def type_of(self, scope: Scope, name: str) -> DType:
        """Return the type in which ``name``, owned by ``scope``, is now computed."""
        return self._types.get((id(scope), name), DType.FLOAT32)

    def find(self, scope: Scope, name: str, dtype: DType) -> str:
        """Return the name of ``name`` in ``dtype``; the conversion is made on first demand.

        Conversions live in the graph that owns the value, so nested graphs share them.
        """
        owner = scope.resolve(name)
        if owner is None or self.type_of(owner, name) is dtype:
            return name
        key = (id(owner), name, dtype)
        if key not in self._made:
            made = self._names.make(f"{name}_{TYPE_SUFFIX[dtype]}")
            if name in owner.initializers:
                self._convert_constant(owner, name, made, dtype)
                self._made[key] = made
            else:
                self.add_cast(owner, name, made, dtype)
        return self._made[key]

    def add_cast(self, owner: Scope, name: str, made: str, dtype: DType) -> None:
        """Make ``made`` the ``dtype`` form of ``name``, by a Cast next to its producer."""
        cast = helper.make_node(
            "Cast", [name], [made], name=self._names.make(f"{made}_cast"), to=dtype.code
        )
        self._made[id(owner), name, dtype] = made
        self._casts.setdefault((id(owner), name), []).append(cast)

    def casts_of(self, scope: Scope, name: str) -> list[NodeProto]:
        """Return the Casts that must follow the producer of ``name``."""
        return self._casts.get((id(scope), name), [])

    def convert_tensor(self, tensor: TensorProto, dtype: DType, clamp_key: str) -> TensorProto:
        """Return ``tensor`` rounded to ``dtype``, clamped when a limit is set for the key."""
        values = numpy_helper.to_array(tensor).astype(np.float32)
        limit = self._clamps.get(clamp_key)
        if limit is not None:
            values = np.where(np.isfinite(values), values.clip(-limit, limit), values)
        return TensorProto(
            dims=tensor.dims,
            data_type=dtype.code,
            name=tensor.name,
            raw_data=narrow_values(values, dtype).tobytes(),
        )

    def _convert_constant(self, owner: Scope, name: str, made: str, dtype: DType) -> None:
        tensor = owner.initializers[name]
        weights = self._index.model.weights
        stored = weights.get(name) if owner is self._index.main else None
        if stored is None:
            converted = self.convert_tensor(tensor, dtype, name)
        elif name in self._clamps:  # a mask large enough to be streamed is still small
            values = np.concatenate(list(stored.iterate_arrays())).reshape(tuple(tensor.dims))
            converted = self.convert_tensor(numpy_helper.from_array(values), dtype, name)
        else:
            converted = TensorProto(dims=tensor.dims, data_type=dtype.code)
            weights[made] = replace(stored, stored_as=dtype)
        converted.name = made
        owner.graph.initializer.append(converted)

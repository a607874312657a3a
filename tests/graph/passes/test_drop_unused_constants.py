from __future__ import annotations

from pathlib import Path

from tests.builders import branch_model, constant, loaded, op, random_array, value
from trtdeploy.graph.passes.drop_unused_constants import DropUnusedConstantsPass


def test_only_what_somebody_names_stays(tmp_path: Path) -> None:
    proto = branch_model(
        [op("Add", "x captured", "a"), op("Mul", "a own", "t")],
        [op("Relu", "x", "e")],
        constants=[
            constant("captured", random_array(4)),
            constant("result", random_array(4)),
            constant("unused", random_array(4)),
            constant("unused_large", random_array(4, 2000)),
        ],
        inner_constants=([constant("own", [2.0]), constant("own_unused", [2.0])], []),
    )
    proto.graph.output.append(value("result", [4]))
    found = loaded(proto, tmp_path)
    DropUnusedConstantsPass()(found)
    assert [t.name for t in found.graph.initializer] == ["captured", "result"]
    assert [t.name for t in found.graph.node[0].attribute[0].g.initializer] == ["own"]
    assert not found.weights

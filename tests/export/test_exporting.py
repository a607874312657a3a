"""Options that a source has no use for."""

from __future__ import annotations

from pathlib import Path

import pytest

from trtdeploy.core.dtypes import DType
from trtdeploy.core.errors import UsageError
from trtdeploy.export.exporting import refuse_options
from trtdeploy.export.request import ExportRequest, InputSpec


def test_an_option_is_refused_by_the_name_it_has() -> None:
    given = (InputSpec("x", DType.FLOAT32, (1, 4)),)
    request = ExportRequest("m.pt2", Path("m.onnx"), inputs=given)
    with pytest.raises(UsageError, match="--input has no meaning for a pt2 source"):
        refuse_options(request, "pt2", "inputs", "weights", "exporter")


def test_what_was_not_given_is_not_refused() -> None:
    refuse_options(ExportRequest("m.pt2", Path("m.onnx")), "pt2", "inputs", "weights", "exporter")

"""Write ``report.schema.json`` anew: ``python -m tests.report.regenerate_schema``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import trtdeploy.report
from trtdeploy.report.document import BuildReport
from trtdeploy.report.json_document import SCHEMA_VERSION, make_adapter

SCHEMA_PATH: Final = Path(trtdeploy.report.__file__).with_name("report.schema.json")
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def build_json_schema() -> dict[str, Any]:
    """Return the schema (draft 2020-12) that the models accept."""
    schema = make_adapter(BuildReport).json_schema(mode="validation")
    title = f"report.json of trtdeploy, schema version {SCHEMA_VERSION}"
    return {"$schema": _DIALECT, **schema, "title": title}


if __name__ == "__main__":
    text = json.dumps(build_json_schema(), indent=2, ensure_ascii=False) + "\n"
    SCHEMA_PATH.write_text(text, encoding="utf-8")
    print(SCHEMA_PATH)

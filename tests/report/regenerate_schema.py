"""Write ``report.schema.json`` anew: ``python -m tests.report.regenerate_schema``."""

from __future__ import annotations

from trtdeploy.report.json_schema import SCHEMA_PATH, render_json_schema

if __name__ == "__main__":
    SCHEMA_PATH.write_text(render_json_schema(), encoding="utf-8")
    print(SCHEMA_PATH)

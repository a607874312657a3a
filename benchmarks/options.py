"""The command-line options that both benchmarks have."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.environments import DEFAULT_FOLDER


def make_parser(program: str, description: str) -> argparse.ArgumentParser:
    """Return a parser with the shared options; the caller adds its own."""
    parser = argparse.ArgumentParser(prog=program, description=description)
    add = parser.add_argument
    known = "default: the models made here, and those of models/ that are fetched already"
    add("--model", action="append", dest="models", metavar="NAME|FILE", help=known)
    add("--fetch", action="store_true", help="fetch the models of models/ first")
    add("--runs", type=_parse_count, default=5, metavar="N", help="default: %(default)s")
    where = "where environments are made and found again; default: %(default)s"
    add("--venv", type=Path, default=DEFAULT_FOLDER, metavar="FOLDER", help=where)
    add("--json", action="store_true", help="print JSON instead of Markdown")
    return parser


def _parse_count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 1")
    return int(text)

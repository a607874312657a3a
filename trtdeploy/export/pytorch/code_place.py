"""Where in the user's code something happened: module path, file and line."""

from __future__ import annotations

import linecache
import re
import sysconfig
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from trtdeploy.export.pytorch.graph_names import strip_wrapper

_FRAME = re.compile(r'\s*File "(?P<file>[^"]+)", line (?P<line>\d+)')
_STANDARD_LIBRARY = sysconfig.get_paths()["stdlib"]
_FRAMEWORK = (str(Path(torch.__file__).parent), str(Path(__file__).parents[2]), "<")


@dataclass(frozen=True)
class CodePlace:
    """A line of the user's code, and the module that was at work.

    Attributes:
        module: Dotted path inside the model, e.g. ``backbone.layer1``; empty for the model itself.
        kind: Class of that module.
        file: Source file; empty when unknown.
        line: Line in it, counted from 1.
        code: Text of the line.
    """

    module: str = ""
    kind: str = ""
    file: str = ""
    line: int = 0
    code: str = ""

    def __str__(self) -> str:
        """Return ``module 'inner' (Branch), model.py line 13: if x.sum() > 0:``."""
        words = []
        if self.kind:
            words.append(f"module {self.module!r} ({self.kind})" if self.module else self.kind)
        if self.file:
            words.append(f"{Path(self.file).name} line {self.line}")
        return ", ".join(words) + (f": {self.code}" if self.code else "")


def find_place_of_error(error: BaseException, model: torch.nn.Module) -> CodePlace | None:
    """Return where the user's code raised it; None when none of it was running."""
    places = []
    for link in _chain(error):
        frames = [(frame, line) for frame, line in traceback.walk_tb(link.__traceback__)]
        places.append(_find(frames, model))
    found = [place for place in places if place is not None]
    # the innermost cause comes last
    return next((p for p in reversed(found) if p.file), found[-1] if found else None)


def find_place_of_stack(frame: FrameType | None, model: torch.nn.Module) -> CodePlace | None:
    """Return where the user's code is right now."""
    frames = [(link, line) for link, line in traceback.walk_stack(frame)]
    return _find(list(reversed(frames)), model)


def place_of_node(node: Any) -> CodePlace:
    """Return where a node of an exported program comes from."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    module, kind = stack[-1] if stack else ("", "")
    kind = kind if isinstance(kind, str) else kind.__qualname__
    path = module.removeprefix("L['self']").lstrip(".")  # as some versions write it
    module, kind = strip_wrapper(path), kind if path else ""
    file, line, code = _read_stack_text(node.meta.get("stack_trace") or "")
    return CodePlace(module, kind.rsplit(".", 1)[-1], file, line, code)


def _read_stack_text(text: str) -> tuple[str, int, str]:
    """Return file, line and code of the innermost frame of the user."""
    found = ("", 0, "")
    lines = text.splitlines()
    for number, entry in enumerate(lines):
        match = _FRAME.match(entry)
        if match and not is_framework_file(match["file"]):
            code = lines[number + 1].strip() if number + 1 < len(lines) else ""
            found = (match["file"], int(match["line"]), code)
    return found


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _find(frames: Iterable[tuple[FrameType, int]], model: torch.nn.Module) -> CodePlace | None:
    names = {id(module): name for name, module in model.named_modules()}
    module, kind, file, line = "", "", "", 0
    for frame, number in frames:
        owner = frame.f_locals.get("self")
        # the root is our own wrapper
        if isinstance(owner, torch.nn.Module) and names.get(id(owner)):
            module, kind = strip_wrapper(names[id(owner)]), type(owner).__name__
        if not is_framework_file(frame.f_code.co_filename) and kind:
            file, line = frame.f_code.co_filename, number
    if not kind:
        return None
    return CodePlace(
        module, kind, file, line, linecache.getline(file, line).strip() if file else ""
    )


def is_framework_file(file: str) -> bool:
    """Tell whether a source file belongs to PyTorch, Python or trtdeploy, not to the user."""
    in_library = file.startswith(_STANDARD_LIBRARY) and "site-packages" not in file
    return in_library or file.startswith(_FRAMEWORK)

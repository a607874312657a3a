"""A page of documentation as commands: what is typed, what it prints, what it needs.

A page marks its blocks in words that a reader sees too:

* "*Needs: PyTorch, a package index.*" on the line above a ``console`` block: skipped elsewhere;
* "... `camera.yaml`:" at the end of the line above any other block: a file of that name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"^```(?P<kind>\w*)\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE)
_NEEDS = re.compile(r"\*Needs: (?P<needs>[^*]+?)\.\*")
_FILE = re.compile(r"`(?P<name>[\w./-]+\.\w+)`:")
_PROMPT = "$ "
_CONTINUED = "\\"


@dataclass(frozen=True)
class Command:
    """One command and what the page shows of its output.

    Attributes:
        text: As typed, continued lines joined.
        shown: The lines under it.
    """

    text: str
    shown: tuple[str, ...] = ()


@dataclass(frozen=True)
class Block:
    """A fenced block that does something.

    Attributes:
        line: Line of the fence in the page, counted from 1.
        needs: What has to be there, in the page's words.
        commands: Of a ``console`` block.
        file: Name of the file that the block is; empty for commands.
        content: Of that file.
    """

    line: int
    needs: tuple[str, ...] = ()
    commands: tuple[Command, ...] = ()
    file: str = ""
    content: str = ""


def load_page(path: Path) -> list[Block]:
    """Return the blocks of a page that do something, in order."""
    return parse_page(path.read_text(encoding="utf-8"))


def parse_page(text: str) -> list[Block]:
    """Return the blocks of a text that do something, in order."""
    blocks = []
    for fence in _FENCE.finditer(text):
        before = text[: fence.start()].rstrip("\n")
        above = before.rsplit("\n", 1)[-1]
        line = text.count("\n", 0, fence.start()) + 1
        if fence["kind"] == "console":
            needs = _NEEDS.fullmatch(above)
            words = tuple(needs["needs"].split(", ")) if needs else ()
            blocks.append(Block(line, words, tuple(_parse_commands(fence["body"]))))
        elif found := re.search(_FILE.pattern + "$", above):
            blocks.append(Block(line, file=found["name"], content=fence["body"]))
    return blocks


def _parse_commands(body: str) -> list[Command]:
    commands: list[Command] = []
    continued = False
    for line in body.splitlines():
        if continued:
            last = commands[-1].text.removesuffix(_CONTINUED).rstrip()
            commands[-1] = Command(f"{last} {line.strip()}")
        elif line.startswith(_PROMPT):
            commands.append(Command(line.removeprefix(_PROMPT)))
        else:
            commands[-1] = Command(commands[-1].text, (*commands[-1].shown, line))
            continue
        continued = commands[-1].text.endswith(_CONTINUED)
    return commands

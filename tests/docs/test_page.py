from __future__ import annotations

from tests.docs.page import Block, Command, parse_page

PAGE = """\
# Title

*Needs: PyTorch, a package index.*
```console
$ trtdeploy export a:b \\
    -o m.onnx
model  m.onnx
...
$ trtdeploy check m.onnx -p cpu-fp32
```

Describe it in `box.yaml`:

```yaml
title: a box
```

Not a file, and not run:

```sh
make demo
```
"""


def test_blocks_know_their_line_needs_commands_and_files() -> None:
    assert parse_page(PAGE) == [
        Block(
            4,
            ("PyTorch", "a package index"),
            (
                Command("trtdeploy export a:b -o m.onnx", ("model  m.onnx", "...")),
                Command("trtdeploy check m.onnx -p cpu-fp32"),
            ),
        ),
        Block(14, file="box.yaml", content="title: a box\n"),
    ]

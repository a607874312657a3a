"""An ONNX file, and its data file if it has one, that appear whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trtdeploy.core.errors import InputError, UsageError
from trtdeploy.core.files import sync_folder


@contextmanager
def open_output_file(output: Path) -> Iterator[Path]:
    """Yield a path of the same name in a folder of its own; move what is there when all went well.

    The folder lies beside ``output``, so that moving is renaming. A data file beside the yielded
    path (``<name>.data``) moves along; that of the file which was there before goes.

    Raises:
        UsageError: ``output`` is a folder.
        InputError: Its folder cannot be written.
    """
    if output.is_dir() or not output.name:
        raise UsageError(f"{output} is a folder", hint="Give a file: -o model.onnx")
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=f".{output.name}.", suffix=".tmp", dir=output.parent))
    except OSError as error:
        raise InputError(
            f"{output} cannot be written: {error.strerror}", hint="Choose another place with -o."
        ) from error
    try:
        yield folder / output.name
        sync_folder(folder)
        _publish(folder, output)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _publish(folder: Path, output: Path) -> None:
    made = sorted(folder.iterdir(), key=lambda path: path.name == output.name)
    data = output.with_name(output.name + ".data")
    has_data, replaces = (folder / data.name).exists(), output.exists()
    if has_data:
        output.unlink(missing_ok=True)  # were moving interrupted, it would read another's weights
    mask = os.umask(0)
    os.umask(mask)
    for path in made:
        path.chmod(0o666 & ~mask)
        path.replace(output.with_name(path.name))
    if replaces and not has_data:
        data.unlink(missing_ok=True)

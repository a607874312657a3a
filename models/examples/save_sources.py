"""Write the small classifier as every kind of file that ``trtdeploy export`` takes.

``python -m models.examples.save_sources FOLDER``, in a checkout, writes ``small_classifier.pt2``
(an exported program), ``small_classifier.pt`` (TorchScript), ``small_classifier_weights.pt``
(weights for ``--weights``) and ``small_classifier_batch1.onnx`` (an ONNX file with every size
fixed).
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from models.examples.small_classifier import make


def save_sources(folder: Path) -> None:
    """Write all files into ``folder``, which is made when it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    model, example = make()
    images = example["images"]
    axes = {"images": {0: torch.export.Dim("batch", min=1, max=64)}}
    program = torch.export.export(model, (images,), dynamic_shapes=axes)
    torch.export.save(program, folder / "small_classifier.pt2")
    torch.jit.trace(model, images).save(folder / "small_classifier.pt")
    torch.save(model.state_dict(), folder / "small_classifier_weights.pt")
    torch.onnx.export(
        model,
        (images[:1],),
        folder / "small_classifier_batch1.onnx",
        input_names=["images"],
        dynamo=True,
        verbose=False,
    )


if __name__ == "__main__":
    save_sources(Path(sys.argv[1]))

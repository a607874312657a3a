"""The parity check as a command of its own: of an output folder, or of any typed ONNX file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from trtdeploy.building.folder_check import check_folder, require_plain_files
from trtdeploy.building.manifest import load_folder
from trtdeploy.building.parity_step import request_folder_parity
from trtdeploy.config.loading import load_deploy_profile
from trtdeploy.config.optimization_profile import resolve_optimization_profiles
from trtdeploy.config.shape_table import ShapeTable
from trtdeploy.core.errors import UsageError
from trtdeploy.graph.loading import load_model
from trtdeploy.graph.model_inputs import describe_inputs
from trtdeploy.parity.request import ParityRequest, SessionOpener
from trtdeploy.precision.typing_options import TypingOptions


def request_parity(
    candidate: Path,
    reference: Path,
    profile: str = "",
    overrides: Sequence[str] = (),
    shapes: ShapeTable | None = None,
    open_engine: SessionOpener | None = None,
) -> ParityRequest:
    """Return the check of a candidate: with made-up inputs, until ``replace`` says otherwise.

    Args:
        candidate: An output folder, or a typed ONNX file.
        reference: The FP32 model.
        profile: Deploy profile for a bare ONNX file; a folder has its own.
        overrides: ``--set`` texts for it.
        shapes: Sizes for a bare ONNX file.
        open_engine: Opens the engine of a folder where its GPU is; None always emulates.

    Raises:
        TrtdeployError: A file cannot be used, or the arguments make no sense.
    """
    if candidate.is_dir():
        if profile or overrides or shapes not in (None, ShapeTable()):
            raise UsageError(
                f"{candidate} is an output folder, which has its profile and sizes already",
                hint="Leave --profile, --set and the sizes out, or give the ONNX file in it.",
            )
        built = load_folder(candidate)
        require_plain_files(candidate, built.manifest.files)
        check_folder(built)
        return request_folder_parity(built, load_model(reference), open_engine)
    if not profile:
        raise UsageError(
            f"{candidate} is a bare model: which recipe and sizes is it for?",
            hint="Add --profile NAME, e.g. --profile rtx4090-fp16, or give an output folder.",
        )
    resolved = load_deploy_profile(profile, overrides)
    model = load_model(reference)
    sizes = resolved.build_shape_requests(shapes or ShapeTable())
    return ParityRequest.from_profile(
        model,
        load_model(candidate),
        resolved.profile,
        TypingOptions.from_profile(resolved.profile),
        resolve_optimization_profiles(describe_inputs(model), sizes),
    )

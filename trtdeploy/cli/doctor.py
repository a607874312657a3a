"""``trtdeploy doctor``."""

from __future__ import annotations

from dataclasses import asdict

from trtdeploy.cli import options
from trtdeploy.cli.output import OutputFormat, format_rows, sink

_USE = {
    "tensorrt": "where the GPU is; JetPack has it",
    "tensorrt_rtx": "compiles for RTX without a GPU",
    "cuda": "runs engines",
    "pycuda": "the same, in place of cuda-python",
}
"""What an optional package is for."""


def doctor(output: options.Output = OutputFormat.HUMAN) -> None:
    """Say what this machine can build.

    Also what is missing for the rest. Only looks: no GPU library is loaded.
    """
    from trtdeploy.backends.cuda.local_gpu import find_local_gpu
    from trtdeploy.backends.installed import INSTALL, describe_environment
    from trtdeploy.building.target import judge_ability
    from trtdeploy.config.loading import list_deploy_profiles, load_deploy_profile
    from trtdeploy.core.errors import MissingDependencyError

    environment = describe_environment()
    gpu = find_local_gpu()
    verdicts: dict[str, list[str]] = {"builds": [], "prepares": [], "needs a package": []}
    for name in list_deploy_profiles():
        resolved = load_deploy_profile(name)
        try:
            ability = judge_ability(resolved, resolved.source, find_gpu=lambda: gpu)
            possible = ability.possible
            verdicts["builds" if possible else "prepares"].append(name)
        except MissingDependencyError:
            verdicts["needs a package"].append(name)
    packages = environment.packages
    missing = {name: INSTALL[name] for name in _USE if name not in packages}
    payload = {
        "environment": asdict(environment),
        "gpu": None if gpu is None else {"name": gpu.name, "sm": gpu.compute_capability},
        "profiles": verdicts,
        "missing": missing,
    }
    rows: list[tuple[str, object]] = [
        ("trtdeploy", f"{environment.trtdeploy}, Python {environment.python}"),
        (
            "GPU",
            f"{gpu.name} (compute capability {gpu.compute_capability})" if gpu else "none found",
        ),
        ("installed", "\n".join(f"{name} {version}" for name, version in packages.items())),
        ("missing", "\n".join(f"{name}: {how}   ({_USE[name]})" for name, how in missing.items())),
        ("builds", "\n".join(verdicts["builds"]) or "nothing yet"),
        ("prepares", "\n".join(verdicts["prepares"])),
        ("lacks", "\n".join(verdicts["needs a package"])),
    ]
    sink.data(format_rows(rows), payload)

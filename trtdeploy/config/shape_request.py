"""What was asked for one optimization profile: statements by strength, and defaults."""

from __future__ import annotations

from dataclasses import dataclass, field

from trtdeploy.config.deploy_profile import DeployProfile
from trtdeploy.config.shape_table import AxisDefaults, ShapeTable

SINGLE_NAME = "default"


@dataclass(frozen=True)
class ShapeRequest:
    """The sizes asked for one optimization profile.

    Attributes:
        name: Name of the optimization profile.
        tables: Statements, strongest first: the command line, the profile's own entry, then
            ``shapes``. The strongest table that says something about an axis decides it; two
            statements in one table must agree.
        defaults: Sizes by role for axes that no table mentions.
        allow_zero: Accept sizes of 0.
    """

    name: str = SINGLE_NAME
    tables: tuple[ShapeTable, ...] = ()
    defaults: AxisDefaults = field(default_factory=AxisDefaults)
    allow_zero: bool = False


def build_shape_requests(
    profile: DeployProfile, given: ShapeTable | None = None
) -> tuple[ShapeRequest, ...]:
    """Return one request per optimization profile of a deploy profile.

    Args:
        profile: The deploy profile; without ``optimization_profiles`` it stands for one.
        given: Statements of the command line; they override the file's in every request.
    """
    shapes = profile.shapes
    strongest = () if given is None else (given,)
    if not profile.optimization_profiles:
        return (
            ShapeRequest(SINGLE_NAME, (*strongest, shapes), shapes.defaults, shapes.allow_zero),
        )
    return tuple(
        ShapeRequest(
            entry.name or str(index),
            (*strongest, entry, shapes),
            shapes.defaults,
            shapes.allow_zero,
        )
        for index, entry in enumerate(profile.optimization_profiles)
    )

"""Deploy profiles, devices and requested shapes: outside text becomes typed values here."""

from trtdeploy.config.combination import (
    find_combination_problems,
    find_target_compute_capabilities,
)
from trtdeploy.config.deploy_profile import BuildSection, DeployProfile
from trtdeploy.config.device import DeviceSpec
from trtdeploy.config.loading import (
    ResolvedProfile,
    list_deploy_profiles,
    list_devices,
    load_deploy_profile,
    load_device,
)
from trtdeploy.config.optimization_profile import (
    ShapeResolution,
    resolve_optimization_profiles,
    resolve_shapes,
)
from trtdeploy.config.shape_problem import ShapeProblem
from trtdeploy.config.shape_request import ShapeRequest, build_shape_requests
from trtdeploy.config.shape_syntax import (
    format_shape_argument,
    format_value_argument,
    parse_shape_table,
)
from trtdeploy.config.shape_table import AxisSizes, ShapeTable, TensorSizes

__all__ = [
    "AxisSizes",
    "BuildSection",
    "DeployProfile",
    "DeviceSpec",
    "ResolvedProfile",
    "ShapeProblem",
    "ShapeRequest",
    "ShapeResolution",
    "ShapeTable",
    "TensorSizes",
    "build_shape_requests",
    "find_combination_problems",
    "find_target_compute_capabilities",
    "format_shape_argument",
    "format_value_argument",
    "list_deploy_profiles",
    "list_devices",
    "load_deploy_profile",
    "load_device",
    "parse_shape_table",
    "resolve_optimization_profiles",
    "resolve_shapes",
]

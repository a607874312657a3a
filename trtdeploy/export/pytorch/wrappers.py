"""Takes off what training puts around modules: compilation, data parallelism, parametrizations."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

import torch
from torch.nn.utils import parametrize

_PARALLEL = (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)


def unwrap_module(module: torch.nn.Module) -> torch.nn.Module:
    """Return the module without ``torch.compile`` and data parallelism, around children neither.

    Otherwise each run of it would compile, or need the devices it was trained on.
    """
    module = _unwrap(module)
    for parent in list(module.modules()):
        if isinstance(parent, torch.jit.ScriptModule):
            continue
        if parent._compiled_call_impl is not None:  # by parent.compile()
            parent._compiled_call_impl = None
        for name, child in list(parent.named_children()):
            inner = _unwrap(child)
            if inner is not child:
                parent._modules[name] = inner
    return module


def _unwrap(module: torch.nn.Module) -> torch.nn.Module:
    while "_orig_mod" in module._modules or isinstance(module, _PARALLEL):
        module = module.module if isinstance(module, _PARALLEL) else module._modules["_orig_mod"]
    return module


@contextlib.contextmanager
def ignore_compilation() -> Iterator[None]:
    """Run functions under ``torch.compile`` as they are written."""
    # without this nothing was compiled, and importing it takes seconds
    is_loaded = "torch._dynamo" in sys.modules
    with torch.compiler.set_stance("force_eager") if is_loaded else contextlib.nullcontext():
        yield


def bake_parametrizations(module: torch.nn.Module) -> None:
    """Replace weights that are computed from others by what they are.

    The ways there, e.g. the matrix exponential of an orthogonal weight, may have no form in ONNX.
    """
    for child in module.modules():
        if parametrize.is_parametrized(child):
            for name in list(child.parametrizations):
                parametrize.remove_parametrizations(child, name, leave_parametrized=True)

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The description of a layer above PyNative: its modules, their tree, their parameters, its functions and optimizers.

Everything that watches a training asks this description. A layer is added by a subclass and a row of ``_LAYERS``.
"""

from __future__ import annotations

import abc
import contextlib
import functools
import importlib
import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from probe.naming import CELL

#: the description of each layer -> a package that is loaded where programs use it, or "" for always
_LAYERS = {
    "probe.layers.cells:CellLayer": "",
    "probe.layers.torch_modules:TorchLayer": "torch",
}
#: the packages that bring these: the import of mindtorch makes a proxy of the name torch
PACKAGES = ("mindtorch", "torch")
_log = logging.getLogger("probe")
Hook = Callable[[tuple[Any, ...], Mapping[str, Any]], Any]


class Layer(abc.ABC):
    """One layer above PyNative."""

    framework: str  # the word of dump.json
    prefix: str  # the first part of the names of modules
    kind: type  # the class of all modules
    call = "__call__"  # the method that each call of a module passes
    allowed: str  # how its modules are called in an error
    #: the attributes that it keeps at each of its tensors, such as the device
    tensor_attributes: Sequence[str] = ()
    #: the methods that run the hooks of the training around a forward, if there are such: before it, and behind it
    hook_methods: tuple[str, str] | None = None

    @classmethod
    def found(cls) -> Layer | None:
        """Return the layer if this process has it."""
        return cls()

    @classmethod
    def advice(cls, value: Any) -> str:
        """Return what the user of a value that no layer of this process knows may do; "" without advice."""
        return ""

    @abc.abstractmethod
    def modules(self, module: Any) -> Iterator[tuple[str, Any]]:
        """Yield (dotted path, module) for a module, whose path is "", and all below it, each once."""

    @abc.abstractmethod
    def parameters(self, module: Any) -> Mapping[str, Any]:
        """Return the parameters that a module itself holds, by their keys there; a value may be None."""

    @abc.abstractmethod
    def parameter_name(self, parameter: Any, path: str, key: str) -> str:
        """Return the name of a parameter that the module at a path holds under a key."""

    @abc.abstractmethod
    def has_pre_hooks(self, module: Any) -> bool:
        """Return whether hooks of the training may change the inputs of a call."""

    def behind_pre_hooks(self, module: Any, begin: Hook) -> Callable[[], None]:
        """Call ``begin`` with the inputs of the call that begins now, as the hooks of the training leave them.

        Return the function that undoes this; it is called when the call has ended, also with an error.
        """
        return _nothing

    @functools.cached_property
    def own_values(self) -> frozenset[str]:
        """Return the names of attributes that every module has."""
        return frozenset(vars(self.kind()))

    def functions(self) -> Mapping[str, Any]:
        """Return its name spaces with listed functions: section of the list -> module or class."""
        return {}

    @property
    def packages(self) -> Sequence[str]:
        """The packages whose functions keep their identity while they are recorded."""
        return ()

    @property
    def optimizers(self) -> Sequence[type]:
        """The classes that its optimizers are derived from, where they are no optimizers of MindSpore."""
        return ()

    #: the method of an optimizer that makes an update
    update = "step"

    def owns(self, value: Any) -> bool:
        """Return whether a value is a module of this layer."""
        return isinstance(value, self.kind)


def _nothing() -> None:
    """Undo nothing."""


def layers() -> list[Layer]:
    """Return the layers of this process. A package that is imported later adds its layer then."""
    found = []
    for place, package in _LAYERS.items():
        if not package or package in sys.modules:
            with contextlib.suppress(LookupError):
                found.append(_made(place))
    return found


@functools.cache
def _made(place: str) -> Layer:
    """Return the layer of a description; raise LookupError where this process has none now, which is not kept.

    A package of another version may lack what the layer asks for. The training goes on without the layer.
    """
    try:
        layer = _description(place).found()
    except (AttributeError, ImportError, TypeError) as error:
        if not _is_importing(_LAYERS[place]):
            _warn(_LAYERS[place], str(error))
        raise LookupError(place) from None
    if layer is None:
        raise LookupError(place)
    return layer


def _is_importing(package: str) -> bool:
    """Return whether a package is not yet imported as a whole."""
    spec = getattr(sys.modules.get(package), "__spec__", None)
    return bool(getattr(spec, "_initializing", False))


@functools.cache
def _warn(package: str, reason: str) -> None:
    """Say once that a layer cannot be used."""
    _log.warning(
        "the modules of %s are not recorded, its version is not known here: %s", package, reason
    )


def _description(place: str) -> type[Layer]:
    home, _, name = place.partition(":")
    found: type[Layer] = getattr(importlib.import_module(home), name)
    return found


def refusal(value: Any) -> str:
    """Return which models are allowed, for a value that is none; and what its user may do instead."""
    allowed = f"Allowed: {'; '.join(layer.allowed for layer in layers())}."
    advice = (_description(place).advice(value) for place in _LAYERS)
    return " ".join([allowed, *filter(None, advice)])


class SeveralModels:
    """Several models as if they were below one module, so that they themselves are watched too."""

    def __init__(self, models: Sequence[Any]) -> None:
        self.models = models


def layer_of(module: Any) -> Layer | None:
    """Return the layer of a module; None for anything else."""
    return next((layer for layer in layers() if layer.owns(module)), None)


def layer_of_models(models: Any) -> Layer | None:
    """Return the layer of a model, or of the first of several models; None for anything else."""
    several = models.models if isinstance(models, SeveralModels) else models
    is_list = isinstance(several, (list, tuple)) and several
    return layer_of(several[0] if is_list else several)


def own_parameters(module: Any) -> Mapping[str, Any]:
    """Return the parameters that a module itself holds; of an object of no layer none."""
    layer = layer_of(module)
    return {} if layer is None else layer.parameters(module)


def modules_of(module: Any) -> Iterator[tuple[str, Any]]:
    """Yield (dotted path, module) for a module and all below it."""
    if isinstance(module, SeveralModels):
        yield "", module
        for place, model in enumerate(module.models):
            for path, below in modules_of(model):
                yield f"{place}.{path}" if path else str(place), below
        return
    layer = layer_of(module)
    if layer is not None:
        yield from layer.modules(module)


def placed_parameters(module: Any) -> Iterator[tuple[str, Any]]:
    """Yield the place and the parameter of all that a module and those below it hold, each once."""
    seen: set[int] = set()
    for path, below in modules_of(module):
        for key, parameter in own_parameters(below).items():
            if parameter is not None and id(parameter) not in seen:
                seen.add(id(parameter))
                yield f"{path}.{key}" if path else key, parameter


def children_of(module: Any) -> list[Any]:
    """Return the modules that a module itself holds."""
    return [below for path, below in modules_of(module) if path and "." not in path]


def parameters_below(module: Any) -> list[Any]:
    """Return all parameters of a module and of those below it, each once."""
    return [parameter for _, parameter in placed_parameters(module)]


def completed(tensor: Any, like: Any) -> Any:
    """Return a tensor that probe made, with what the layers keep at a tensor of the training."""
    known = vars(like)
    for name in (name for layer in layers() for name in layer.tensor_attributes):
        if name in known:
            vars(tensor).setdefault(name, known[name])
    return tensor


def layer_of_optimizer(optimizer: Any) -> Layer | None:
    """Return the layer above MindSpore that an optimizer is of; None for one of MindSpore's."""
    return next(
        (layer for layer in layers() if isinstance(optimizer, tuple(layer.optimizers))), None
    )


def held_by(optimizer: Any) -> list[Any]:
    """Return the parameters that an optimizer updates, in its order."""
    if layer_of_optimizer(optimizer) is None:
        return list(getattr(optimizer, "parameters", ()))
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def prefix_of(models: Any) -> str:
    """Return the first part of the names of the modules of models."""
    layer = layer_of_models(models)
    return CELL if layer is None else layer.prefix


def is_model(value: Any) -> bool:
    """Return whether a value is a valid ``start(model=)``: a module of a layer, or a list or tuple of such modules."""
    several: Sequence[Any] = value if isinstance(value, (list, tuple)) else [value]
    layer = layer_of_models(value)
    return layer is not None and all(map(layer.owns, several))

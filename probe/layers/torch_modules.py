# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Torch on MindSpore: ``import torch`` is an adapter, whose tensors are MindSpore's and whose models are Modules.

The adapter is mindtorch of mindnlp, or MSAdapter. Its ``torch`` may be a proxy that looks up each attribute in the real
package, so functions are found in the package of its classes. Real PyTorch has tensors of its own, and is no layer.
"""

from __future__ import annotations

import importlib
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from probe.layers.layer import Hook, Layer
from probe.naming import MODULE

#: section of the list -> the place below the adapter's package
_PLACES = {"torch.nn.functional": "nn.functional", "torch": ""}
_REAL = "torch.nn.modules.module.Module"
_ADVICE = (
    "It is a model of PyTorch, whose tensors are not MindSpore's: record it with msprobe for PyTorch, and give both "
    "dumps to probe compare."
)


class TorchLayer(Layer):
    """The layer of an adapter of torch."""

    framework = "mindtorch"
    prefix = MODULE
    allowed = "a torch.nn.Module, or a list or tuple of Modules"
    tensor_attributes = ("_device",)  # its property ``device`` returns this one

    def __init__(self, torch: Any) -> None:
        self.kind = torch.nn.Module
        self._optimizer: type = torch.optim.Optimizer
        self._package = self.kind.__module__.partition(".")[0]
        #: (thread, module) -> its calls whose inputs are awaited, the outermost first
        self._waiting = defaultdict[tuple[int, int], list[object]](list)

    @classmethod
    def found(cls) -> Layer | None:
        """Return the layer where ``torch`` is an adapter whose tensors are MindSpore's."""
        import mindspore

        torch = sys.modules.get("torch")
        tensor = getattr(torch, "Tensor", None)
        is_adapter = isinstance(tensor, type) and issubclass(tensor, mindspore.Tensor)
        return cls(torch) if is_adapter else None

    @classmethod
    def advice(cls, value: Any) -> str:
        """See ``Layer``. A model of PyTorch is recorded by msprobe's half for PyTorch."""
        bases = {f"{kind.__module__}.{kind.__qualname__}" for kind in type(value).__mro__}
        return _ADVICE if _REAL in bases else ""

    def modules(self, module: Any) -> Iterator[tuple[str, Any]]:
        """See ``Layer``. An adapter whose modules do not name those below has the module itself alone."""
        named = getattr(module, "named_modules", None)
        found: Iterator[tuple[str, Any]] = iter([("", module)]) if named is None else named()
        return found

    def parameters(self, module: Any) -> Mapping[str, Any]:
        """See ``Layer``. One whose class has not called the base's ``__init__`` has none."""
        return vars(module).get("_parameters") or {}

    def parameter_name(self, parameter: Any, path: str, key: str) -> str:
        """See ``Layer``. A parameter of torch has its place alone."""
        return f"{path}.{key}" if path else key

    def has_pre_hooks(self, module: Any) -> bool:
        """See ``Layer``."""
        shared = getattr(sys.modules[self.kind.__module__], "_global_forward_pre_hooks", ())
        return bool(getattr(module, "_forward_pre_hooks", None) or shared)

    def behind_pre_hooks(self, module: Any, begin: Hook) -> Callable[[], None]:
        """See ``Layer``. The hook is the last one, and runs once, in its own call.

        Another call of the module may meet it: one that a hook of the training makes, or one of another thread.
        """
        thread = threading.get_ident()
        waiting = self._waiting[thread, id(module)]
        own = object()

        def last(_: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None = None) -> None:
            if threading.get_ident() == thread and waiting[-1] is own:
                handle.remove()
                begin(args, kwargs or {})

        handle = module.register_forward_pre_hook(last, with_kwargs=True)
        waiting.append(own)

        def undo() -> None:
            handle.remove()
            waiting.remove(own)
            if not waiting:
                self._waiting.pop((thread, id(module)), None)

        return undo

    def functions(self) -> Mapping[str, Any]:
        """See ``Layer``."""
        from mindspore import Tensor

        found: dict[str, Any] = {"torch.Tensor": Tensor}
        for section, place in _PLACES.items():
            name = ".".join(filter(None, (self._package, place)))
            try:
                found[section] = importlib.import_module(name)
            except ImportError:
                continue
        return found

    @property
    def packages(self) -> Sequence[str]:
        """See ``Layer``."""
        return (self._package,)

    @property
    def optimizers(self) -> Sequence[type]:
        """See ``Layer``."""
        return (self._optimizer,)

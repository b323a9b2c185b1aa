# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The capture backend for PyNative mode. It owns everything that probe installs into MindSpore and a model."""

from __future__ import annotations

import functools
import gc
import sys
from collections.abc import Callable, Collection, Iterator
from typing import Any, Protocol

from probe.capture.autograd.gradient_hooks import GradientHooks
from probe.capture.autograd.nodes import AutogradNodes
from probe.capture.autograd.parameter_hooks import DebugValueHooks, ParameterHooks
from probe.capture.patches import HookGroup, Patch, around, holding
from probe.capture.pynative.cells import CellHooks, OptimizerHooks, iter_cells
from probe.capture.pynative.context import CallChange, CaptureContext
from probe.capture.pynative.counted_calls import CountedCalls
from probe.capture.pynative.gradient_functions import GradientFunctions
from probe.capture.pynative.jit import jit_patches, recompute_patches
from probe.capture.pynative.listed import ListedFunctions
from probe.capture.pynative.operations import OperationHooks, PrimitiveHooks, find_primitives
from probe.capture.pynative.outside import OutsideCells
from probe.capture.pynative.saved_tensors import SavedTensors
from probe.capture.pynative.thread_state import ThreadState
from probe.capture.support_ops import SupportedApi, load_supported_apis
from probe.config.settings import Settings
from probe.layers.layer import layer_of_models, layers
from probe.measure.device import select_checksums, select_measurers
from probe.private_names import installed_parts
from probe.recording.step_recorder import StepRecorder
from probe.tasks.values import DebugTask

#: thresholds of the garbage collector between start and stop: a scan of all objects would slow the step
_RARE_COLLECTIONS = (200_000, 20, 100)


class Choosing(Protocol):
    """Hooks of which a step may choose some."""

    @property
    def keys(self) -> set[str]:
        """The keys of all calls that they can watch."""

    def choose(self, only: Collection[str] | None) -> None:
        """Let ``install`` watch the calls with these keys alone; None for all."""


class PyNativeCapture:
    """Installs hooks at ``start``, removes them at ``stop``. Parameter hooks stay until the end of the step."""

    select_measurers = staticmethod(select_measurers)
    journals_each = False

    def __init__(
        self,
        settings: Settings,
        companion: Any = None,
        functions: frozenset[str] | None = None,
        change: CallChange | None = None,
        counted: CountedCalls | None = None,
    ) -> None:
        self._settings = settings
        self._counted = counted
        self.companion = companion
        nodes = AutogradNodes()
        #: waits for asynchronous work; raises a pending error of the training
        self.wait: Callable[[], None] = nodes.synchronize
        self._gradients = GradientHooks(nodes)
        self._debug_values = DebugValueHooks(nodes)
        self._context = CaptureContext(self._gradients, counted)
        self._parameters = ParameterHooks(lambda: context.state.micro)
        make = installed_parts().make
        context = self._context
        recompute = make("recompute", lambda: recompute_patches(context), HookGroup())
        compiled = make("compiled functions", lambda: jit_patches(context), HookGroup())
        self._compilation = HookGroup([recompute, compiled, RareCollections()])
        listed = load_supported_apis(settings.support_ops) if settings.apis else []
        if functions is not None:  # parts of the keys of their calls
            listed = [api for api in listed if not functions.isdisjoint(api.key.split("."))]
        self._context.hooks.add(context.handles)
        self._context.hooks.add(MicroBatchHooks(context.state))
        functions_hooks = ListedFunctions(self._context, listed, settings.early_names)
        self._context.hooks.add(functions_hooks)
        self._choosing: list[Choosing] = [functions_hooks]  # hooks of functions and operations
        if counted is not None:
            counted.key_of_code = context.codes.key_of
        if settings.operations:
            operations = make("operations", lambda: OperationHooks(context), None)
            if operations is not None:
                self._context.hooks.add(operations)
                self._choosing.append(operations)
        self._of_models: list[Choosing] = []
        self._custom: dict[tuple[int, str], ListedFunctions] = {}
        self._watched: list[tuple[str, Any]] = []
        self._saved: SavedTensors | None = None
        if settings.guards_saved_tensors and nodes.works:
            new_guard = lambda: SavedTensors(nodes, select_checksums(settings), context.state)  # noqa: E731
            self._saved = make("saved tensors", new_guard, None)
            context.around_calls = None if self._saved is None else self._saved.around
        if change is not None:  # in place of that guard; of Cells below the hooks of names
            self._saved = None
            context.around_calls = change.around
            self._context.hooks.add(change.hooks(context.state))
        self._optimizers = OptimizerHooks(self._context, settings.optimizer, self._saved)
        self._model_hooks = HookGroup([self._optimizers])
        self._context.hooks.add(self._model_hooks)
        self._tokens: TokenRange | None = None

    # -- functions, Cells and Primitives --------------------------------------------------------------------------

    def add(self, api: SupportedApi) -> None:
        """Record a function of the user's own too."""
        place = id(api.owner), api.name
        if self._settings.apis and place not in self._custom:
            custom = ListedFunctions(self._context, [api], by_code=False, is_custom=True)
            self._custom[place] = custom
            self._context.hooks.add(custom)

    def drop(self, owner: Any, name: str) -> None:
        """Stop recording such a function."""
        self._context.hooks.discard(self._custom.pop((id(owner), name), None))

    def watch(self, models: Any) -> None:
        """Watch the Cells and Primitives of these models, instead of earlier ones. Cheap if nothing has changed."""
        cells = list(iter_cells(models))
        held = find_primitives(cell for _, cell in cells) if self._settings.apis else []
        found = cells + held
        old = self._watched
        if len(found) == len(old) and all(
            a[1] is b[1] and a[0] == b[0] for a, b in zip(found, old)
        ):
            self._optimizers.rename(cells)
            return
        self._parameters.forget()
        self._context.hooks.discard(self._model_hooks)
        self._optimizers.watch(models, cells)
        outside = OutsideCells(cells, self._optimizers.name_of)
        self._watched = found
        primitives = PrimitiveHooks(self._context, held)
        self._of_models = [primitives]
        self._model_hooks = HookGroup([primitives, self._optimizers])
        if self._settings.cells or self._settings.snapshot:
            cells = cells if self._settings.cells else cells[:1]  # the model
            new_hooks = functools.partial(
                CellHooks, self._context, self._parameters, models, cells, outside
            )
            cell_hooks = installed_parts().make("Cells", new_hooks, None)
            if cell_hooks is not None:
                self._model_hooks.add(cell_hooks)
                self._of_models.append(cell_hooks)
        if self._settings.snapshot:
            self._model_hooks.add(GradientFunctions(self._context, models))
        self._context.hooks.add(self._model_hooks)

    @property
    def keys(self) -> set[str]:
        """The keys of all functions, Primitives and Cells that can be chosen; those of operations are not known."""
        return set().union(*(hooks.keys for hooks in (*self._choosing, *self._of_models)))

    def choose(self, only: Collection[str] | None) -> None:
        """Let ``install`` watch the calls with these keys alone; None for all."""
        for hooks in (*self._choosing, *self._of_models):
            hooks.choose(only)

    # -- start, stop, step ----------------------------------------------------------------------------------------

    def install(
        self, recorder: StepRecorder, model: Any = None, token_range: tuple[int, int] | None = None
    ) -> None:
        """Begin to record. After an error, ``remove`` undoes a part of it."""
        if (
            self.companion is not None and recorder.companion is not None
        ):  # records compiled Cells, in a tree of theirs
            self.companion.install(recorder.companion)
        self._uninstall()
        self._context.recorder = self._context.handles.recorder = recorder
        if self._counted is not None:
            self._counted.recorder = recorder
        self._context.state.forget_cells()
        self._parameters.begin(recorder)
        self._compilation.install()
        if token_range is not None:  # the first and the last forward of the model to record
            self._tokens = TokenRange(self._context, model, *token_range)
            self._context.hooks.add(self._tokens)
        self._context.hooks.install()
        if self._saved is not None:
            self._saved.begin(recorder)

    def remove(self) -> None:
        """Remove everything but the hooks that a backward may still need. It may be called twice."""
        self._uninstall()
        self._gradients.flush()
        if self.companion is not None:
            self.companion.remove()

    def _uninstall(self) -> None:
        """Restore MindSpore and the model. An interrupt is raised after that."""
        try:
            self._remove_all()
        except BaseException:
            self._remove_all()
            raise

    def _remove_all(self) -> None:
        self._context.recorder = None
        if self._counted is not None:
            self._counted.recorder = None
        if self._saved is not None:
            self._saved.remove()
        self._context.hooks.remove()
        self._context.hooks.discard(self._tokens)
        self._tokens = None
        self._compilation.remove()

    def end_step(self) -> None:
        """Remove the parameter hooks too, and whatever an interrupt has left."""
        self._uninstall()
        self._gradients.flush()
        self._gradients.release()
        if self._saved is not None:
            self._saved.end_step()
        self._parameters.remove()
        self._debug_values.remove()
        self._context.handles.end_step()
        self._context.replay_logs.clear()
        if self.companion is not None:
            self.companion.end_step()

    def detach(self) -> None:
        """Stop recording for good and restore everything, in a forked child."""
        self._uninstall()
        self._context.handles.detach()
        if self.companion is not None:
            self.companion.detach()

    def save(
        self, recorder: StepRecorder, task: DebugTask, variable: Any, name: str, backward: bool
    ) -> None:
        """Record a value by name, and its gradients; see ``DebugValueHooks``."""
        self._debug_values.save(recorder, task, variable, name, backward)


class RareCollections:
    """Lets the garbage collector run rarely between start and stop."""

    def __init__(self) -> None:
        self._before: tuple[int, int, int] | None = None

    def install(self) -> None:
        """Set higher thresholds, unless the user's are higher or zero."""
        before = gc.get_threshold()
        if 0 < before[0] < _RARE_COLLECTIONS[0]:
            self._before = before
            gc.set_threshold(*_RARE_COLLECTIONS)

    def remove(self) -> None:
        """Restore the thresholds, unless the training has changed them since."""
        if self._before is not None and gc.get_threshold() == _RARE_COLLECTIONS:
            gc.set_threshold(*self._before)
        self._before = None


class MicroBatchHooks(HookGroup):
    """Notes the number of the micro-batch while a method of a stage runs. Nothing is patched without hyper_parallel.

    The schedule of a pipeline tells each method of a stage as ``micro_index``. It is that of hyper_parallel, which is
    never imported here.
    """

    def __init__(self, state: ThreadState) -> None:
        super().__init__()
        self._state = state  # the state of each thread, which receives the number

    def install(self) -> None:
        """Patch the methods of stages."""
        if not self._is_installed:
            stage = getattr(sys.modules.get("hyper_parallel"), "PipelineStage", None)
            self._hooks = [Patch(*place, around(self._run)) for place in _methods(stage)]
        super().install()

    def _run(self, original: Callable[..., Any], stage: Any, *args: Any, **kwargs: Any) -> Any:
        number = args[0] if args else kwargs.get("micro_index")
        with holding(self._state, "micro", str(number) if isinstance(number, int) else None):
            return original(stage, *args, **kwargs)


def _methods(stage: Any) -> Iterator[tuple[type, str]]:
    """Yield the class and the name of each method whose first argument is the number of a micro-batch."""
    for owner in getattr(stage, "__mro__", ()):
        for name, method in vars(owner).items():
            if getattr(getattr(method, "__code__", None), "co_varnames", ())[1:2] == (
                "micro_index",
            ):
                yield owner, name


class TokenRange(HookGroup):
    """Starts the recording with one forward of the model, counted from 0, and stops it after another.

    It is for loops that generate tokens. Its patch is installed after all others. Outside these forwards
    ``context.recorder`` is None.
    """

    def __init__(self, context: CaptureContext, model: Any, first: int, last: int) -> None:
        layer = layer_of_models(model) or layers()[0]
        super().__init__([Patch(layer.kind, layer.call, around(self._counted))])
        self._context = context
        self._model = model
        self._first = first
        self._last = last
        self._count = self._depth = 0
        self._recorder = context.recorder
        context.recorder = None

    def _counted(self, original: Callable[..., Any], cell: Any, *args: Any, **kwargs: Any) -> Any:
        context = self._context
        if cell is not self._model or self._depth or not self._is_installed:
            return original(cell, *args, **kwargs)
        if self._count == self._first:
            context.recorder = self._recorder
        self._depth = 1
        try:
            return original(cell, *args, **kwargs)
        finally:
            self._depth = 0
            if self._count == self._last:
                context.recorder = None
            self._count += 1

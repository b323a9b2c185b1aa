# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Every private name of MindSpore that probe uses, in one table: a new MindSpore may take any of them away.

A name is written ``module:dotted.name``. ``|`` divides the places in different versions, and ``?`` at the end marks a
name that only some versions have. ``Cell()`` is an instance, and the module ``node`` is the class of graph nodes.
"""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from probe.executor import pynative_executor

_EXECUTOR = "mindspore.graph.api:_pynative_executor.{0}|mindspore.common.api:_pynative_executor.{0}"
_COMPILER = "mindspore.graph.api:{0}|mindspore.common.api:{0}"
_PRIM = "mindspore.ops.auto_generate.gen_ops_prim:{0}"

Made = TypeVar("Made")

#: the first MindSpore that was tested, and the first that was not
TESTED = ("2.7.2", "2.11")


@dataclass(frozen=True)
class PrivatePart:
    """The private names that one part of probe needs."""

    part: str
    loss: str  # the data that are lost without these names
    names: tuple[str, ...]  # the names; see the module


def _part(part: str, loss: str, *names: str, **families: str) -> PrivatePart:
    """Return a row. Each family is a pattern and the words that are put into it."""
    patterns = {"executor": _EXECUTOR, "compiler": _COMPILER, "prim": _PRIM}
    inside = [patterns[family].format(word) for family, words in families.items() for word in words.split()]
    return PrivatePart(part, loss, (*names, *inside))


PRIVATE_PARTS = (
    _part(
        "tensors",
        "nothing is recorded",
        *(f"mindspore:Tensor.{name}" for name in "_dtype _shape _nbytes _size _make_subclass?".split()),
        "mindspore._c_expression:typing.Type|mindspore._c_expression:typing.Number",
        executor="sync",
    ),
    _part(
        "memory",
        "tensors are read by asnumpy, which is slower",
        *(f"mindspore._c_expression:TensorPy.{name}" for name in "_data_ptr stride is_contiguous".split()),
    ),
    _part(
        "schedules",
        "the learning rate of a compiled optimizer with a list of rates is null on a device",
        *(f"mindspore.nn.optim.optimizer:{name}" for name in ("_IteratorLearningRate", "_ConvertToCell")),
    ),
    _part(
        "own operations",
        "no number is recorded on a device, or while a communication is in flight",
        "mindspore._c_expression:MixedPrecisionType.NOTSET",
        "mindspore.ops.auto_generate:copy_op",
        executor="enable_grad set_enable_grad set_mixed_precision_type",
        prim="Max Min MeanExt SumExt LinalgVectorNorm Square Abs Maximum ClampScalar Div NotEqual Equal Less Greater "
        "Reshape Concat Mul LessEqual GreaterEqual LogicalNot MaskedFill Select",
    ),
    _part(
        "gradients",
        "backward entries are missing",
        *(f"mindspore:Tensor.{name}" for name in "_grad_node _output_index".split()),
        *(f"node:{name}" for name in "_sequence_nr next_functions register_hook register_prehook name".split()),
        "node:_unique_id?",
        "mindspore.common.hook_handle:_HOOK_VERSION?",
        executor="requires_grad grad_flag set_grad_flag",
    ),
    _part(
        "saved tensors",
        "tensors that change between forward and backward are not found",
        *(f"mindspore:Tensor.{name}?" for name in "_is_leaf _version _itemsize".split()),
        prim="ViewDtype?",
        executor="push_saved_tensor_hook? pop_saved_tensor_hook? is_saved_tensor_hook_active? "
        "disable_saved_tensor_hook? disable_frontend_and_bprop_pipeline? enable_frontend_and_bprop_pipeline?",
    ),
    _part(
        "Cells",
        "entries of Cells are missing",
        *(f"mindspore.nn:Cell().{name}" for name in "_run_forward_pre_hook _forward_pre_hook _params".split()),
        "mindspore.nn:Cell()._run_forward_hook",
    ),
    _part(
        "operations",
        "nothing is recorded at levels L1 and mix",
        "mindspore.nn:Cell()._call_custom_bprop",
        "mindspore.common._grad_function:_Function.apply",
        "mindspore.ops.auto_generate.pyboost_inner_prim:_PyboostConcatPrim",
        "mindspore._c_expression:Functional_",
        executor="run_op_async real_run_op",
        prim="pyboost_relu",
    ),
    _part(
        "compiled functions",
        "compiled functions have no entry",
        "mindspore.graph._utils.pijit_context:PIJitCaptureContext|mindspore.common._pijit_context:PIJitCaptureContext",
        compiler="_JitExecutor.__call__ _JitExecutor.compile _CellGraphExecutor.compile "
        "_JitExecutor._set_compile_cache_dep_files? _CellGraphExecutor._set_compile_cache_dep_files?",
    ),
    _part(
        "recompute",
        "calls of recomputed Cells have two numbers",
        *(f"mindspore.common.recompute:_RecomputeCell.{name}" for name in ("construct", "bprop")),
        *(f"mindspore.common.recompute:_RecomputationHook.{name}?" for name in ("__enter__", "__exit__")),
    ),
    _part(
        "communication",
        "collectives have no group, and numbers may be null or wait while a communication is in flight",
        "mindspore._c_expression:CommHandle.wait",
        "mindspore.communication:GlobalComm.INITED",
        "mindspore.communication:GlobalComm.WORLD_COMM_GROUP",
    ),
    _part(
        "GRAPH_MODE",
        "GRAPH_MODE is not recorded",
        "mindspore.context:_get_mode?",
        *(f"mindspore.nn:Cell().{name}?" for name in "_compile_cache _phase_cache _create_time _id".split()),
        *(f"mindspore.nn:Cell().{name}?" for name in "_dynamic_shape_inputs compile_cache _recompute_cell".split()),
        "mindspore._c_expression:_tensordump_set_step",
        "mindspore.ops:PrimitiveWithInfer",
    ),
    _part(
        "level L2",
        "kernel dumps have the numbers of MindSpore's steps",
        "mindspore._c_expression:_set_init_iter",
        compiler="function_phases ms_compile_cache",
    ),
    _part(
        "the step once more",
        "no step is made again at an alarm",
        "mindspore.common.seed:_KERNEL_SEED",
        "mindspore.ops.composite.base:_Grad",
        "mindspore.dataset.engine.iterators:Iterator.__next__",
        "mindspore.common.generator:default_generator",
        executor="clear_res",
    ),
    _part(
        "probe run",
        "`probe run` does not see where a step begins",
        "mindspore.ops.composite.base:_pynative_forward_run|mindspore.ops.composite.base:_Grad._pynative_forward_run",
        "mindspore.nn:Cell()._cells",
    ),
)


def is_between(version: str, first: str, end: str) -> bool:
    """Return whether a version is at least the first, and below the end.

    >>> is_between("2.10.0", "2.7.2", "2.11"), is_between("2.11.0rc1", "2.7.2", "2.11")
    (True, False)
    """
    numbers, low, high = ([int(part) for part in re.findall(r"\d+", text)[:3]] for text in (version, first, end))
    return low <= numbers < high


@functools.lru_cache(1)
def installed_parts() -> Parts:
    """Return the parts of this process."""
    return Parts()


class Parts:
    """The parts of probe that the installed MindSpore allows: all, at a version that was tested."""

    def __init__(self) -> None:
        import mindspore

        self.version = str(mindspore.__version__)
        self.is_tested = is_between(self.version, *TESTED)
        self._lacking: dict[str, list[str]] = {}
        self._failed: dict[str, str] = {}
        self._told = ""
        for part, name in () if self.is_tested else missing_names():
            self._lacking.setdefault(part.part, []).append(name.partition(":")[2])

    def make(self, part: str, make: Callable[[], Made], otherwise: Made) -> Made:
        """Return an object of a part, or the result of its self-test; ``make`` raises where the part does not work.

        ``otherwise`` is the result where the part is off, because it lacks a private name or fails now.
        """
        if part in self._lacking:
            return otherwise
        try:
            made = make()
        except Exception as error:  # a new MindSpore may raise anything: the other parts go on
            self._failed[part] = f"{type(error).__name__}: {error}"
            return otherwise
        self._failed.pop(part, None)
        return made

    def reason(self, part: str) -> str:
        """Return why a part is off; "" where it is on."""
        return ", ".join(self._lacking.get(part, ())) or self._failed.get(part, "")

    def tell(self, log: Callable[[str], None]) -> None:
        """Say which parts are off, and that the version was not tested: nothing where all is well, nothing twice."""
        if self.is_tested and not self._failed:
            self._told = ""
            return
        text = str(self)
        if text != self._told:
            self._told = text
            log(text)

    def __str__(self) -> str:
        tested = f"MindSpore {self.version} was not tested with this probe, but versions from {TESTED[0]} and below "
        tested = "" if self.is_tested else f"{tested}{TESTED[1]} were. "
        off = {row.part: row.loss for row in PRIVATE_PARTS if self.reason(row.part)}
        if not off:
            return f"{tested}All parts passed their self-tests. `probe doctor` checks more."
        said = "; ".join(f"{part} ({loss}: {self.reason(part)})" for part, loss in off.items())
        return f"{tested}These parts are off: {said}. `probe doctor` checks more."


def missing_names() -> Iterator[tuple[PrivatePart, str]]:
    """Yield each name that the installed MindSpore lacks, and its part."""
    for part in PRIVATE_PARTS:
        for name in part.names:
            if not name.endswith("?") and not any(_exists(place) for place in name.split("|")):
                yield part, name.partition("|")[0]


def _exists(place: str) -> bool:
    module, _, dotted = place.partition(":")
    try:
        owner = _node_class() if module == "node" else importlib.import_module(module)
        for word in dotted.split("."):
            found = getattr(owner, word.removesuffix("()"))
            owner = found() if word.endswith("()") else found
    except (ImportError, AttributeError):
        return False
    return True


def _node_class() -> type:
    """Return the class of graph nodes, which no module names."""
    import mindspore

    found: list[type] = []

    def function(x: Any) -> Any:
        found.append(type(getattr(x * 2, "_grad_node", None)))  # an error here would leave MindSpore differentiating
        return x

    executor = pynative_executor()
    has_flag = bool(getattr(executor, "grad_flag", bool)())
    differentiate: Callable[..., Any] = mindspore.grad(function)
    differentiate(mindspore.Tensor([1.0], mindspore.float32))
    if has_flag:  # a training may have it on for good, and MindSpore has switched it off now
        executor.set_grad_flag(True)
    return found[0]

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The numbers of tensors and of steps: on the host at once, on a device by one operation each, fetched a step later."""

from __future__ import annotations

import functools
import math
import struct
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Union

import numpy as np

from probe.capture.autograd.nodes import AutogradNodes
from probe.capture.training.optimizer_values import OptimizerValues
from probe.executor import OwnOperations
from probe.measure.dtype_name import dtype_name
from probe.measure.features import HostTensor
from probe.measure.reductions import Reductions
from probe.measure.statistics import OwnNumbers, crc32, statistics
from probe.measure.tensor_reader import (
    SINGLE,
    TensorReader,
    element_count,
    local_tensor,
    to_storable,
)
from probe.pytree import leaves
from probe.recording.measurement_queue import TrainingWork
from probe.store.error_log import ErrorLog

#: msprobe's names of numbers, in the order of ``Reductions.four``, and the keys of ``statistics``
FOUR = {"max": "Max", "min": "Min", "mean": "Mean", "norm": "Norm"}
#: numbers of an optimizer that are no series: they count or choose
_NO_SERIES = frozenset(("global_step", "parameters", "groups"))
_SAME = 1e-6
_SMALL = 4096  # bytes of a tensor that is copied and measured later
_LARGEST = 3.4028234e38  # a larger number may leave float32
_FOUR_SINGLES = struct.Struct("4f")
Checksum = Union[int, Callable[[], int]]  # a CRC-32, or a function that fetches and returns it


class Later(NamedTuple):
    """A number that is still on the device."""

    place: int  # its place among the numbers of the step
    is_square: bool  # whether it is the square of the number
    size: int = 1  # its divisor: the number of elements, where it is a count and a part is wanted

    def of(self, fetched: Sequence[float]) -> float:
        """Return the number, by those of the step."""
        number = fetched[self.place]
        return math.sqrt(number) if self.is_square else number / self.size


Number = Union[float, Later]
Held = Callable[[], Mapping[str, Number]]  # returns the numbers of a tensor as it was


class HostNumbers:
    """Reads tensors at once. On CPU they are read straight from their memory."""

    def __init__(self, wait: Callable[[], None], on_cpu: bool) -> None:
        #: waits for asynchronous work before a tensor is read, and raises a pending error of the training
        reader = TensorReader()
        self.ready = wait
        self.on_cpu = on_cpu
        self._own = OwnOperations()
        self._scalars: list[Any] = []
        self._pending: Exception | None = None
        self._flat = reader.flat
        self._content = reader.content
        self._direct = {dtype: reader.numpy_dtype(dtype) for dtype in reader.direct_dtypes}
        self._as_arrays = on_cpu
        self.own = OwnNumbers(())
        self._read: Callable[[Any], Any] = lambda tensor: to_storable(reader(local_tensor(tensor)))

    def norm(self, tensor: Any) -> Number:
        """Return the L2 norm of a tensor or an array; NaN or Inf if an element is."""
        array = (
            tensor.reshape(-1)
            if isinstance(tensor, np.ndarray)
            else self._flat(local_tensor(tensor))
        )
        array = self._read(tensor).reshape(-1) if array is None else array
        if array.dtype == SINGLE and array.size:
            square = float(array.dot(array))
            if 1e-30 < square < math.inf:
                return math.sqrt(square)
        return _number(statistics(array).get("Norm"))

    def ends(self, tensor: Any) -> dict[str, Number]:
        """Return Max and Min of a tensor or an array, and the user's own statistics."""
        array = tensor if isinstance(tensor, np.ndarray) else self._read(tensor)
        numbers = statistics(array)
        return {
            "max": _number(numbers.get("Max")),
            "min": _number(numbers.get("Min")),
            **self.own.known(array),
        }

    def several(self, tensor: Any, names: Sequence[str], eps: float | None) -> dict[str, Number]:
        """Return the numbers of ``FOUR`` as float32 holds them, and perhaps others, of a tensor or an array.

        ``names`` may have "nans", the number of NaN, and "zeros", the part of the elements below ``eps``, or of
        those that are zero where it is None.
        """
        array = tensor if isinstance(tensor, np.ndarray) else self._read(tensor)
        numbers = statistics(array)
        four = _singles([_number(numbers.get(key)) for key in FOUR.values()])
        found: dict[str, Number] = dict(zip(FOUR, four))
        found["nans"] = float(numbers.get("nan_count") or 0)
        if "zeros" in names:
            found["zeros"] = _part_of_zeros(array, eps)
        return found

    def held(self, tensor: Any, names: Sequence[str]) -> Held:
        """Return a function that returns ``several`` of a tensor as it is now; of zeros those that are exactly zero.

        A small tensor is copied now and measured later, with others: alone, between two operations of a training,
        its measurement takes four times as long, as none of its code is in the processor's cache.
        """
        local = None if isinstance(tensor, np.ndarray) else local_tensor(tensor)
        if local is not None and local._dtype in self._direct and 0 < local._nbytes <= _SMALL:
            content = self._content(local, local._nbytes)
            if content is not None:
                dtype = self._direct[local._dtype]
                return lambda: self.several(to_storable(np.frombuffer(content, dtype)), names, None)
        found = self.several(tensor, names, None)
        return lambda: found

    def number(self, tensor: Any) -> Number:
        """Return the value of a tensor of one element."""
        return float(
            tensor if isinstance(tensor, np.ndarray) else self._read(tensor).reshape(-1)[0]
        )

    def made(self, compute: Callable[..., Any], *arguments: Any) -> Any:
        """Return what a function of ``mechanisms`` makes of tensors, on CPU of their arrays, and of other arguments."""
        if not self._as_arrays:
            return self._own.run(compute, *map(local_tensor, arguments))
        self.ready()
        with np.errstate(all="ignore"):
            return compute(*map(self._array, arguments))

    def _array(self, given: Any) -> Any:
        array = self._read(given) if hasattr(given, "asnumpy") else given
        return array.view(HostTensor) if isinstance(array, np.ndarray) else given

    def computed(
        self, compute: Callable[..., Mapping[str, Any]], *arguments: Any
    ) -> dict[str, Number]:
        """Return the numbers that such a function makes."""
        return {
            name: self.number(scalar) for name, scalar in self.made(compute, *arguments).items()
        }

    def copy(self, tensor: Any) -> Any:
        """Return a copy of the values of a tensor, for ``change``."""
        return np.array(self._read(tensor), copy=True)

    def change(self, tensor: Any, before: Any) -> Number:
        """Return the norm of the difference of a tensor and its copy."""
        with np.errstate(all="ignore"):  # Inf - Inf
            difference = np.subtract(self._read(tensor), before, dtype=np.float32)
            norm = float(np.linalg.norm(difference))
            if math.isinf(norm):  # the squares may be beyond float32, and the norm is not
                norm = float(np.linalg.norm(difference.astype(np.float64)))
        return norm

    def checksum(self, tensor: Any) -> Checksum:
        """Return the CRC-32 of the bytes of a tensor, as dump.json has it."""
        return int(crc32(tensor if isinstance(tensor, np.ndarray) else self._read(tensor)), 16)

    def take(self) -> list[Any]:
        """Return the numbers of the step that are still on the device."""
        scalars = self._scalars
        self._scalars = []
        return scalars

    def fetch(self, scalars: list[Any]) -> list[float]:
        """Return their values."""
        return []

    def raise_pending(self) -> None:
        """Raise an error of the training that a fetch has met first."""
        error = self._pending
        self._pending = None
        if error is not None:
            raise error


class DeviceNumbers(HostNumbers):
    """Adds one operation a tensor to MindSpore's pipeline, and waits for nothing but ``fetch``."""

    def __init__(self, wait: Callable[[], None], on_cpu: bool) -> None:
        super().__init__(wait, on_cpu)
        self.ready = lambda: None
        self._as_arrays = False
        self._reductions = Reductions(on_cpu, scaled=False)
        self._work = TrainingWork(wait)
        self._lock = threading.Lock()  # optimizers may run in several threads

    def norm(self, tensor: Any) -> Number:
        """Return the L2 norm; see ``HostNumbers``."""
        if isinstance(tensor, np.ndarray):
            return super().norm(tensor)
        return self._later(
            self._own.run(self._reductions.norm, local_tensor(tensor)),
            self._reductions.norm_is_square,
        )

    def ends(self, tensor: Any) -> dict[str, Number]:
        """Return nothing, as these would be more operations; beside own statistics the same, which waits."""
        self._pending = self._pending or (self._work.failure() if self.own.chosen else None)
        return super().ends(tensor) if self.own.chosen and self._pending is None else {}

    def several(self, tensor: Any, names: Sequence[str], eps: float | None) -> dict[str, Number]:
        """Return the numbers of ``FOUR`` and others; see ``HostNumbers``. Max and Min may leave NaN out."""
        if isinstance(tensor, np.ndarray) or not element_count(tensor):
            return super().several(tensor, names, eps)
        scalars = self._own.run(self._reduce, local_tensor(tensor), names, eps)
        is_square = {"norm": self._reductions.norm_is_square}
        sizes = {"zeros": element_count(tensor)}
        return {
            name: self._later(it, is_square.get(name, False), sizes.get(name, 1))
            for name, it in scalars.items()
        }

    def _reduce(self, tensor: Any, names: Sequence[str], eps: float | None) -> dict[str, Any]:
        reductions = self._reductions
        tensor = self._reductions.plain(tensor)
        kind = "float" if "loat" in dtype_name(tensor.dtype) else "int"
        values = reductions.values(tensor, kind)
        source = values if dtype_name(tensor.dtype) == "Bool" else tensor
        floats, whole = reductions.four(source, values, "float" if source is values else kind)
        found = dict(zip(FOUR, [*whole, *floats]))
        if "nans" in names:
            found["nans"] = reductions.count(values, "NotEqual")
        if "zeros" in names:
            found["zeros"] = (
                reductions.count(values, "Equal", 0.0)
                if eps is None
                else reductions.count(reductions.run("Abs", values), "Less", eps)
            )
        return found

    def number(self, tensor: Any) -> Number:
        """Return the value of a tensor of one element, from a copy."""
        return self._later(self.copy(tensor))

    def copy(self, tensor: Any) -> Any:
        """Return a copy of a tensor on the device."""
        return self._own.run(self._reductions.run, "Add", local_tensor(tensor), 0)

    def held(self, tensor: Any, names: Sequence[str]) -> Held:
        """Return a function that returns ``several``, which are on the device; see ``HostNumbers``."""
        found = self.several(tensor, names, None)
        return lambda: found

    def checksum(self, tensor: Any) -> Checksum:
        """Return a function that fetches a copy of the tensor; see ``HostNumbers``."""
        if isinstance(tensor, np.ndarray):
            return super().checksum(tensor)
        copy = self.copy(tensor)
        return lambda: int(crc32(to_storable(self._own.run(copy.asnumpy))), 16)

    def change(self, tensor: Any, before: Any) -> Number:
        """Return the norm of the difference of a tensor and its copy."""
        return self.norm(self._own.run(self._reductions.run, "Sub", local_tensor(tensor), before))

    def fetch(self, scalars: list[Any]) -> list[float]:
        """Return their values, by one fetch. Only an error of our own is raised."""
        try:
            found = self._own.run(self._reductions.fetch, scalars, "float")
        except RuntimeError as error:
            self._pending = self._work.failure()  # a device that has failed tells it every time
            found = self._own.run(self._reductions.fetch, scalars, "float")
            self._pending = self._pending or error
        return [float(number.reshape(-1)[0]) for number in found]

    def _later(self, scalar: Any, is_square: bool = False, size: int = 1) -> Later:
        with self._lock:
            self._scalars.append(scalar)
            return Later(len(self._scalars) - 1, is_square, size)


def known(values: Mapping[str, Number], fetched: Sequence[float]) -> dict[str, float]:
    """Return numbers with those of the device in their places."""
    return {
        name: value.of(fetched) if isinstance(value, Later) else value
        for name, value in values.items()
    }


def new_numbers(measure: str = "auto") -> HostNumbers:
    """Return what reads the tensors of this process; ``measure`` is the setting."""
    from mindspore import get_context

    on_cpu = get_context("device_target") == "CPU"
    on_host = measure == "host" or (measure == "auto" and on_cpu)
    return (HostNumbers if on_host else DeviceNumbers)(AutogradNodes().synchronize, on_cpu)


def single(number: float) -> float:
    """Return a number as float32 holds it, as it is in msprobe's file."""
    if -_LARGEST < number < _LARGEST:  # nothing to ignore, which costs ten times more
        return float(np.float32(number))
    with np.errstate(over="ignore"):
        return float(np.float32(number))


def _singles(numbers: Sequence[float]) -> Sequence[float]:
    """Return four numbers as float32 holds them: three times faster than one by one."""
    try:
        return _FOUR_SINGLES.unpack(_FOUR_SINGLES.pack(*numbers))
    except OverflowError:  # one leaves the range
        return [single(number) for number in numbers]


def _part_of_zeros(array: np.ndarray[Any, Any], eps: float | None) -> float:
    """Return the part of the elements whose size is below ``eps``; None: of those that are zero."""
    if not array.size:
        return math.nan
    if eps is None:
        is_zero = array == 0
    else:
        is_zero = np.abs(array.astype(np.float32, copy=False)) < eps
    return np.count_nonzero(is_zero) / array.size  # `mean` would be three times slower


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


class Row(NamedTuple):
    """The numbers of a step that has ended; see ``monitor.Watch``."""

    values: dict[str, Number]  # series -> number
    entered: dict[
        str, dict[str, Number]
    ]  # optimizer -> parameter -> norm of the gradient that entered
    scalars: list[Any]
    scales: Mapping[str, Number] = MappingProxyType({})  # loss -> the loss scale in it

    def finish(self, fetched: list[float]) -> dict[str, float]:
        """Return all numbers with those that follow from them."""
        found = known(self.values, fetched)
        for loss, scale in known(self.scales, fetched).items():
            if scale:
                found[loss] /= scale
                found.setdefault("loss_scale", scale)
        for optimizer, gradients in self.entered.items():
            total = 0.0
            for parameter, norm in known(gradients, fetched).items():
                name = f"{parameter}.grad"
                total += norm * norm
                arrived = found.setdefault(name, norm)
                is_same = norm == arrived or abs(norm - arrived) <= _SAME * min(norm, arrived)
                if not is_same and not (math.isnan(norm) and math.isnan(arrived)):
                    found[f"{parameter}.grad_in"] = norm
            found[f"{optimizer}.global_norm"] = math.sqrt(total)
        return found


class StepValues:
    """The numbers of the step that is open; see ``events.Observer``."""

    def __init__(self, numbers: HostNumbers, errors: ErrorLog) -> None:
        from mindspore import Tensor

        self._tensor = Tensor
        self._numbers = numbers
        self._errors = errors
        self._guard = functools.lru_cache(None)(
            functools.partial(errors.guard, "reading a parameter's gradient")
        )
        self._values: dict[str, Number] = {}
        self._entered: dict[str, dict[str, Number]] = {}
        self._outputs: list[Any] = []
        #: the scale that the running function multiplies its loss by, and those of the losses by their places
        self._scale: Any = None
        self._scales: dict[int, Any] = {}
        self._before: dict[str, Any] = {}
        self._has_parameters = False
        self._began = 0.0

    def begin(self, has_parameters: bool) -> None:
        """Begin a step. Parameters, their updates and the states of optimizers are measured if ``has_parameters``."""
        self._has_parameters = has_parameters
        self._began = time.perf_counter()

    def put(self, numbers: Mapping[str, Number]) -> None:
        """Add numbers: of attention, routers and weights, or the user's."""
        self._values.update(numbers)

    def wait(self) -> None:
        """Wait for the loss where it is read on the host. Raises a pending error of the training."""
        if self._outputs:
            self._numbers.ready()

    def end(self) -> Row:
        """End the step and return its numbers."""
        self.before_adjust()
        values = self._values
        self._values = {}
        entered = self._entered
        self._entered = {}
        scales = self._scales
        self._scales = {}
        outputs = self._outputs
        self._outputs = []
        self._scale = None
        self._before = {}
        losses: dict[str, Number] = {}
        with self._errors.guard("reading the loss"):
            for place, output in enumerate(outputs):
                losses[f"loss{place or ''}"] = self._numbers.number(output)
        losses["seconds"] = time.perf_counter() - self._began
        by_loss = {
            name: scales[place]
            for place, name in enumerate(losses)
            if place in scales and name != "seconds"
        }
        return Row({**losses, **values}, entered, self._numbers.take(), by_loss)

    # -- the hooks ------------------------------------------------------------------------------------------------

    def note(self, name: str, tensor: Any) -> None:
        """Measure a tensor of a Cell, or the array of a sum of gradients."""
        self._values[name] = self._numbers.norm(tensor)
        if self._has_parameters:
            self._values.update(
                (f"{name}.{end}", value) for end, value in self._numbers.ends(tensor).items()
            )

    def differentiated(self, output: Any) -> None:
        """Keep the loss until the end of the step: the first output, if it is one number."""
        with self._errors.guard("noting the loss"):
            first = next((leaf for leaf in leaves(output) if isinstance(leaf, self._tensor)), None)
            if (
                first is not None
                and element_count(first) == 1
                and all(first is not output for output in self._outputs)
            ):
                self._outputs.append(first)
                if self._scale is not None:
                    self._scales[len(self._outputs) - 1] = self._scale
            self._scale = None

    def scaled(self, scale: Any) -> None:
        """Note the loss scale of the next step."""
        self._numbers.ready()
        with self._errors.guard("reading the loss scale"):
            self._values["loss_scale"] = self._numbers.number(scale)

    def scales(self, scale: Any) -> None:
        """Note the scale by which the running function multiplies its loss."""
        self._scale = scale

    def before_adjust(self) -> None:
        """Read the scales of the losses: the scaler may change them now."""
        for place, scale in self._scales.items():
            if isinstance(scale, self._tensor):
                self._numbers.ready()
                with self._errors.guard("reading the loss scale"):
                    self._scales[place] = self._numbers.number(scale)

    def gradients(self, arrived: Sequence[tuple[str, Any]]) -> None:
        """Measure gradients that arrived."""
        self._numbers.ready()
        for name, gradient in arrived:
            with self._guard(name):
                self.note(f"{name}.grad", gradient)

    def before_update(self, name: str, optimizer: OptimizerValues, gradients: Any) -> None:
        """Measure the gradients that enter an optimizer, and note its numbers."""
        self._numbers.ready()
        with self._errors.guard("reading the gradients of an optimizer", name):
            given = [leaf for leaf in leaves(gradients) if isinstance(leaf, self._tensor)]
            entered = self._entered[name] = {}
            entered.update(zip(optimizer.parameters, map(self._numbers.norm, given)))
        with self._errors.guard("reading the numbers of an optimizer", name):
            self._values.update(_flat(name, optimizer.scalars(self._numbers.number)))
        if self._has_parameters:
            with self._errors.guard("copying parameters", name):
                self._before.update(
                    (key, self._numbers.copy(value)) for key, value in optimizer.parameters.items()
                )

    def after_update(self, name: str, optimizer: OptimizerValues) -> None:
        """Measure parameters, their updates and states."""
        if not self._has_parameters:
            return
        self._numbers.ready()
        with self._errors.guard("reading the parameters of an optimizer", name):
            for key, parameter in optimizer.parameters.items():
                self._values[f"{key}.param"] = self._numbers.norm(parameter)
                if (before := self._before.pop(key, None)) is not None:
                    self._values[f"{key}.update"] = self._numbers.change(parameter, before)
            for key, state in optimizer.states.items():
                self._values[f"{name}.{key}"] = self._numbers.norm(state)


def _flat(name: str, scalars: Mapping[str, Any]) -> dict[str, Number]:
    found = {f"{name}.{key}": value for key, value in scalars.items() if _is_series(key, value)}
    for place, group in enumerate(scalars.get("groups", ())):
        found.update(
            (f"{name}.{key}.{place}", value)
            for key, value in group.items()
            if _is_series(key, value)
        )
    return found


def _is_series(key: str, value: Any) -> bool:
    # an optimizer with a loss scale of 1 has none; a loss scaler may have one
    is_none = key in _NO_SERIES or (key, value) == ("loss_scale", 1.0)
    return not is_none and isinstance(value, (int, float, Later)) and not isinstance(value, bool)

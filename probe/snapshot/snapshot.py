# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Writes run.json at the first start, and a line of run.jsonl for each step's inputs, optimizer and note.

run.json has the circumstances of the process: its command, code, packages, environment, and MindSpore's context.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import sys
import weakref
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from probe.errors import UsageError
from probe.executor import living
from probe.layers.layer import held_by, layer_of, layers
from probe.measure.dtype_name import dtype_name
from probe.measure.measurer import Role
from probe.measure.statistics import crc32
from probe.measure.tensor_reader import Array, layout_of, local_tensor, to_numpy
from probe.parameter_names import ParameterNames
from probe.pytree import tree_map
from probe.snapshot.secrets import is_secret, to_json, without_secrets, words_without_secrets
from probe.store import file_io, file_names
from probe.store.documents import encode
from probe.store.error_log import ErrorGuard

Header = Callable[[], Mapping[str, Any]]
NamedCells = Iterable[tuple[str, Any]]
_PLAIN = frozenset((bool, int, float, str))  # the types of a Cell's values that are noted
_WORDS = {
    width: np.dtype(f"u{width}") for width in (1, 2, 4, 8)
}  # the unsigned numbers of so many bytes
_MOST_NOTE = 1_000_000  # most characters of a note
_MOST_TEXT = 200  # most characters of an argument that is no number
_MOST_FUNCTIONS = 16  # at most so many gradient functions of a step have their arguments noted
#: the variables of the environment that are noted begin with one of these
_PREFIXES = tuple(
    "MS_ MINDSPORE_ HCCL_ ASCEND_ ATB_ ACLNN_ GLOG_ OMP_ OPENBLAS_ MKL_ PYTHONHASHSEED RANK DEVICE_ID".split()
)
_CONTEXT = "mode device_target jit_level deterministic pynative_synchronize".split()
_PACKAGE = re.compile(r"(.+?)-(.+?)(?:-py\d[\d.]*)?\.(?:dist-info|egg-info)")
_SITE = "site-packages"
_MOST_FILES = 300  # at most so many files of the training's code have a checksum


class _Modes:
    """The Cells of the model in this step, and the paths of those that were not in training mode last."""

    def __init__(self) -> None:
        self.live: list[tuple[str, Any]] = []
        self.evaluating: list[str] = []

    def change(self) -> dict[str, Any]:
        """Return which Cells are not in training mode, if these are others than before."""
        evaluating = [path for path, cell in self.live if not getattr(cell, "training", True)]
        if evaluating == self.evaluating:
            return {}
        self.evaluating = evaluating
        return {"evaluating": evaluating}


class Snapshot:
    """The snapshot of one process."""

    def __init__(self) -> None:
        self.wants_inputs = False  # the inputs of the model were not noted yet in this step
        self._folder = ""
        self._step = -1
        self._queue: Callable[[], Any] = type(None)  # the snapshot outlives the step
        self._read: Callable[[Any], Array] = to_numpy
        self._notes: list[dict[str, Any]] = []
        self._waiting: list[dict[str, Any]] = []
        self._optimizers: set[int] = set()
        self._outside: set[str] = set()  # the parameters outside of the models that were noted
        self._modes = _Modes()
        self._functions = 0  # how many gradient functions were noted in this step
        self._surroundings: Surroundings | None = None
        self._found: dict[
            str, Any
        ] = {}  # what run.json says, and the Cells in it, until the first step ends
        self._cells: set[int] = set()
        #: of the parameters in run.json, which are held until then: their values; the names of those that are trained
        self._values: dict[int, tuple[Any, Any]] = {}
        self._trained: dict[int, str] = {}
        self._updated: set[int] = set()  # the parameters of the updates of the first step

    def prepare(self) -> None:
        """Read what no training changes, before the training. If it fails, ``begin`` reports it."""
        with ErrorGuard(lambda *_: None, "reading the packages"):
            self._surroundings = self._surroundings or Surroundings()

    def begin(
        self,
        queue: Any,
        folder: str,
        step: int,
        read: Callable[[Any], Array],
        header: Header,
        cells: NamedCells,
    ) -> None:
        """Begin a step with its queue and folder. The first one writes run.json."""
        if queue is self._queue():
            if self._found:
                self._modes.live = list(cells)
                is_new = self._cells < {id(cell) for _, cell in self._modes.live}
                if (
                    is_new or not self._found["parameters"]
                ):  # `probe run` finds a model, or the rest of it, by its call
                    self._write_run(self._folder, self._found, self._modes.live)
            return
        self._queue = weakref.ref(queue)
        self._read = read
        self._step = step
        self.wants_inputs = True
        self._functions = 0
        self._modes.live = list(cells)
        root = os.path.dirname(os.path.dirname(folder))
        if self._folder.startswith(f"{root}{os.sep}") and os.path.exists(
            os.path.join(self._folder, file_names.RUN)
        ):
            return
        self._folder = ""
        self._modes.evaluating = []
        self._forget_parameters()
        found = {
            **header(),
            **(self._surroundings or Surroundings()).now(),
            "first_step": step,
            "dump_path": root,
        }
        file_io.make_dirs(folder)
        file_io.write(os.path.join(folder, file_names.RUN_LINES))  # another run's lines go
        self._write_run(folder, found, self._modes.live)
        self._folder = folder
        self._found = found
        self._optimizers.clear()
        self._outside.clear()
        for note in self._notes:
            self._append({"note": note})

    def _write_run(self, folder: str, found: dict[str, Any], cells: list[tuple[str, Any]]) -> None:
        """Write run.json. Parameters that it has already keep the values that they had then."""
        found["cells"] = [[path, type(cell).__name__] for path, cell in cells]
        found["cell_values"] = _values(cells)
        found["parameters"] = self._parameters(cells)
        with file_io.atomic_write(os.path.join(folder, file_names.RUN)) as file:
            file.write(self._text(found))
        self._cells = {id(cell) for _, cell in cells}

    def _parameters(self, cells: NamedCells) -> dict[str, Any]:
        """Return a description of each parameter by its name; values of an earlier answer are kept."""
        found: dict[str, Any] = {}
        self._trained = {}
        for name, path, parameter in ParameterNames(cells).owned:
            if parameter.requires_grad:
                self._trained[id(parameter)] = name
            known = self._values.get(id(parameter))
            if known is None:
                known = self._values[id(parameter)] = parameter, self._described(parameter, name)
            found[name] = {
                "cell": path,
                "trainable": bool(parameter.requires_grad),
                "values": known[1],
            }
        return found

    def _described(self, parameter: Any, name: str) -> Any:
        is_made = not getattr(parameter, "has_init", False)
        return self._tensor(parameter, name) if is_made else {"shape": list(parameter.shape)}

    def _tensor(self, tensor: Any, place: str) -> Any:
        """Return dtype, shape and checksums of a tensor; where it cannot be read now, its record."""
        if not (queue := self._queue()).may_read:
            return queue.measure(tensor, place, None, Role.INPUT)
        local = local_tensor(tensor)
        array = self._read(local)
        dtype = dtype_name(local.dtype)
        known = {
            "dtype": dtype,
            "shape": list(array.shape),
            "crc": crc32(array),
            "sum": sum_of_bits(array),
        }
        return known if local is tensor else {**known, "layout": layout_of(tensor)}

    def _text(self, found: dict[str, Any]) -> str:
        """Return the text of a document, a key a line, when the records in it are complete."""
        queue = self._queue()
        if queue is not None and not queue.may_read:
            queue.flush()
        made = json.JSONEncoder(default=lambda record: json.loads(record.text(""))).encode
        return (
            "{"
            + ",\n ".join(f"{json.dumps(key)}: {made(value)}" for key, value in found.items())
            + "}\n"
        )

    def inputs(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Note the values that enter the model, once in a step."""
        self.wants_inputs = False
        inputs = self._values_of(args, kwargs)
        self._append({"step": self._step, "inputs": inputs, **self._modes.change()})

    @property
    def wants_arguments(self) -> bool:
        """Whether the arguments of the next gradient function of this step are noted."""
        return self._functions < _MOST_FUNCTIONS

    def arguments(
        self, function: str, names: Sequence[str], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> None:
        """Note the values that enter a function that is differentiated: labels and masks do not enter the model."""
        self._functions += 1
        found = self._values_of(args, kwargs)
        named = {"names": list(names[: len(args)])} if names else {}
        self._append({"step": self._step, "function": function, **named, "arguments": found})

    def _values_of(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call by place or name, each as a value of JSON."""
        from mindspore import Parameter, Tensor

        def describe(leaf: Any, place: str) -> Any:
            if isinstance(leaf, Parameter):
                return f"parameter {leaf.name}"  # it is no batch, and run.json has its checksum
            return self._numbers(leaf, place) if isinstance(leaf, Tensor) else _plain(leaf)

        named = {**{str(place): value for place, value in enumerate(args)}, **kwargs}
        return {key: tree_map(describe, value, key, Tensor) for key, value in named.items()}

    def _numbers(self, tensor: Any, place: str) -> Any:
        """Return the checksums of a tensor with its statistics, by which a dump tells the call that made it."""
        known = self._tensor(tensor, place)
        if not isinstance(known, dict):
            return known
        record = self._queue().measure(tensor, place, None, Role.INPUT)
        return {**json.loads(record.text("")), **known}

    def optimizer(self, optimizer: Any, key: str, numbers: Mapping[str, Any]) -> None:
        """Note the numbers of an optimizer at its first update."""
        self._append({"step": self._step, "optimizer": key, "numbers": to_json(numbers)})
        self._optimizers.add(id(optimizer))

    def outside(self, kind: str, parameters: list[str]) -> None:
        """Note a Cell of a class that a step calls outside of the models, with its trainable parameters: once each."""
        new = [name for name in parameters if name not in self._outside]
        if new and self._folder:
            self._outside.update(new)
            self._append({"step": self._step, "outside": kind, "parameters": new})

    def other_model(self, kind: str) -> None:
        """Note that the step has another model of a class than before, with which it shares no Cell."""
        self._append({"step": self._step, "model": kind})

    def updated(self, key: str, parameters: Mapping[str, Any]) -> None:
        """Note the CRC-32 of each parameter, by its name, after an update, where reading waits for no device."""
        if self._found:
            self._updated.update(map(id, parameters.values()))
        queue = self._queue()
        if not self._folder or queue is None or not queue.may_read:
            return
        made = {name: it for name, it in parameters.items() if not getattr(it, "has_init", False)}
        crcs = {name: crc32(self._read(local_tensor(it))) for name, it in made.items()}
        self._append({"step": self._step, "updated": key, "crc": crcs})

    def lacks(self, optimizer: Any) -> bool:
        """Return whether an optimizer was not noted."""
        return bool(self._folder) and id(optimizer) not in self._optimizers

    def note(self, values: Mapping[str, Any]) -> None:
        """Note values of the user's own; raise UsageError without values."""
        if not values:
            raise UsageError("note(): give it values by name, as debugger.note(learning_rate=3e-4)")
        for name, value in values.items():
            note = {name: to_json(value, name)}
            if (size := len(json.dumps(note))) > _MOST_NOTE:
                note = {name: f"cut: it has {size} characters, and a note may have {_MOST_NOTE}"}
            self._notes.append(note)
            self._append({"note": note})

    def end_step(self) -> None:
        """Write what waited for the device."""
        if self._found and (idle := self._idle()):
            self._append({"step": self._step, "idle": idle})
        self._found = {}
        self._modes.live = []
        self._forget_parameters()
        waiting = self._waiting
        self._waiting = []
        for line in waiting:
            self._write(line)

    def _forget_parameters(self) -> None:
        self._values = {}
        self._trained = {}
        self._updated = set()

    def _idle(self) -> list[str]:
        """Return the parameters of optimizers that have not updated them in this step."""
        from mindspore import experimental, nn

        left = {
            identity: name
            for identity, name in self._trained.items()
            if identity not in self._updated
        }
        if not left:
            return []
        above = (kind for layer in layers() for kind in layer.optimizers)
        optimizers = living(nn.Optimizer, experimental.optim.Optimizer, *above)
        held = {id(parameter) for optimizer in optimizers for parameter in held_by(optimizer)}
        return [name for identity, name in left.items() if identity in held]

    def _append(self, line: dict[str, Any]) -> None:
        queue = self._queue()
        if self._folder and queue is not None and not queue.may_read:
            self._waiting.append(line)  # within a step nothing waits for a device
        elif self._folder:
            self._write(line)

    def _write(self, line: dict[str, Any]) -> None:
        text = "".join(map(str.strip, encode(line, "").split("\n")))
        file_io.append(os.path.join(self._folder, file_names.RUN_LINES), f"{text}\n")


def _plain(value: Any) -> Any:
    """Return a value as JSON; the text of an object is cut, as that of a Cell has a line for each Cell below."""
    found = to_json(value)
    return found[:_MOST_TEXT] if isinstance(found, str) else found


def _values(cells: NamedCells) -> dict[str, dict[str, Any]]:
    """Return the numbers and texts that each Cell keeps beside those of every Cell, such as the rate of a dropout."""
    found: dict[str, dict[str, Any]] = {}
    for path, cell in cells:
        known = vars(cell)
        layer = layer_of(cell)
        common = layer.own_values - {"training"} if layer is not None else frozenset()
        values = found.setdefault(path, {})
        for name in sorted(known.keys() - common):
            if type(known[name]) in _PLAIN and name[0] != "_":
                values[name] = to_json(known[name], name)
    return found


def sum_of_bits(array: Array) -> int:
    """Return the sum of the elements' bits, without overflow bits: equal for the same elements in another order.

    >>> sum_of_bits(np.array([1, 2], np.int8)), sum_of_bits(np.array([2, 1], np.int8))
    (3, 3)
    """
    width = min(array.dtype.itemsize, 8)
    words = np.ascontiguousarray(array).reshape(-1).view(_WORDS[width])
    return int(np.add.reduce(words, dtype=_WORDS[max(width, 4)]))


class Surroundings:
    """The circumstances of this process. All that no training changes is read when the object is made."""

    def __init__(self) -> None:
        script = Path(os.path.abspath(sys.argv[0] or "."))
        self._folder = str(script.parent)
        self._modules = set(sys.modules)
        self._files = _checksums(self._folder, self._modules)
        self._fixed = {
            "command": words_without_secrets(sys.argv),
            "host": platform.node(),
            "python": platform.python_version(),
            "packages": _packages(),
            "commit": next(filter(None, map(_commit, script.parents)), None),
        }

    def now(self) -> dict[str, Any]:
        """Return the circumstances, without secrets. Modules that came later are looked at now."""
        import mindspore

        fixed = dict(self._fixed)
        names = [name for name in sorted(os.environ) if name.startswith(_PREFIXES)]
        self._files.update(_checksums(self._folder, sys.modules.keys() - self._modules))
        self._modules.update(sys.modules)
        return {
            "folder": without_secrets(os.getcwd()),
            "process": os.getpid(),
            "code": {
                "commit": fixed.pop("commit"),
                "files": dict(sorted(self._files.items())[:_MOST_FILES]),
            },
            **fixed,
            "context": {key: mindspore.get_context(key) for key in _CONTEXT},
            "environment": {
                name: without_secrets(os.environ[name]) for name in names if not is_secret(name)
            },
        }


def _checksums(folder: str, names: Iterable[str]) -> dict[str, str]:
    """Return a checksum of the file of each module that lies in a folder, by the file's path there."""
    beginning = f"{folder}{os.sep}"
    modules = [sys.modules.get(name) for name in names]
    files = [vars(module).get("__file__") for module in modules if isinstance(module, ModuleType)]
    own = sorted(
        file
        for file in files
        if type(file) is str and file.startswith(beginning) and _SITE not in file
    )
    paths = {
        os.path.relpath(file, folder): Path(file)
        for file in own[:_MOST_FILES]
        if os.path.isfile(file)
    }
    return {name: f"{zlib.crc32(path.read_bytes()):08x}" for name, path in paths.items()}


def _commit(folder: Path) -> str | None:
    """Return the commit that is checked out in a folder, by the end of git's log of it; None if it is no repository."""
    git = folder / ".git"
    with contextlib.suppress(OSError, IndexError):
        if git.is_file():  # a further worktree
            git = folder / git.read_text().split(":", 1)[1].strip()
        return (git / "logs" / "HEAD").read_text(errors="replace").splitlines()[-1].split()[1]
    return None


def _packages() -> dict[str, str]:
    """Return package -> version of all that is installed. The names of folders tell them, so that none is opened."""
    found: dict[str, str] = {}
    for folder in filter(os.path.isdir, sys.path):
        names = [name for name in os.listdir(folder) if name.endswith("-info")]
        for match in filter(None, map(_PACKAGE.fullmatch, names)):
            found.setdefault(match[1].lower().replace("_", "-"), match[2])
    return dict(sorted(found.items()))

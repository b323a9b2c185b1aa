# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The settings: one row per setting, msprobe's config.json (or YAML) in, one frozen object or one SettingsError out."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Union

from probe.config import file_reader, validators
from probe.config.messages import nearest, printable, refuse
from probe.config.validators import DATA_MODES, LEVELS, MEASURES, TASKS, ArrayCondition, DimSlice, StepSelection
from probe.errors import SettingsError
from probe.naming import is_full_name

_log = logging.getLogger("probe")

PathLike = Union[str, "os.PathLike[str]"]

#: tasks and levels of msprobe that probe does not have, with the text for the message
_MSPROBE_TASK = "is a task of msprobe that probe does not have."
_MSPROBE_TASKS = {
    **dict.fromkeys("acc_check diff_check exception_dump free_benchmark grad_probe run_ut".split(), _MSPROBE_TASK),
    "overflow_check": f'{_MSPROBE_TASK} For NaN and Inf use "nan_check".',
}
_MSPROBE_LEVELS = {"L2": "(kernels) is a level of msprobe that probe does not have."}
#: further keys of msprobe's settings files: accepted, without effect here
_FOREIGN = frozenset(
    "seed is_deterministic enable_dataloader acl_config run_ut grad_probe free_benchmark overflow_check acc_check "
    "backward_input file_format risk_level custom_op_namespaces load "
    "exception_dump diff_check check_mode error_data_path white_list black_list fuzz_stage fuzz_device fuzz_level "
    "pert_mode handler_type if_preheat preheat_step max_sample pert_type overflow_nums param_list bounds nfs_path "
    "request_id diff_nums device op_debug_mode online_run_ut host port jit_level output_path".split()
)


def _top(validator: validators.Validator) -> dict[str, Any]:
    """Return the metadata of a setting at the top of the file."""
    return {"validator": validator, "tasks": ()}


def _under(validator: validators.Validator, *tasks: str) -> dict[str, Any]:
    """Return the metadata of a setting under a task's name; without ``tasks``, of every task."""
    return {"validator": validator, "tasks": tasks or TASKS}


@dataclass(frozen=True)
class Settings:
    """All settings of one debugger, checked and complete.

    A row names a setting, its default and its validator. Allowed keys and error messages come from the rows alone.

    Attributes:
        task: "statistics", "tensor" (arrays too), "structure" (names, stacks and the tree of Cells only), or
            "nan_check" (the first call that makes NaN/Inf, and the calls before it).
        dump_path: absolute folder of the dump.
        rank: ranks that record; empty means all.
        step: steps that are recorded; empty means all.
        level: "L0" (Cells), "L1" (APIs and Primitives), "mix" (both) or "debug" (values that are given to ``save``).
        extra_info: whether stack.json and construct.json are written.
        support_ops: a file that replaces the shipped list of APIs, or None.
        overwrite: whether another run's dump in dump_path is replaced instead of refused.
        synchronize: whether PyNative is made to run synchronously, which makes a dump of small operations cheaper.
        measure: where statistics are computed: on the "host", on the "device", or "auto": on the host for CPU only.
        max_disk: most bytes of arrays that this process may write; None for no limit.
        async_dump: accepted; without effect where statistics are computed on the host.
        precision: accepted; statistics are always of the high one.
        exact_dtypes: whether bfloat16 arrays are stored as bfloat16 instead of as float32.
        dump_enable: whether anything is recorded now; the settings file is read again after an edit.
        quiet: whether the line at the end of the process is left out, which says where the dump is.
        scope: no names, or the two full names that begin and end the recording.
        list: substrings of names, or "name-regex(…)"; empty means every name.
        exclude: like ``list``, for calls that are not recorded.
        tensor_list: like ``list``, for calls whose arrays are saved although the task is "statistics".
        data_mode: subset of forward, backward, input, output: the keys that an entry has.
        summary_mode: "statistics", "md5" for a CRC-32 of the bytes in addition, or a choice of ``STATISTICS``.
        when: condition on arrays: of those that task and tensor_list ask for, only these are written; None for all.
        sample_mode: 1 writes ``sample_num`` elements of each array, evenly spaced, in place of all.
        sample_num: see ``sample_mode``.
        slice: ranges of dimensions that are written; sampling comes after it.
        last_calls: task "nan_check": number of calls before the finding that are written.
        on_nan: task "nan_check": whether the training then goes on ("continue") or ends ("raise").
        max_hits: task "nan_check": number of findings after which watching ends, at most one per step; 0: no limit.
    """

    task: str = field(default="statistics", metadata=_top(validators.choice(*TASKS, msprobe=_MSPROBE_TASKS)))
    dump_path: str = field(default="./dump_path", metadata=_top(validators.dump_path))
    rank: frozenset[int] = field(default=frozenset(), metadata=_top(validators.numbers))
    step: frozenset[int] | StepSelection = field(default=frozenset(), metadata=_top(validators.steps))
    level: str = field(default="L1", metadata=_top(validators.choice(*LEVELS, msprobe=_MSPROBE_LEVELS)))
    extra_info: bool = field(default=True, metadata=_top(validators.boolean))
    support_ops: str | None = field(default=None, metadata=_top(validators.path))
    overwrite: bool = field(default=False, metadata=_top(validators.boolean))
    synchronize: bool = field(default=False, metadata=_top(validators.boolean))
    measure: str = field(default="auto", metadata=_top(validators.choice(*MEASURES)))
    max_disk: int | None = field(default=None, metadata=_top(validators.size))
    async_dump: bool = field(default=False, metadata=_top(validators.boolean))
    precision: str = field(default="high", metadata=_top(validators.choice("high", "low")))
    exact_dtypes: bool = field(default=False, metadata=_top(validators.boolean))
    dump_enable: bool = field(default=True, metadata=_top(validators.boolean))
    quiet: bool = field(default=False, metadata=_top(validators.boolean))

    scope: tuple[str, ...] = field(default=(), metadata=_under(validators.names))
    list: tuple[str, ...] = field(default=(), metadata=_under(validators.patterns))
    exclude: tuple[str, ...] = field(default=(), metadata=_under(validators.patterns))
    tensor_list: tuple[str, ...] = field(default=(), metadata=_under(validators.patterns))
    data_mode: frozenset[str] = field(default=frozenset(DATA_MODES[1:]), metadata=_under(validators.modes))
    summary_mode: str | tuple[str, ...] = field(default="statistics", metadata=_under(validators.summary))
    when: ArrayCondition | None = field(default=None, metadata=_under(validators.condition))
    sample_mode: int = field(default=0, metadata=_under(validators.sample_mode))
    sample_num: int = field(default=100, metadata=_under(validators.count))
    slice: tuple[DimSlice, ...] = field(default=(), metadata=_under(validators.pieces))
    last_calls: int = field(default=10, metadata=_under(validators.count, "nan_check"))
    on_nan: str = field(default="continue", metadata=_under(validators.choice("continue", "raise"), "nan_check"))
    max_hits: int = field(default=1, metadata=_under(validators.count, "nan_check"))

    @property
    def saves_arrays(self) -> bool:
        """Whether any array can be written under these settings."""
        return self.task in ("tensor", "nan_check") or bool(self.tensor_list)

    @property
    def checksums(self) -> bool:
        """Whether records carry a CRC-32."""
        return "md5" in ((self.summary_mode,) if isinstance(self.summary_mode, str) else self.summary_mode)

    @property
    def cells(self) -> bool:
        """Whether Cells are recorded."""
        return self.level in ("L0", "mix")

    @property
    def apis(self) -> bool:
        """Whether APIs, Primitives and jit calls are recorded."""
        return self.level in ("L1", "mix")


_Rows = Mapping[str, validators.Validator]
#: the settings at the top of the file, and those under each task's name, with their validators
TOP_ROWS: _Rows = {row.name: row.metadata["validator"] for row in fields(Settings) if not row.metadata["tasks"]}
TASK_ROWS: Mapping[str, _Rows] = {
    task: {row.name: row.metadata["validator"] for row in fields(Settings) if task in row.metadata["tasks"]}
    for task in TASKS
}


def load(config_path: PathLike | None = None, **arguments: Any) -> Settings:
    """Read a settings file, let the given arguments win over it, and check both.

    Args:
        config_path: a .json, .yaml or .yml file; None takes the defaults.
        **arguments: values for the keys at the top of the file; None counts as not given.

    Returns:
        The complete settings.

    Raises:
        SettingsError: naming the file, the key, the value given, the allowed values and the nearest right spelling.
            For a file that cannot be parsed it names the line and the remedy.
    """
    given = {key: value for key, value in arguments.items() if value is not None}
    values: dict[str, Any] = {}
    sections: dict[str, dict[str, Any]] = {}
    file = "" if config_path is None else validators.path("config_path", config_path)
    if file:
        content = _read(file)
        with _errors_about(file):
            values, sections = _validated(content, file)
    values.update(_section(given, TOP_ROWS, "", []))
    if "dump_path" not in values:
        values["dump_path"] = validators.dump_path("dump_path", Settings.dump_path)
    values.update(sections.get(values.get("task", Settings.task), {}))
    with _errors_about(f"{file} with the given {', '.join(given)}" if file and given else file):
        return _combined(Settings(**values))


def _read(file: str) -> dict[Any, Any]:
    if not file.lower().endswith(file_reader.ENDINGS):
        refuse("config_path", file, "a .json, .yaml or .yml file")
    data = file_reader.read_bytes("config_path", file)
    with _errors_about(file):
        return file_reader.parse(data, is_json=file.lower().endswith(".json"))


@contextlib.contextmanager
def _errors_about(place: str) -> Iterator[None]:
    """Put a place in front of every settings error. Turn all other exceptions into one: no file may end a training."""
    try:
        yield
    except SettingsError as error:
        error.args = (f"{printable(place)}: {error}" if place else str(error),)
        raise
    except Exception as error:
        text = printable(f"{type(error).__name__}: {error}")
        raise SettingsError(f"{printable(place)}: the settings cannot be used: {text}") from error


def _validated(content: Mapping[Any, Any], file: str) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Return the checked values at the top of a file, and those under each task's name."""
    unserved: list[str] = []
    top = _section(content, TOP_ROWS, "", unserved)
    under = {}
    for task, rows in TASK_ROWS.items():
        section = content.get(task)
        if section is not None and not isinstance(section, Mapping):
            refuse(task, section, "an object with the keys " + ", ".join(rows))
        under[task] = _section(section or {}, rows, task, unserved)
    if unserved:
        names = ", ".join(sorted(unserved))
        _log.warning("%s: these keys of msprobe have no effect in probe: %s", printable(file), names)
    return top, under


def _section(given: Mapping[Any, Any], rows: _Rows, task: str, unserved: list[str]) -> dict[str, Any]:
    """Return the checked values of one section; ``task`` is its name, or empty for the top of the file."""
    values: dict[str, Any] = {}
    for key, value in given.items():
        if key in rows:
            if value is not None:  # msprobe's users write null for the default
                values[key] = rows[key](_dotted(task, key), value)
        elif key in _FOREIGN:
            if value not in (None, False, [], {}):
                unserved.append(_dotted(task, key))
        elif task or key not in TASKS:
            _refuse_key(key, rows, task)
    return values


def _dotted(task: str, key: str) -> str:
    return f"{task}.{key}" if task else key


def _refuse_key(key: Any, rows: _Rows, task: str) -> None:
    """Raise for a key that is unknown, or in the wrong place."""
    here = [*rows] if task else [*rows, *TASKS]
    elsewhere = {name: _place(name) for name in [*(f.name for f in fields(Settings)), *TASKS] if name not in here}
    if key in elsewhere:
        raise SettingsError(f"{_dotted(task, key)}: wrong place. The key {key!r} belongs {elsewhere[key]}.")
    guess = nearest(key, [*here, *elsewhere])
    hint = f" Did you mean {guess!r}, {elsewhere[guess]}?" if guess in elsewhere else ""
    try:
        refuse(f"unknown key in {task or 'the settings'}", key, ", ".join(here), key, () if hint else here)
    except SettingsError as error:
        error.args = (f"{error}{hint}",)
        raise


def _place(key: str) -> str:
    """Return where a setting belongs, for messages."""
    tasks = [task for task, rows in TASK_ROWS.items() if key in rows]
    if not tasks:
        return "at the top of the file"
    example = f'{{"{tasks[0]}": {{"{key}": ...}}}}'
    return f"under the name of the task, as in {example}" if len(tasks) > 1 else f"under {tasks[0]!r}: {example}"


def _combined(settings: Settings) -> Settings:
    """Check settings against each other."""
    task = settings.task
    if task == "structure" and settings.level == "L1":
        _log.warning('task "structure" needs the Cells: level "L1" becomes "mix"')
        settings = replace(settings, level="mix")
    _check_scope(settings)
    if task == "nan_check" and len(settings.data_mode) != len(DATA_MODES) - 1:
        refuse("nan_check.data_mode", sorted(settings.data_mode), "['all']: nan_check looks at every input and output")
    if settings.async_dump and settings.checksums:
        refuse("async_dump", True, 'false where summary_mode is or has "md5"')
    if settings.level == "debug" and task not in TASKS[:2]:
        refuse("task", task, '"statistics" and "tensor" at level "debug"')
    return settings


#: full names, as messages show them
_FULL_NAMES = {
    "L0": "Cell.fc.Dense.forward.0",
    "L1": "Functional.relu.0.forward",
    "mix": "Functional.relu.0.forward or Cell.fc.Dense.forward.0",
}


def _check_scope(settings: Settings) -> None:
    if not settings.scope or settings.level == "debug":
        return
    key, level = f"{settings.task}.scope", settings.level
    if len(settings.scope) != 2:
        refuse(key, [*settings.scope], "two full names: the first and the last call to record")
    for name in settings.scope:
        if not is_full_name(name, level):
            refuse(key, name, f"at level {level} a full name such as {_FULL_NAMES[level]}")

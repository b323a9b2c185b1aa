# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The settings: msprobe's config.json (or the same as YAML) as one frozen object, or one clear error."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Union

from probe.config.validators import (
    DATA_MODES,
    LEVELS,
    MEASURES,
    TASKS,
    ArrayCondition,
    DimSlice,
    StepSelection,
    boolean,
    choice,
    condition,
    count,
    dump_path,
    modes,
    names,
    numbers,
    path,
    patterns,
    pieces,
    refuse,
    sample_mode,
    size,
    steps,
    summary,
)
from probe.errors import SettingsError
from probe.naming import is_full_name

_log = logging.getLogger("probe")

PathLike = Union[str, "os.PathLike[str]"]


@dataclass(frozen=True)
class Settings:
    """Everything that one debugger was told, checked and complete.

    Attributes:
        task: "statistics", "tensor" (arrays too), "structure" (names, stacks and the tree only), or "nan_check" (the
            first call that makes what is not finite, and those before it).
        dump_path: absolute folder that the dump goes to.
        rank: ranks that record; empty means all.
        step: steps that are recorded; empty means all.
        level: "L0" (Cells), "L1" (APIs and Primitives), "mix" (both) or "debug" (what is given to ``save``).
        extra_info: whether stack.json and construct.json are written.
        scope: no names, or the two full names that begin and end the recording.
        list: substrings of names, or "name-regex(…)"; empty means every name.
        exclude: the same, for what is not recorded.
        tensor_list: the same, for the names whose arrays are saved although the task is "statistics".
        data_mode: subset of forward, backward, input, output: the keys that an entry has.
        summary_mode: "statistics", "md5" for a CRC-32 of the bytes in addition, or a choice of ``STATISTICS``.
        support_ops: a file that replaces the shipped list of APIs, or None.
        overwrite: whether another run's dump in dump_path is replaced instead of refused.
        synchronize: whether PyNative is made to run synchronously, which makes a dump of small operations cheaper.
        measure: where statistics are computed: on the "host", on the "device", or "auto": on the host for CPU only.
        max_disk: how many bytes of arrays this process may write in all; None for as many as there is room for.
        async_dump: whether a step's tensors are copied and measured when it ends, instead of at once.
        precision: accepted; statistics are always of the high one.
        when: which arrays are written, of those that the task and tensor_list ask for; None for all.
        sample_mode: 1 writes ``sample_num`` elements of each array, evenly spaced, in place of all.
        sample_num: see ``sample_mode``.
        slice: which stretches of its dimensions are written; sampling comes after it.
        last_calls: task "nan_check": how many calls before it are written.
        on_nan: task "nan_check": whether the training then goes on ("continue") or not ("raise").
        exact_dtypes: whether bfloat16 arrays are stored as they are instead of as float32.
        dump_enable: whether anything is recorded now; the settings file is read again where it changed.
    """

    task: str = "statistics"
    dump_path: str = "./dump_path"
    rank: frozenset[int] = frozenset()
    step: frozenset[int] | StepSelection = frozenset()
    level: str = "L1"
    extra_info: bool = True
    scope: tuple[str, ...] = ()
    list: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    tensor_list: tuple[str, ...] = ()
    data_mode: frozenset[str] = frozenset(DATA_MODES[1:])
    summary_mode: str | tuple[str, ...] = "statistics"
    support_ops: str | None = None
    overwrite: bool = False
    synchronize: bool = False
    measure: str = "auto"
    max_disk: int | None = None
    async_dump: bool = False
    precision: str = "high"
    when: ArrayCondition | None = None
    sample_mode: int = 0
    sample_num: int = 100
    slice: tuple[DimSlice, ...] = ()
    last_calls: int = 10
    on_nan: str = "continue"
    exact_dtypes: bool = False
    dump_enable: bool = True

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


#: The keys that stand at the top of the file, and those that stand under the task's own name.
_COMMON: Mapping[str, Callable[[str, Any], Any]] = {
    "task": choice(*TASKS),
    "dump_path": dump_path,
    "rank": numbers,
    "step": steps,
    "level": choice(*LEVELS),
    "extra_info": boolean,
    "support_ops": path,
    "overwrite": boolean,
    "synchronize": boolean,
    "measure": choice(*MEASURES),
    "max_disk": size,
    "async_dump": boolean,
    "precision": choice("high", "low"),
    "exact_dtypes": boolean,
    "dump_enable": boolean,
}
_TASK: Mapping[str, Callable[[str, Any], Any]] = {
    "scope": names,
    "list": patterns,
    "exclude": patterns,
    "tensor_list": patterns,
    "data_mode": modes,
    "summary_mode": summary,
    "when": condition,
    "sample_mode": sample_mode,
    "sample_num": count,
    "slice": pieces,
}
_NAN_CHECK = {**_TASK, "last_calls": count, "on_nan": choice("continue", "raise")}
#: What msprobe's own settings files hold beyond that: accepted, without effect here.
_FOREIGN = frozenset(
    "seed is_deterministic enable_dataloader acl_config run_ut grad_probe free_benchmark overflow_check acc_check "
    "backward_input file_format risk_level custom_op_namespaces load "
    "exception_dump diff_check check_mode error_data_path white_list black_list fuzz_stage fuzz_device fuzz_level "
    "pert_mode handler_type if_preheat preheat_step max_sample pert_type overflow_nums param_list bounds nfs_path "
    "request_id diff_nums device op_debug_mode online_run_ut host port jit_level output_path".split()
)


def load(config_path: PathLike | None = None, **arguments: Any) -> Settings:
    """Read a settings file, let the given arguments win over it, and check both.

    Args:
        config_path: a .json, .yaml or .yml file; None takes the defaults.
        **arguments: values for the keys at the top of the file; None counts as not given.

    Returns:
        The complete settings.

    Raises:
        SettingsError: naming the key, the value given, what is allowed and the nearest right spelling; for a
            file that cannot be parsed, the line and the column.
    """
    given = {} if config_path is None else _read(config_path)
    given.update({key: value for key, value in arguments.items() if value is not None})
    unserved: list[str] = []
    values = _parse(given, _COMMON, "", (*_COMMON, *TASKS), unserved)
    task = values.get("task", Settings.task)
    for name in TASKS:
        section = given.get(name)
        known = _NAN_CHECK if name == "nan_check" else _TASK
        if section is not None and not isinstance(section, Mapping):
            refuse(name, section, "an object with the keys " + ", ".join(known))
        parsed = _parse(section or {}, known, f"{name}.", tuple(known), unserved)
        if name == task:
            values.update(parsed)
    if unserved:
        _log.warning("%s: without effect in probe: %s", config_path or "settings", ", ".join(sorted(unserved)))
    settings = Settings(**{"dump_path": os.path.realpath(Settings.dump_path), **values})
    if task == "structure" and settings.level == "L1":
        _log.warning('task "structure" needs the Cells: level "L1" becomes "mix"')
        settings = replace(settings, level="mix")
    _check_scope(task, settings)
    if task == "nan_check" and len(settings.data_mode) != len(DATA_MODES) - 1:
        refuse("nan_check.data_mode", sorted(settings.data_mode), "'all': what is missing could not be looked at")
    if settings.async_dump and settings.checksums:
        refuse("async_dump", True, 'false where summary_mode is or has "md5"')
    if settings.level == "debug" and task not in TASKS[:2]:
        refuse("task", task, '"statistics" and "tensor" at level "debug"')
    return settings


def _parse(
    given: Mapping[Any, Any],
    known: Mapping[str, Callable[[str, Any], Any]],
    where: str,
    spellings: tuple[str, ...],
    unserved: list[str],
) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in given.items():
        if key in known:
            if value is not None:  # msprobe's users write null for "as by default"
                values[key] = known[key](where + key, value)
        elif key in _FOREIGN:
            if value not in (None, False, [], {}):
                unserved.append(where + key)
        elif key not in spellings:
            refuse(f"unknown key in {where[:-1] or 'the settings'}", key, ", ".join(spellings), str(key), spellings)
    return values


def _check_scope(task: str, settings: Settings) -> None:
    if not settings.scope or settings.level == "debug":
        return
    if len(settings.scope) != 2:
        refuse(f"{task}.scope", list(settings.scope), "two full names: the first and the last call to record")
    for name in settings.scope:
        if not is_full_name(name, settings.level):
            forms = {
                "L0": "Cell.fc.Dense.forward.0",
                "L1": "Functional.relu.0.forward",
                "mix": "Functional.relu.0.forward or Cell.fc.Dense.forward.0",
            }
            refuse(f"{task}.scope", name, f"at level {settings.level} a full name such as {forms[settings.level]}")


def _read(config_path: PathLike) -> dict[str, Any]:
    found = path("config_path", config_path)
    if not found.lower().endswith((".json", ".yaml", ".yml")):
        refuse("config_path", config_path, "a .json, .yaml or .yml file")
    try:
        with open(found, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"config_path: {found} cannot be read: {error}") from error
    try:
        given = json.loads(text) if found.lower().endswith(".json") else _yaml(found, text)
    except json.JSONDecodeError as error:
        raise SettingsError(f"{found}: line {error.lineno}, column {error.colno}: {error.msg}") from error
    except RecursionError as error:
        raise SettingsError(f"{found}: nested too deeply") from error
    if not isinstance(given, dict):
        raise SettingsError(f"{found}: {type(given).__name__} is not allowed. Allowed: an object with keys and values.")
    return given


def _yaml(found: str, text: str) -> Any:
    import yaml  # only for those who write YAML

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise SettingsError(f"{found}: {place}{getattr(error, 'problem', None) or error}") from error

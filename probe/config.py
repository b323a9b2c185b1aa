# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The settings: msprobe's config.json (or the same as YAML) as one frozen object, or one clear error."""

from __future__ import annotations

import difflib
import json
import logging
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn, Union

from probe.errors import SettingsError
from probe.naming import is_full_name

_log = logging.getLogger("probe")

TASKS = ("statistics", "tensor", "structure", "nan_check")
LEVELS = ("L0", "L1", "mix", "debug")
DATA_MODES = ("all", "forward", "backward", "input", "output")
SUMMARY_MODES = ("statistics", "md5")
#: a list of these may stand in place of "statistics"
STATISTICS = tuple(
    "max,min,mean,avg,l2norm,count,nan count,negative inf count,positive inf count,negative zero count,zero count,"
    "positive zero count,md5".split(",")
)
MEASURES = ("auto", "host", "device")

PathLike = Union[str, "os.PathLike[str]"]


@dataclass(frozen=True)
class Steps:
    """Some steps, and every N-th.

    >>> 200 in Steps(frozenset({3}), frozenset({100}))
    True
    """

    numbers: frozenset[int]
    every: frozenset[int]

    def __contains__(self, step: int) -> bool:
        return step in self.numbers or any(step % every == 0 for every in self.every)


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
        last_calls: task "nan_check": how many calls before it are written.
        on_nan: task "nan_check": whether the training then goes on ("continue") or not ("raise").
        exact_dtypes: whether bfloat16 arrays are stored as they are instead of as float32.
        dump_enable: whether anything is recorded now; the settings file is read again where it changed.
    """

    task: str = "statistics"
    dump_path: str = "./dump_path"
    rank: frozenset[int] = frozenset()
    step: frozenset[int] | Steps = frozenset()
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


def _refuse(key: str, value: object, allowed: str, near: str = "", spellings: Iterable[str] = ()) -> NoReturn:
    guess = difflib.get_close_matches(str(near), [str(s) for s in spellings], n=1, cutoff=0.5) if near else []
    hint = f" Did you mean {guess[0]!r}?" if guess and guess[0] != value else ""
    raise SettingsError(f"{key}: {value!r} is not allowed. Allowed: {allowed}.{hint}")


def _choice(*allowed: str) -> Callable[[str, Any], str]:
    def parse(key: str, value: Any) -> str:
        if not isinstance(value, str) or value not in allowed:
            _refuse(key, value, ", ".join(map(repr, allowed)), str(value), allowed)
        return value

    return parse


def _boolean(key: str, value: Any) -> bool:
    if not isinstance(value, bool):
        _refuse(key, value, "true, false", str(value).lower(), ("true", "false"))
    return value


def _path(key: str, value: Any) -> str:
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if not isinstance(value, str) or not value or "\0" in value:
        _refuse(key, value, "a path")
    return os.path.abspath(value)


def _dump_path(key: str, value: Any) -> str:
    """Return where a path really leads: the user's own links are followed, later ones are not."""
    return os.path.realpath(_path(key, value))


_SIZE = re.compile(r"\s*(\d{1,15}(?:\.\d{1,6})?)\s*([KMGT]?)B?\s*", re.IGNORECASE)


def _size(key: str, value: Any) -> int:
    """Return a number of bytes.

    >>> _size("max_disk", "1.5GB")
    1500000000
    """
    match = _SIZE.fullmatch(str(value)) if isinstance(value, (str, int)) and not isinstance(value, bool) else None
    size = int(float(match[1]) * 1000 ** (" KMGT".index(match[2].upper() or " "))) if match else 0
    if size <= 0:
        _refuse(key, value, 'a number of bytes, or a text like "500MB" or "200GB"')
    return size


_RANGE = re.compile(r"\s*(\d{1,9})\s*(?:-\s*(\d{1,9})\s*)?")


def _numbers(key: str, value: Any, further: str = "") -> frozenset[int]:
    allowed = f'a list of numbers from 0, texts like "3", and ranges like "4-6"{further}'
    numbers: set[int] = set()
    for item in value if isinstance(value, (list, tuple)) else [value]:
        match = _RANGE.fullmatch(item) if isinstance(item, str) else None
        if isinstance(item, int) and not isinstance(item, bool) and item >= 0:
            numbers.add(item)
        elif match and int(match[2] or match[1]) - int(match[1]) in range(1_000_000):
            numbers.update(range(int(match[1]), int(match[2] or match[1]) + 1))
        else:
            _refuse(key, item, allowed)
    return frozenset(numbers)


def _count(key: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 100_000:
        _refuse(key, value, "a whole number from 0 to 100000")
    return value


_EVERY = re.compile(r"\s*every\s+0*([1-9]\d{0,8})\s*")


def _steps(key: str, value: Any) -> frozenset[int] | Steps:
    items = value if isinstance(value, (list, tuple)) else [value]
    every = [_EVERY.fullmatch(item) if isinstance(item, str) else None for item in items]
    numbers = _numbers(key, [item for item, match in zip(items, every) if match is None], ', and "every 100"')
    found = frozenset(int(match[1]) for match in every if match is not None)
    return Steps(numbers, found) if found else numbers


def _names(key: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(name, str) and name for name in value):
        _refuse(key, value, "a list of names")
    return tuple(value)


def _patterns(key: str, value: Any) -> tuple[str, ...]:
    item = None
    try:
        for item in _names(key, value):
            regex_of(item)
    except (re.error, RecursionError, OverflowError) as error:
        _refuse(key, item, f"texts, and name-regex(...) with a regular expression ({error})")
    return tuple(value)


_NAME_REGEX = re.compile(r"name-regex\((.*)\)", re.DOTALL)


def regex_of(item: str) -> re.Pattern[str] | None:
    """Return the regular expression of an item of the form ``name-regex(…)``, or None for a plain text."""
    match = _NAME_REGEX.fullmatch(item)
    return re.compile(match[1]) if match else None


def _summary(key: str, value: Any) -> str | tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, (list, tuple)):
        if value not in SUMMARY_MODES:
            allowed = "'statistics', 'md5', or a list of " + ", ".join(map(repr, STATISTICS))
            _refuse(key, value, allowed, str(value), SUMMARY_MODES)
        return str(value)
    for item in value or [value]:
        _choice(*STATISTICS)(key, item)
    return tuple(value)


def _modes(key: str, value: Any) -> frozenset[str]:
    for item in _names(key, value):
        _choice(*DATA_MODES)(key, item)
    modes = set(value)
    if "all" in modes and len(modes) > 1:
        _refuse(key, value, "'all' alone, or some of 'forward', 'backward', 'input', 'output'")
    for pair in (DATA_MODES[1:3], DATA_MODES[3:]):
        if modes.isdisjoint(pair):
            modes.update(pair)
    return frozenset(modes - {"all"})


#: The keys that stand at the top of the file, and those that stand under the task's own name.
_COMMON: Mapping[str, Callable[[str, Any], Any]] = {
    "task": _choice(*TASKS),
    "dump_path": _dump_path,
    "rank": _numbers,
    "step": _steps,
    "level": _choice(*LEVELS),
    "extra_info": _boolean,
    "support_ops": _path,
    "overwrite": _boolean,
    "synchronize": _boolean,
    "measure": _choice(*MEASURES),
    "max_disk": _size,
    "async_dump": _boolean,
    "precision": _choice("high", "low"),
    "exact_dtypes": _boolean,
    "dump_enable": _boolean,
}
_TASK: Mapping[str, Callable[[str, Any], Any]] = {
    "scope": _names,
    "list": _patterns,
    "exclude": _patterns,
    "tensor_list": _patterns,
    "data_mode": _modes,
    "summary_mode": _summary,
}
_NAN_CHECK = {**_TASK, "last_calls": _count, "on_nan": _choice("continue", "raise")}
#: What msprobe's own settings files hold beyond that: accepted, without effect here.
_FOREIGN = frozenset(
    "seed is_deterministic enable_dataloader acl_config run_ut grad_probe free_benchmark overflow_check acc_check "
    "backward_input file_format risk_level custom_op_namespaces load "
    "exception_dump diff_check check_mode error_data_path white_list black_list fuzz_stage fuzz_device fuzz_level "
    "pert_mode handler_type if_preheat preheat_step max_sample pert_type overflow_nums param_list bounds nfs_path "
    "slice request_id diff_nums device op_debug_mode online_run_ut host port jit_level output_path".split()
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
        if section is not None and not isinstance(section, Mapping):
            _refuse(name, section, "an object with the keys " + ", ".join(_TASK))
        known = _NAN_CHECK if name == "nan_check" else _TASK
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
    if settings.async_dump and settings.checksums:
        _refuse("async_dump", True, 'false where summary_mode is or has "md5"')
    if settings.level == "debug" and task not in TASKS[:2]:
        _refuse("task", task, '"statistics" and "tensor" at level "debug"')
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
            _refuse(f"unknown key in {where[:-1] or 'the settings'}", key, ", ".join(spellings), str(key), spellings)
    return values


def _check_scope(task: str, settings: Settings) -> None:
    if not settings.scope or settings.level == "debug":
        return
    if len(settings.scope) != 2:
        _refuse(f"{task}.scope", list(settings.scope), "two full names: the first and the last call to record")
    for name in settings.scope:
        if not is_full_name(name, settings.level):
            forms = {
                "L0": "Cell.fc.Dense.forward.0",
                "L1": "Functional.relu.0.forward",
                "mix": "Functional.relu.0.forward or Cell.fc.Dense.forward.0",
            }
            _refuse(f"{task}.scope", name, f"at level {settings.level} a full name such as {forms[settings.level]}")


def _read(config_path: PathLike) -> dict[str, Any]:
    path = _path("config_path", config_path)
    if not path.lower().endswith((".json", ".yaml", ".yml")):
        _refuse("config_path", config_path, "a .json, .yaml or .yml file")
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"config_path: {path} cannot be read: {error}") from error
    try:
        given = json.loads(text) if path.lower().endswith(".json") else _yaml(path, text)
    except json.JSONDecodeError as error:
        raise SettingsError(f"{path}: line {error.lineno}, column {error.colno}: {error.msg}") from error
    except RecursionError as error:
        raise SettingsError(f"{path}: nested too deeply") from error
    if not isinstance(given, dict):
        raise SettingsError(f"{path}: {type(given).__name__} is not allowed. Allowed: an object with keys and values.")
    return given


def _yaml(path: str, text: str) -> Any:
    import yaml  # only for those who write YAML

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise SettingsError(f"{path}: {place}{getattr(error, 'problem', None) or error}") from error

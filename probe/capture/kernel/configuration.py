# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The dump configuration that MindSpore reads, made from the settings."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from probe.capture.kernel.keys import (
    COMMON,
    CPU,
    DUMP_ALL,
    E2E,
    EXCEPTION,
    KEYS,
    LAST_STEP,
    OVERFLOW,
    Platform,
    check_values,
)
from probe.config.messages import nearest, printable, refuse
from probe.config.settings import Settings
from probe.config.validators import StepSelection
from probe.errors import SettingsError
from probe.naming import ranges

_log = logging.getLogger("probe")

#: tasks of level L2 that choose an op_debug_mode
_DEBUG_MODES = {"overflow_check": OVERFLOW, "exception_dump": EXCEPTION}
#: settings that choose calls or parts of arrays, for which MindSpore's dump has no key
_WITHOUT_KEY = ("scope", "exclude", "tensor_list", "when", "slice")
_EVERY_STEP = f"0-{LAST_STEP}"
#: the keys that need a value in the file, and those whose default is worth seeing there
_COMMON_DEFAULTS: Mapping[str, Any] = {
    "op_debug_mode": DUMP_ALL,
    "dump_mode": 0,
    "path": "",
    "net_name": "Net",
    "iteration": _EVERY_STEP,
    "saved_data": "tensor",
    "input_output": 0,
    "kernels": [],
    "support_device": list(range(16)),
    "statistic_category": ["max", "min", "avg", "l2norm"],
    "initial_iteration": 0,
}
_E2E_DEFAULTS: Mapping[str, Any] = {
    "enable": True,
    "trans_flag": True,
    "stat_calc_mode": "host",
    "device_stat_precision_mode": "high",
    "sample_mode": 0,
    "sample_num": 100,
    "save_kernel_args": False,
}


class Configuration(NamedTuple):
    """The content of a configuration file."""

    common: dict[str, Any]  # the object "common_dump_settings"
    e2e: dict[str, Any] | None  # the object "e2e_dump_settings"; None for whole graphs on Ascend, which have none

    @property
    def file_name(self) -> str:
        """The name of the file."""
        return "kernel_graph_dump.json" if self.e2e is None else "kernel_kbyk_dump.json"

    def content(self) -> dict[str, Any]:
        """Return the content of the file."""
        return {COMMON: self.common, **({} if self.e2e is None else {E2E: self.e2e})}


def configuration(settings: Settings, platform: Platform, path: str) -> Configuration:
    """Return the configuration that the settings mean on a platform; MindSpore writes into ``path``.

    Raises:
        SettingsError: for a value or combination that the platform refuses, with the reason.
    """
    values, names = _of_settings(settings, platform, path)
    direct = dict(settings.kernel_dump or {})
    if "path" in direct:
        raise SettingsError(f"kernel_dump.path: {printable(str(direct['path']))!r} is not allowed. Give dump_path.")
    values.update(direct)
    names.update({key: (f"kernel_dump.{key}", value) for key, value in direct.items()})
    check_values(values, platform, names)
    unknown = {key: value for key, value in direct.items() if key not in KEYS}  # of a later MindSpore
    common = {**_COMMON_DEFAULTS, **_of_section(COMMON, values), **unknown}
    if common["op_debug_mode"] == EXCEPTION:
        common["iteration"] = "all"  # MindSpore warns of anything else
    if platform.is_whole_graph:
        return Configuration({"file_format": "npy", **common}, None)
    return Configuration(common, {**_E2E_DEFAULTS, **_of_section(E2E, values), **unknown})


def warn_of_unknown_keys(settings: Settings) -> None:
    """Log one warning about the keys of ``kernel_dump`` that no version of MindSpore known here has."""
    unknown = [str(key) for key in settings.kernel_dump or {} if key not in KEYS]
    if unknown:
        guesses = {key: nearest(key, KEYS) for key in unknown}
        texts = [f"{printable(key)} (did you mean {guess}?)" if guess else key for key, guess in guesses.items()]
        _log.warning("kernel_dump: unknown keys, passed to MindSpore as they are: %s", ", ".join(texts))


def _of_section(section: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key in KEYS and KEYS[key].section == section}


#: the values by key; and by key the setting that it comes from, and its value there
_Found = tuple[dict[str, Any], dict[str, tuple[str, Any]]]


def _of_settings(settings: Settings, platform: Platform, path: str) -> _Found:
    task = settings.task
    for name in _WITHOUT_KEY:
        if getattr(settings, name):
            raise SettingsError(
                f'{task}.{name}: MindSpore\'s dump has no such choice; level "L2" has list and data_mode'
            )
    values: dict[str, Any] = {"path": path}
    names: dict[str, tuple[str, Any]] = {"path": ("dump_path", path)}

    def give(key: str, value: Any, name: str) -> None:
        shown = getattr(settings, name.rpartition(".")[2])
        values[key], names[key] = value, (name, sorted(shown) if isinstance(shown, frozenset) else shown)

    if task in _DEBUG_MODES:
        give("op_debug_mode", _DEBUG_MODES[task], "task")
    if task == "statistics" and platform.device != CPU:
        give("saved_data", "statistic", "task")
    if settings.list:
        give("dump_mode", 1, f"{task}.list")
        give("kernels", [_pattern(f"{task}.list", item) for item in settings.list], f"{task}.list")
    sides = _sides(settings)
    if sides:
        give("input_output", sides, f"{task}.data_mode")
    if settings.step:
        give("iteration", iteration(settings.step), "step")
    if task == "statistics":
        give("statistic_category", _categories(settings.summary_mode), f"{task}.summary_mode")
    if settings.sample_mode:
        give("sample_mode", settings.sample_mode, f"{task}.sample_mode")
        give("sample_num", settings.sample_num, f"{task}.sample_num")
    if settings.async_dump:
        give("enable", False, "async_dump")
    if settings.precision == "low":
        give("device_stat_precision_mode", settings.precision, "precision")
    return values, names


def _pattern(name: str, item: str) -> str:
    if "\\" in item:
        refuse(name, item, "texts without a backslash: MindSpore doubles it. Write [0-9] for a digit, [.] for a dot")
    return item


def _sides(settings: Settings) -> int:
    """Return the value of input_output: 0 both, 1 inputs, 2 outputs."""
    modes = settings.data_mode
    if not {"forward", "backward"} <= modes:
        allowed = "['all'], ['input'], ['output']: a kernel is neither a forward nor a backward"
        refuse(f"{settings.task}.data_mode", sorted(modes), allowed)
    return 0 if {"input", "output"} <= modes else 1 if "input" in modes else 2


def _categories(summary_mode: str | tuple[str, ...]) -> list[str]:
    if isinstance(summary_mode, str):
        return ["max", "min", "avg", "l2norm", *([summary_mode] if summary_mode != "statistics" else [])]
    return list(dict.fromkeys("avg" if name == "mean" else name for name in summary_mode))


def iteration(steps: Iterable[int] | StepSelection) -> str:
    """Return the steps in MindSpore's form.

    >>> iteration([0, 5, 6, 7, 8, 100])
    '0|5-8|100'
    """
    if isinstance(steps, StepSelection):
        return _EVERY_STEP  # the steps are chosen by the counter of iterations instead
    return "|".join(ranges(steps))

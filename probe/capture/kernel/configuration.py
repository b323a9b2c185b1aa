# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The dump configuration that MindSpore reads, made from the settings.

Its keys have one row each. Some of their combinations are refused by a platform.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from probe.config.messages import nearest, printable, refuse, shorten
from probe.config.settings import Settings
from probe.config.validators import (
    HASHES,
    STATISTICS,
    StepSelection,
    Validator,
    boolean,
    choice,
    rule,
)
from probe.errors import SettingsError
from probe.naming import ranges

_log = logging.getLogger("probe")

COMMON = "common_dump_settings"
E2E = "e2e_dump_settings"
CPU = "CPU"
GPU = "GPU"
ASCEND = "Ascend"
ALL = (CPU, GPU, ASCEND)
#: jit levels whose graphs MindSpore runs kernel by kernel, and the one that it gives to Ascend as a whole
KERNEL_BY_KERNEL = ("O0", "O1")
WHOLE_GRAPH = ("O2",)
LEVELS = KERNEL_BY_KERNEL + WHOLE_GRAPH

DUMP_ALL = 0  # op_debug_mode: everything
OVERFLOW = 3  # kernels that overflow
EXCEPTION = 4  # the kernel that raises
DEVICE_STATISTICS = ("max", "min", "avg", "l2norm")  # statistics that a device can compute
#: the names of statistics in MindSpore's configuration
CATEGORIES = (*(name for name in STATISTICS if name != "mean"), *HASHES)
#: the largest iteration that MindSpore's counter holds, less the one that stands for "no step"
LAST_STEP = 2**32 - 2
_EVERY_STEP = f"0-{LAST_STEP}"
_STATISTIC_LIST = f"a list of some of {', '.join(map(repr, CATEGORIES))}"
Values = Mapping[str, Any]
_STATISTICS_ALONE = 'a device computes statistics only where saved_data is "statistic"'
_RAISING = "only the inputs of the kernel that raises are saved"
_DEVICE_ONLY = f"a device computes only {', '.join(DEVICE_STATISTICS)}"
_NO_STATISTICS = (
    "MindSpore saves tensors only and would end the training; task statistics measures them"
)
#: tasks of level L2 that choose an op_debug_mode
_DEBUG_MODES = {"overflow_check": OVERFLOW, "exception_dump": EXCEPTION}
#: settings that choose calls or parts of arrays, for which MindSpore's dump has no key
_WITHOUT_KEY = ("scope", "exclude", "tensor_list", "when", "slice")
#: the values by key; and by key the setting that it comes from, and its value there
_Found = tuple[dict[str, Any], dict[str, tuple[str, Any]]]


def _numbers(*allowed: int) -> Validator:
    texts = ", ".join(map(str, allowed))
    return rule(lambda value: type(value) is int and value in allowed, texts)


def _whole(least: int = 0) -> Validator:
    return rule(
        lambda value: type(value) is int and least <= value <= LAST_STEP,
        f"a whole number from {least}",
    )


def _text(pattern: str, allowed: str) -> Validator:
    return rule(
        lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None, allowed
    )


def _list(check: Callable[[Any], bool], allowed: str) -> Validator:
    return rule(lambda value: isinstance(value, (list, tuple)) and all(map(check, value)), allowed)


class Key(NamedTuple):
    """One key of the configuration."""

    section: str  # the object it stands in
    kind: str  # its type, as JSON has it
    check: Validator
    default: Any  # its value in a file without it; None where it is not in the file then
    platforms: tuple[str, ...] = ALL  # the platforms that know it
    levels: tuple[str, ...] = LEVELS  # the jit levels that know it


#: every key of MindSpore 2.10
KEYS: Mapping[str, Key] = {
    "op_debug_mode": Key(COMMON, "number", _numbers(DUMP_ALL, OVERFLOW, EXCEPTION), DUMP_ALL),
    "dump_mode": Key(COMMON, "number", _numbers(0, 1, 2), 0),
    "path": Key(
        COMMON,
        "text",
        _text(r"/[A-Za-z0-9_/-]*", "an absolute path of letters, digits, '-', '_' and '/'"),
        "",
    ),
    "net_name": Key(
        COMMON, "text", _text(r"[A-Za-z0-9_-]+", "letters, digits, '-' and '_'"), "Net"
    ),
    "iteration": Key(
        COMMON,
        "text",
        _text(r"all|\d+(-\d+)?(\|\d+(-\d+)?)*", '"all", or a text such as "0|5-8|100"'),
        _EVERY_STEP,
    ),
    "saved_data": Key(COMMON, "text", choice("tensor", "statistic", "full"), "tensor"),
    "input_output": Key(COMMON, "number", _numbers(0, 1, 2), 0),
    "kernels": Key(
        COMMON, "list of texts", _list(lambda item: isinstance(item, str), "a list of texts"), []
    ),
    "support_device": Key(
        COMMON,
        "list of numbers",
        _list(lambda item: type(item) is int and item >= 0, "a list of numbers from 0"),
        list(range(16)),
    ),
    "statistic_category": Key(
        COMMON,
        "list of texts",
        _list(lambda item: item in CATEGORIES, _STATISTIC_LIST),
        [*DEVICE_STATISTICS],
    ),
    "overflow_number": Key(COMMON, "number", _whole(), None, (ASCEND,)),
    "initial_iteration": Key(COMMON, "number", _whole(), 0),
    "file_format": Key(COMMON, "text", choice("npy", "bin"), None, (ASCEND,), WHOLE_GRAPH),
    "enable": Key(E2E, "boolean", boolean, True, ALL, KERNEL_BY_KERNEL),
    "trans_flag": Key(E2E, "boolean", boolean, True, ALL, KERNEL_BY_KERNEL),
    "stat_calc_mode": Key(E2E, "text", choice("host", "device"), "host", ALL, KERNEL_BY_KERNEL),
    "device_stat_precision_mode": Key(
        E2E, "text", choice("high", "low"), "high", (ASCEND,), KERNEL_BY_KERNEL
    ),
    "sample_mode": Key(E2E, "number", _numbers(0, 1), 0, (ASCEND,), KERNEL_BY_KERNEL),
    "sample_num": Key(E2E, "number", _whole(1), 100, (ASCEND,), KERNEL_BY_KERNEL),
    "save_kernel_args": Key(E2E, "boolean", boolean, False, (ASCEND,), KERNEL_BY_KERNEL),
}


class Platform(NamedTuple):
    """Where kernels run."""

    device: str  # "CPU", "GPU" or "Ascend"
    level: str  # the jit level: "O0", "O1" or "O2"

    @property
    def is_whole_graph(self) -> bool:
        """Whether Ascend gets the graph as a whole; other devices run kernel by kernel at every jit level."""
        return self.device == ASCEND and self.level in WHOLE_GRAPH

    def __str__(self) -> str:
        return f"{self.device} at jit level O2" if self.is_whole_graph else self.device


def check_values(values: Values, platform: Platform, names: Mapping[str, tuple[str, Any]]) -> None:
    """Check the values of a configuration, and their combination on a platform; raise SettingsError with the reason.

    ``names`` has for each key the setting that it comes from and its value there, for messages.
    """
    for key, value in values.items():
        if key in KEYS:
            KEYS[key].check(names[key][0], value)
    for key, reason in _refusals(values, platform):
        name, value = names[key]
        raise SettingsError(f"{name}: {shorten(value)} is refused on {platform}: {reason}")


def _refusals(values: Values, platform: Platform) -> Iterator[tuple[str, str]]:
    """Yield (key, reason): what the platform refuses, what does not go with op_debug_mode, then with other keys."""
    get = values.get
    mode = values.get("op_debug_mode", DUMP_ALL)
    saved = values.get("saved_data", "tensor")
    is_elsewhere = platform.device != ASCEND
    on_device = get("stat_calc_mode") == "device"
    given = [(key, KEYS[key]) for key in KEYS if key in values]
    level = "O2" if platform.is_whole_graph else "O0"
    words = {OVERFLOW: "detection of overflow", EXCEPTION: "dump of exceptions"}
    is_debug = mode != DUMP_ALL
    needs = f"it does not go with op_debug_mode {mode}"
    foreign = [
        name
        for name in get("statistic_category", ())
        if name not in DEVICE_STATISTICS and on_device
    ][:1]
    rows: tuple[tuple[Any, str, str], ...] = (
        (
            is_elsewhere and mode in words,
            "op_debug_mode",
            f"the platform has no {words.get(mode)}; only Ascend has it",
        ),
        (
            is_elsewhere and get("dump_mode") == 2,
            "dump_mode",
            "mindspore.set_dump has an effect on Ascend only",
        ),
        (
            is_elsewhere and on_device,
            "stat_calc_mode",
            "only Ascend computes statistics on the device",
        ),
        (
            is_elsewhere and get("enable") is False,
            "enable",
            "only Ascend has the asynchronous dump",
        ),
        (platform.device == CPU and saved != "tensor", "saved_data", _NO_STATISTICS),
        *(
            (holds, key, f"only {reason}")
            for key, row in given
            for holds, reason in (
                (platform.device not in row.platforms, f"{' and '.join(row.platforms)} has it"),
                (
                    level not in row.levels,
                    f"graphs at jit level {' and '.join(row.levels)} have it",
                ),
            )
        ),
        (
            mode != OVERFLOW and "overflow_number" in values,
            "overflow_number",
            f"it needs op_debug_mode {OVERFLOW}",
        ),
        (is_debug and get("kernels"), "kernels", f"{needs}: kernels cannot be chosen"),
        (
            is_debug and get("dump_mode") and not get("kernels"),
            "dump_mode",
            f"{needs}: kernels cannot be chosen",
        ),
        (is_debug and saved != "tensor", "saved_data", f"{needs}: only tensors are saved"),
        (is_debug and get("sample_mode"), "sample_mode", f"{needs}: only whole tensors are saved"),
        (
            mode == OVERFLOW and get("input_output"),
            "input_output",
            f"{needs}: inputs and outputs are saved",
        ),
        (
            mode == OVERFLOW and on_device and not get("enable", True),
            "stat_calc_mode",
            f"{needs} and enable false",
        ),
        (mode == EXCEPTION and get("input_output") == 2, "input_output", f"{needs}: {_RAISING}"),
        (
            mode == EXCEPTION and get("iteration", "all") != "all",
            "iteration",
            f"{needs}: steps cannot be chosen",
        ),
        (on_device and saved != "statistic", "stat_calc_mode", _STATISTICS_ALONE),
        (foreign, "statistic_category", f"{_DEVICE_ONLY}, not {''.join(foreign)}"),
        (
            get("file_format") == "bin" and saved != "tensor",
            "saved_data",
            'statistics need file_format "npy"',
        ),
        (
            get("save_kernel_args") and not get("enable", True),
            "save_kernel_args",
            "it needs enable true",
        ),
        ("sample_num" in values and not get("sample_mode"), "sample_num", "it needs sample_mode 1"),
    )
    yield from ((key, reason) for holds, key, reason in rows if holds)


class Configuration(NamedTuple):
    """The content of a configuration file."""

    common: dict[str, Any]  # the object "common_dump_settings"
    e2e: (
        dict[str, Any] | None
    )  # the object "e2e_dump_settings"; None for whole graphs on Ascend, which have none

    @property
    def file_name(self) -> str:
        """The name of the file."""
        return "kernel_graph_dump.json" if self.e2e is None else "kernel_kbyk_dump.json"

    def content(self) -> dict[str, Any]:
        """Return the content of the file."""
        return {COMMON: self.common, **({} if self.e2e is None else {E2E: self.e2e})}


def configuration(settings: Settings, platform: Platform, path: str) -> Configuration:
    """Return the configuration that settings mean on a platform, with the dump in ``path``, or raise SettingsError."""
    values, names = _of_settings(settings, platform, path)
    direct = dict(settings.kernel_dump or {})
    if "path" in direct:
        raise SettingsError(
            f"kernel_dump.path: {printable(str(direct['path']))!r} is not allowed. Give dump_path."
        )
    values.update(direct)
    names.update({key: (f"kernel_dump.{key}", value) for key, value in direct.items()})
    check_values(values, platform, names)
    unknown = {
        key: value for key, value in direct.items() if key not in KEYS
    }  # of a later MindSpore
    common = {**_of_section(COMMON, values), **unknown}
    if common["op_debug_mode"] == EXCEPTION:
        common["iteration"] = "all"  # MindSpore warns of anything else
    if platform.is_whole_graph:
        return Configuration({"file_format": "npy", **common}, None)
    return Configuration(common, {**_of_section(E2E, values), **unknown})


def warn_of_unknown(settings: Settings) -> None:
    """Log one warning about the keys of ``kernel_dump`` that no version of MindSpore known here has."""
    unknown = [str(key) for key in settings.kernel_dump or {} if key not in KEYS]
    if unknown:
        guesses = {key: nearest(key, KEYS) for key in unknown}
        texts = [
            f"{printable(key)} (did you mean {guess}?)" if guess else key
            for key, guess in guesses.items()
        ]
        _log.warning(
            "kernel_dump: unknown keys, passed to MindSpore as they are: %s", ", ".join(texts)
        )


def _of_section(section: str, values: Mapping[str, Any]) -> dict[str, Any]:
    found = {
        key: values.get(key, row.default) for key, row in KEYS.items() if row.section == section
    }
    return {key: value for key, value in found.items() if value is not None}


def _of_settings(settings: Settings, platform: Platform, path: str) -> _Found:
    task = settings.task
    for name in _WITHOUT_KEY:
        if getattr(settings, name):
            told = "MindSpore's dump has no such choice"
            raise SettingsError(f'{task}.{name}: {told}; level "L2" has list and data_mode')
    is_statistics = task == "statistics"
    sampled = settings.sample_mode or None
    rows: tuple[tuple[str, Any, str], ...] = (
        ("op_debug_mode", _DEBUG_MODES.get(task), "task"),
        ("saved_data", "statistic" if is_statistics and platform.device != CPU else None, "task"),
        ("dump_mode", 1 if settings.list else None, f"{task}.list"),
        (
            "kernels",
            [_pattern(f"{task}.list", item) for item in settings.list] or None,
            f"{task}.list",
        ),
        ("input_output", _sides(settings) or None, f"{task}.data_mode"),
        ("iteration", iteration(settings.step) if settings.step else None, "step"),
        (
            "statistic_category",
            _categories(settings.summary_mode) if is_statistics else None,
            f"{task}.summary_mode",
        ),
        ("sample_mode", sampled, f"{task}.sample_mode"),
        ("sample_num", sampled and settings.sample_num, f"{task}.sample_num"),
        ("enable", False if settings.async_dump else None, "async_dump"),
        ("device_stat_precision_mode", "low" if settings.precision == "low" else None, "precision"),
    )
    values: dict[str, Any] = {"path": path}
    names: dict[str, tuple[str, Any]] = {"path": ("dump_path", path)}
    for key, value, name in rows:
        if value is not None:
            shown = getattr(settings, name.rpartition(".")[2])
            values[key] = value
            names[key] = name, sorted(shown) if isinstance(shown, frozenset) else shown
    return values, names


def _pattern(name: str, item: str) -> str:
    if "\\" in item:
        refuse(
            name,
            item,
            "texts without a backslash: MindSpore doubles it. Write [0-9] for a digit, [.] for a dot",
        )
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
        return [
            "max",
            "min",
            "avg",
            "l2norm",
            *([summary_mode] if summary_mode != "statistics" else []),
        ]
    return list(dict.fromkeys("avg" if name == "mean" else name for name in summary_mode))


def iteration(steps: Iterable[int] | StepSelection) -> str:
    """Return the steps in MindSpore's form.

    >>> iteration([0, 5, 6, 7, 8, 100])
    '0|5-8|100'
    """
    # each N-th step is chosen by the counter of iterations instead
    return _EVERY_STEP if isinstance(steps, StepSelection) else "|".join(ranges(steps))

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The keys of MindSpore's dump configuration, one row each, and the combinations that a platform refuses."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from probe.config.messages import shorten
from probe.config.validators import HASHES, STATISTICS, Validator, boolean, choice, rule
from probe.errors import SettingsError

COMMON, E2E = "common_dump_settings", "e2e_dump_settings"
CPU, GPU, ASCEND = "CPU", "GPU", "Ascend"
ALL = (CPU, GPU, ASCEND)
#: jit levels whose graphs MindSpore runs kernel by kernel, and the one that it gives to Ascend as a whole
KERNEL_BY_KERNEL, WHOLE_GRAPH = ("O0", "O1"), ("O2",)
LEVELS = KERNEL_BY_KERNEL + WHOLE_GRAPH

#: op_debug_mode: everything, kernels that overflow, the kernel that raises
DUMP_ALL, OVERFLOW, EXCEPTION = 0, 3, 4
#: statistics that a device can compute
DEVICE_STATISTICS = ("max", "min", "avg", "l2norm")
#: the names of statistics in MindSpore's configuration
CATEGORIES = (*(name for name in STATISTICS if name != "mean"), *HASHES)
#: the largest iteration that MindSpore's counter holds, less the one that stands for "no step"
LAST_STEP = 2**32 - 2


def _numbers(*allowed: int) -> Validator:
    texts = ", ".join(map(str, allowed))
    return rule(lambda value: type(value) is int and value in allowed, texts)


def _whole(least: int = 0) -> Validator:
    return rule(lambda value: type(value) is int and least <= value <= LAST_STEP, f"a whole number from {least}")


def _text(pattern: str, allowed: str) -> Validator:
    return rule(lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None, allowed)


def _list(check: Callable[[Any], bool], allowed: str) -> Validator:
    return rule(lambda value: isinstance(value, (list, tuple)) and all(map(check, value)), allowed)


class Key(NamedTuple):
    """One key of the configuration."""

    section: str  # the object it stands in
    kind: str  # its type, as JSON has it
    check: Validator
    platforms: tuple[str, ...] = ALL  # the platforms that know it
    levels: tuple[str, ...] = LEVELS  # the jit levels that know it


_STATISTIC_LIST = f"a list of some of {', '.join(map(repr, CATEGORIES))}"
#: every key of MindSpore 2.10
KEYS: Mapping[str, Key] = {
    "op_debug_mode": Key(COMMON, "number", _numbers(DUMP_ALL, OVERFLOW, EXCEPTION)),
    "dump_mode": Key(COMMON, "number", _numbers(0, 1, 2)),
    "path": Key(COMMON, "text", _text(r"/[A-Za-z0-9_/-]*", "an absolute path of letters, digits, '-', '_' and '/'")),
    "net_name": Key(COMMON, "text", _text(r"[A-Za-z0-9_-]+", "letters, digits, '-' and '_'")),
    "iteration": Key(COMMON, "text", _text(r"all|\d+(-\d+)?(\|\d+(-\d+)?)*", '"all", or a text such as "0|5-8|100"')),
    "saved_data": Key(COMMON, "text", choice("tensor", "statistic", "full")),
    "input_output": Key(COMMON, "number", _numbers(0, 1, 2)),
    "kernels": Key(COMMON, "list of texts", _list(lambda item: isinstance(item, str), "a list of texts")),
    "support_device": Key(
        COMMON, "list of numbers", _list(lambda item: type(item) is int and item >= 0, "a list of numbers from 0")
    ),
    "statistic_category": Key(COMMON, "list of texts", _list(lambda item: item in CATEGORIES, _STATISTIC_LIST)),
    "overflow_number": Key(COMMON, "number", _whole(), (ASCEND,)),
    "initial_iteration": Key(COMMON, "number", _whole()),
    "file_format": Key(COMMON, "text", choice("npy", "bin"), (ASCEND,), WHOLE_GRAPH),
    "enable": Key(E2E, "boolean", boolean, ALL, KERNEL_BY_KERNEL),
    "trans_flag": Key(E2E, "boolean", boolean, ALL, KERNEL_BY_KERNEL),
    "stat_calc_mode": Key(E2E, "text", choice("host", "device"), ALL, KERNEL_BY_KERNEL),
    "device_stat_precision_mode": Key(E2E, "text", choice("high", "low"), (ASCEND,), KERNEL_BY_KERNEL),
    "sample_mode": Key(E2E, "number", _numbers(0, 1), (ASCEND,), KERNEL_BY_KERNEL),
    "sample_num": Key(E2E, "number", _whole(1), (ASCEND,), KERNEL_BY_KERNEL),
    "save_kernel_args": Key(E2E, "boolean", boolean, (ASCEND,), KERNEL_BY_KERNEL),
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


Values = Mapping[str, Any]


def check_values(values: Values, platform: Platform, names: Mapping[str, tuple[str, Any]]) -> None:
    """Check the values of a configuration, and their combination on a platform.

    ``names`` has for each key the setting that it comes from and its value there, for messages.

    Raises:
        SettingsError: naming the setting, its value and the reason.
    """
    for key, value in values.items():
        if key in KEYS:
            KEYS[key].check(names[key][0], value)
    for key, reason in _refusals(values, platform):
        name, value = names[key]
        raise SettingsError(f"{name}: {shorten(value)} is refused on {platform}: {reason}")


def _refusals(values: Values, platform: Platform) -> Iterator[tuple[str, str]]:
    """Yield (key, reason) of everything that the platform refuses."""
    yield from _of_platform(values, platform)
    yield from _of_debug_mode(values)
    get = values.get
    if get("stat_calc_mode") == "device":
        if get("saved_data", "tensor") != "statistic":
            yield "stat_calc_mode", 'a device computes statistics only where saved_data is "statistic"'
        foreign = [name for name in get("statistic_category", ()) if name not in DEVICE_STATISTICS]
        if foreign:
            yield "statistic_category", f"a device computes only {', '.join(DEVICE_STATISTICS)}, not {foreign[0]}"
    if get("file_format") == "bin" and get("saved_data", "tensor") != "tensor":
        yield "saved_data", 'statistics need file_format "npy"'
    if get("save_kernel_args") and not get("enable", True):
        yield "save_kernel_args", "it needs enable true"
    if "sample_num" in values and not get("sample_mode"):
        yield "sample_num", "it needs sample_mode 1"


def _of_platform(values: Values, platform: Platform) -> Iterator[tuple[str, str]]:
    """Yield the keys that this platform does not have."""
    get = values.get
    if platform.device != ASCEND:
        words = {OVERFLOW: "detection of overflow", EXCEPTION: "dump of exceptions"}
        mode = words.get(get("op_debug_mode", DUMP_ALL))
        if mode:
            yield "op_debug_mode", f"the platform has no {mode}; only Ascend has it"
        if get("dump_mode") == 2:
            yield "dump_mode", "mindspore.set_dump has an effect on Ascend only"
        if get("stat_calc_mode") == "device":
            yield "stat_calc_mode", "only Ascend computes statistics on the device"
        if get("enable") is False:
            yield "enable", "only Ascend has the asynchronous dump"
    if platform.device == CPU and get("saved_data", "tensor") != "tensor":
        yield "saved_data", "MindSpore saves tensors only and would end the training; task statistics measures them"
    for key, row in KEYS.items():
        if key in values and platform.device not in row.platforms:
            yield key, f"only {' and '.join(row.platforms)} has it"
        level = "O2" if platform.is_whole_graph else "O0"
        if key in values and level not in row.levels:
            yield key, f"only graphs at jit level {' and '.join(row.levels)} have it"


def _of_debug_mode(values: Values) -> Iterator[tuple[str, str]]:
    """Yield the keys that do not fit op_debug_mode."""
    get = values.get
    mode = get("op_debug_mode", DUMP_ALL)
    if mode != OVERFLOW and "overflow_number" in values:
        yield "overflow_number", f"it needs op_debug_mode {OVERFLOW}"
    if mode == DUMP_ALL:
        return
    needs = f"it does not go with op_debug_mode {mode}"
    if get("dump_mode") or get("kernels"):
        yield ("kernels" if get("kernels") else "dump_mode"), f"{needs}: kernels cannot be chosen"
    if get("saved_data", "tensor") != "tensor":
        yield "saved_data", f"{needs}: only tensors are saved"
    if get("sample_mode"):
        yield "sample_mode", f"{needs}: only whole tensors are saved"
    if mode == OVERFLOW and get("input_output"):
        yield "input_output", f"{needs}: inputs and outputs are saved"
    if mode == OVERFLOW and get("stat_calc_mode") == "device" and not get("enable", True):
        yield "stat_calc_mode", f"{needs} and enable false"
    if mode == EXCEPTION and get("input_output", 1) == 2:
        yield "input_output", f"{needs}: only the inputs of the kernel that raises are saved"
    if mode == EXCEPTION and get("iteration", "all") != "all":
        yield "iteration", f"{needs}: steps cannot be chosen"

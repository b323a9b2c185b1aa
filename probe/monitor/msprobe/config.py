# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The settings file of TrainerMon: the keys of msprobe's monitor."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple, Optional

from probe.config import file_reader, validators
from probe.config.config_file import EditedFile
from probe.config.messages import errors_about, nearest, printable, refuse
from probe.errors import SettingsError
from probe.series.msprobe_csv import L2_HOOKS
from probe.series.msprobe_rules import MSPROBE

_log = logging.getLogger("probe")

OPS = (
    "norm",
    "min",
    "max",
    "mean",
    "zeros",
    "nans",
    "shape",
    "dtype",
)  # the numbers of a tensor that ``ops`` may name
Rules = tuple[tuple[str, Optional[float]], ...]  # rules of the key ``alert``, with their thresholds
#: keys of msprobe that have no effect here, and why
_NOT_SERVED = {
    "mg_distribution": "msprobe reads no such key either; is it mg_direction?",
    "squash_name": "",  # needs none: names are always shortened, as msprobe does on MindSpore
}
TIME = "%b%d_%H-%M-%S"  # the form of the times in the names of folders
_texts = validators.list_of(validators.rule(lambda item: isinstance(item, str), "a text"))


class TrainerConfig(NamedTuple):
    """The settings of TrainerMon by their keys, which docs/monitor.md describes."""

    targets: tuple[str, ...] = ()  # empty for all
    ops: tuple[str, ...] = ("norm", "shape", "dtype")
    wg_distribution: bool = False
    mv_distribution: bool = False
    param_distribution: bool = False
    xy_distribution: bool = False
    all_xy: bool = False
    forward_only: bool = False
    backward_only: bool = False
    monitor_mbs_grad: bool = False
    start_step: int = 0
    step_interval: int = 1
    collect_times: int = 100_000_000
    step_count_per_record: int = 1
    module_ranks: tuple[int, ...] = ()  # empty for all
    eps: float = 1e-8
    ndigits: int = 6
    alert: tuple[Rules, bool] = ((), False)  # the rules, and whether anomaly.json is written
    dynamic_on: bool = False
    format: str = "csv"
    ur_distribution: bool = False
    mg_direction: bool = False
    stack_info: bool = False
    print_struct: bool = False
    recording_l2_features: bool = False
    l2_targets: Mapping[str, tuple[str, ...]] = MappingProxyType(
        {}
    )  # the names of Cells by their hooks
    sa_order: str = "s,b,h,d"
    cc_distribution: Mapping[str, Any] = MappingProxyType({})
    append_output: Sequence[time.struct_time] = ()  # no time or two


def _whole(least: int, most: int) -> validators.Validator:
    allowed = f"a whole number from {least} to {most}"
    return validators.rule(lambda value: type(value) is int and least <= value <= most, allowed)


def _ops(key: str, value: Any) -> tuple[str, ...]:
    given = validators.list_of(
        validators.rule(lambda item: isinstance(item, str), "a list of names")
    )(key, value)
    for name in given:
        if name not in OPS:
            _log.warning(
                "TrainerMon: %s has no %s; it has %s", key, printable(name), ", ".join(OPS)
            )
    known = [name for name in dict.fromkeys(given) if name in OPS] or ["norm"]
    return (*known, *(name for name in ("shape", "dtype") if name not in known))


def _number(key: str, value: Any) -> float:
    check = validators.rule(
        lambda item: type(item) in (int, float) and item >= 0, "a number from 0"
    )
    return float(check(key, value))


def _alert(key: str, value: Any) -> tuple[Rules, bool]:
    content = validators.mapping(key, value)
    rules = []
    for rule in content.get("rules") or ():
        given = validators.mapping(f"{key}.rules", rule)
        arguments = validators.mapping(f"{key}.rules.args", given.get("args") or {})
        name = validators.choice(*MSPROBE)(f"{key}.rules.rule_name", given.get("rule_name"))
        threshold = arguments.get("threshold")
        if threshold is None and name == "AnomalyTurbulence":
            refuse(f"{key}.rules.args.threshold", threshold, "a number from 0")
        rules.append(
            (name, None if threshold is None else _number(f"{key}.rules.args.threshold", threshold))
        )
    return tuple(rules), bool(validators.boolean(f"{key}.dump", content.get("dump", False)))


def _mapping(rows: Mapping[str, validators.Validator], key: str, value: Any) -> dict[str, Any]:
    """Return an object of the file, whose keys have validators of their own."""
    known = validators.choice(*rows)
    return {
        known(key, own): rows[own](f"{key}.{own}", item)
        for own, item in validators.mapping(key, value).items()
    }


def _times(key: str, value: Any) -> list[time.struct_time]:
    with contextlib.suppress(ValueError):
        found = [_time(text) for text in _texts(key, value)]
        if len(found) in (0, 2) and found == sorted(found):
            return found
    refuse(key, value, 'an empty list, or a time and a later one as in "Dec03_21-34-40"')


def _format(key: str, value: Any) -> str:
    if value != "csv":
        _log.warning("TrainerMon: %s is %s; csv is written", key, printable(repr(value)))
    return "csv"


_ROWS: Mapping[str, Callable[[str, Any], Any]] = {
    **{
        key: validators.boolean
        for key, value in zip(TrainerConfig._fields, TrainerConfig())
        if value is False
    },
    "targets": lambda key, value: tuple(filter(None, validators.mapping(key, value))),
    "ops": _ops,
    "start_step": _whole(0, 10**9),
    "step_interval": _whole(1, 10**9),
    "collect_times": _whole(0, 10**9),
    "step_count_per_record": _whole(1, 10**6),
    "module_ranks": validators.list_of(_whole(0, 10**6), "a list of numbers"),
    "eps": _number,
    "ndigits": _whole(1, 20),
    "alert": _alert,
    "format": _format,
    "append_output": _times,
    "l2_targets": partial(_mapping, dict.fromkeys(L2_HOOKS, _texts)),
    "sa_order": lambda key, value: validators.choice("s,b,h,d", "b,s,h,d")(
        key, str(value).replace(" ", "")
    ),
    "cc_distribution": partial(
        _mapping,
        {
            **dict.fromkeys(("enable", "cc_pre_hook", "cc_log_only"), validators.boolean),
            "cc_codeline": _texts,
        },
    ),
}


def load(path: str) -> TrainerConfig:
    """Return the settings of a file, or raise SettingsError. A key that is not served has one warning."""
    content = file_reader.read(path)
    values = {}
    with errors_about(path):
        for key, value in content.items():
            if key == "monitors":
                refuse(
                    key,
                    value,
                    "the keys of TrainerMon; this one is of TrainerMonitorV2, which probe does not have",
                )
            if key in _ROWS:
                if value is not None:
                    values[key] = _ROWS[key](key, value)
            elif value.get("enable", True) if isinstance(value, Mapping) and value else value:
                _warn(key)
    return TrainerConfig(**values)


def _warn(key: Any) -> None:
    guess = nearest(key, _ROWS)
    if key not in _NOT_SERVED:
        _log.warning(
            "TrainerMon: there is no key %s%s",
            printable(str(key)),
            f"; is it {guess}?" if guess else "",
        )
    elif _NOT_SERVED[key]:
        _log.warning("TrainerMon: %s has no effect: %s", key, _NOT_SERVED[key])


class ConfigSource:
    """The settings file. With the variable DYNAMIC_MONITOR it is read again after each edit. Raises SettingsError."""

    def __init__(self, path: Any) -> None:
        self._path = validators.path("config_file_path", path)
        is_dynamic = os.environ.get("DYNAMIC_MONITOR", "").lower() == "true"
        self.config = load(self._path)  # the settings at the beginning
        #: those that hold from the first step on; None where measuring begins with an edit
        self.first = None if is_dynamic else self.config
        self._file = EditedFile(self._path if is_dynamic else None, is_read=False)

    def changed(self) -> TrainerConfig | None:
        """Return the settings if the file was edited since the last call, and ``dynamic_on`` is true."""
        try:
            config = load(self._path) if self._file.is_edited() else None
        except SettingsError as error:
            _log.warning("TrainerMon: the settings stay as they were: %s", error)
            return None
        return config if config and config.dynamic_on else None

    def turn_off(self) -> None:
        """Write that ``dynamic_on`` is false: the next edit that makes it true begins again."""
        if self.first is None:
            content = {**file_reader.read(self._path), "dynamic_on": False}
            with open(self._path, "w", encoding="utf-8") as file:
                json.dump(content, file, indent=2)
            self._file.is_edited()  # this edit is ours


def folder_between(base: str, rank: int, times: Sequence[time.struct_time]) -> str:
    """Return the newest folder of a rank below ``base`` whose time is between two; "" if there is none."""
    found = []
    for name in os.listdir(base) if times and os.path.isdir(base) else ():
        when, mark, _ = name.partition(f"-rank{rank}-")
        with contextlib.suppress(ValueError):
            found += [(_time(when), name)] if mark and times[0] <= _time(when) <= times[1] else []
    return os.path.join(base, max(found)[1]) if found else ""


def _time(text: str) -> time.struct_time:
    return time.strptime(f"2000 {text}", f"%Y {TIME}")  # a leap year

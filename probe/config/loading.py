# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Reads the settings: msprobe's config.json (or YAML) in, one frozen object or one SettingsError out."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Union

from probe.config import file_reader, validators
from probe.config.messages import errors_about, nearest, printable, refuse
from probe.config.own_statistics import own_statistics
from probe.config.settings import KERNEL_TASKS, MSPROBE_TASKS, TASK_ROWS, TOP_ROWS, Rows, Settings
from probe.config.validators import ALL_MODES, DUMP_TASKS, HASHES, RANGES, TASKS
from probe.errors import SettingsError
from probe.findings.sentence import NOTHING, Sentence, say
from probe.naming import is_full_name

_log = logging.getLogger("probe")

PathLike = Union[str, "os.PathLike[str]"]

#: keys of msprobe's settings files: accepted, without effect here
_FOREIGN = frozenset(MSPROBE_TASKS + KERNEL_TASKS).union(
    "seed is_deterministic enable_dataloader acl_config backward_input file_format risk_level custom_op_namespaces "
    "load check_mode error_data_path white_list black_list fuzz_stage fuzz_device fuzz_level pert_mode handler_type "
    "if_preheat preheat_step max_sample pert_type overflow_nums param_list bounds nfs_path request_id diff_nums device "
    "op_debug_mode online_run_ut host port jit_level output_path bench_path".split()
)
#: the keys of the object "golden" -> their settings
_GOLDEN = {"path": "golden", "on_difference": "on_difference", "arrays": "golden_arrays"}


def load(config_path: PathLike | None = None, **arguments: Any) -> Settings:
    """Read a settings file, let the given arguments win over it, and check both.

    Args:
        config_path: a .json, .yaml or .yml file; None takes the defaults.
        **arguments: values for the keys at the top of the file, or under the task's name; None counts as not given.

    Returns:
        The complete settings.

    Raises:
        SettingsError: naming the file, the key, the value given, the allowed values and the nearest right spelling.
            For a file that cannot be parsed it names the line and the remedy.
    """
    given = {key: value for key, value in arguments.items() if value is not None}
    file = "" if config_path is None else validators.path("config_path", config_path)
    if file and not file.lower().endswith((".json", ".yaml", ".yml")):
        refuse("config_path", file, say("settings.suffix"))
    content = file_reader.read(file) if file else {}
    with errors_about(file):
        values = _section(
            _unfolded(content), TOP_ROWS, task=given.get("task") or content.get("task")
        )
        sections = {
            task: _section(content.get(task), rows, f"{task}.") for task, rows in TASK_ROWS.items()
        }
        _warn_of_foreign_keys(content, file)
    values.update(
        _section({key: value for key, value in given.items() if key in TOP_ROWS}, TOP_ROWS)
    )
    if "dump_path" not in values:
        values["dump_path"] = validators.dump_path("dump_path", Settings.dump_path)
    task = values.get("task", Settings.task)
    values.update(sections.get(task, {}))
    own = {key: value for key, value in given.items() if key not in TOP_ROWS}
    _warn_of_idle_filters({**sections, task: {**sections.get(task, {}), **own}}, task, file)
    values.update(_section(own, TASK_ROWS.get(task, {}), f"{task}."))
    if not {"rolling", "budget"}.isdisjoint(values):
        values.setdefault("on_alarm", "dump")  # a row of one call alone explains little
    with errors_about(f"{file} with the given {', '.join(given)}" if file and given else file):
        return _combined(Settings(**values))


def _section(given: Any, rows: Rows, prefix: str = "", task: Any = None) -> dict[str, Any]:
    """Return the checked values of one section, whose keys have these validators.

    The prefix is "tensor." under a task's name, or empty at the top. The ``task`` of the file is for examples in
    messages.
    """
    if not isinstance(given, (Mapping, type(None))):
        refuse(prefix[:-1], given, say("settings.with_keys", keys=", ".join(rows)))
    values = {}
    for key, value in (given or {}).items():
        if key in rows:
            if value is not None:  # msprobe's users write null for the default
                values[key] = rows[key](prefix + key, value)
        elif key not in _FOREIGN and (prefix or key not in TASKS):
            _refuse_key(key, rows, prefix, task)
    return values


def _unfolded(content: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Return a settings file with the keys of the object "golden" as settings of their own."""
    if not isinstance(golden := content.get("golden"), Mapping):
        return content
    given = _section(golden, {key: TOP_ROWS[name] for key, name in _GOLDEN.items()}, "golden.")
    if "path" not in given:
        refuse(
            "golden",
            golden,
            say("settings.golden"),
        )
    return {**content, **{_GOLDEN[key]: value for key, value in given.items()}}


def _warn_of_foreign_keys(content: Mapping[Any, Any], file: str) -> None:
    sections = {"": content, **{f"{task}.": content.get(task) or {} for task in TASKS}}
    found = [
        (prefix, key)
        for prefix, section in sections.items()
        for key in section
        if key in _FOREIGN and key not in TASK_ROWS.get(prefix[:-1], ())
    ]
    names = [
        prefix + key for prefix, key in found if sections[prefix][key] not in (None, False, [], {})
    ]
    if names:
        _log.warning(
            "%s: these keys of msprobe have no effect in probe: %s",
            printable(file),
            ", ".join(sorted(names)),
        )


def _warn_of_idle_filters(sections: Mapping[str, Mapping[str, Any]], task: str, file: str) -> None:
    """Tell of names to record that stand under another task, while the task's own section has none."""
    found = {name: sections[name].get("list") or sections[name].get("scope") for name in sections}
    others = [name for name, names in found.items() if names and name != task]
    if others and not found.get(task):
        told = '%s: the task is "%s": list and scope under "%s" have no effect'
        _log.warning(told, printable(file), task, '", "'.join(others))


def _refuse_key(key: Any, rows: Rows, prefix: str, task: Any) -> None:
    """Raise for a key that is unknown, or in the wrong place."""
    here = rows if prefix else {**rows, **TASK_ROWS}
    every = {**TOP_ROWS, **TASK_ROWS, **TASK_ROWS["nan_check"]}
    places = {name: _place(name, task) for name in every if name not in here}
    if key in places:
        raise SettingsError(
            say("settings.place", path=f"{prefix}{key}", key=repr(key), place=places[key])
        )
    guess = nearest(key, [*here, *places])
    hint = NOTHING
    if guess:
        place = places.get(guess, say("settings.here"))
        hint = say("settings.hint", word=repr(guess), place=place)
    path = repr(printable(f"{prefix}{key}"))
    raise SettingsError(say("settings.key", path=path, allowed=", ".join(here), hint=hint))


def _place(key: str, task: Any) -> Sentence:
    """Return where a setting belongs, for messages; the example has the task of the file."""
    tasks = [task for task, rows in TASK_ROWS.items() if key in rows]
    if not tasks:
        return say("settings.top")
    chosen = task if task in tasks else tasks[0]
    if len(tasks) > 1:
        return say("settings.under_task", task=chosen, key=key)
    return say("settings.under", task=chosen, key=key)


def _combined(settings: Settings) -> Settings:
    if settings.task == "structure" and settings.level == "L1":
        _log.warning('task "structure" needs the Cells: level "L1" becomes "mix"')
        settings = replace(settings, level="mix")
    _check_scope(settings)
    mode = settings.summary_mode
    key = f"{settings.task}.summary_mode"
    modes = {mode} if isinstance(mode, str) else set(mode)
    if settings.level == "L2" and not modes.isdisjoint((*RANGES, *own_statistics())):
        refuse(key, mode, say("settings.no_ranges"))
    if settings.level != "L2" and not modes.isdisjoint(HASHES):
        refuse(key, mode, say("settings.hash"))
    if settings.task == "nan_check" and settings.data_mode != ALL_MODES:
        refuse(
            "nan_check.data_mode",
            sorted(settings.data_mode),
            say("settings.all_of_nan_check"),
        )
    if settings.async_dump and settings.checksums:
        refuse("async_dump", True, say("settings.no_async"))
    if settings.is_rolling:
        _check_rolling(settings)
    elif settings.task != "monitor":
        _check_alarms(settings)
    elif settings.level not in ("L0", "L1"):
        refuse("level", settings.level, say("settings.levels_of_monitor"))
    if settings.level in ("debug", "L2") and settings.task in set(TASKS) - set(DUMP_TASKS):
        refuse("task", settings.task, say("settings.tasks_of_level", level=settings.level))
    if settings.bench_path and settings.level not in ("debug", "L2"):
        settings = replace(settings, golden=settings.golden or settings.bench_path)
    has_golden = settings.golden is not None and not settings.is_rolling
    if has_golden and (settings.task not in DUMP_TASKS or settings.level in ("debug", "L2")):
        refuse(
            "golden",
            settings.golden,
            say("settings.golden_with"),
        )
    if settings.level != "L2" and settings.task in KERNEL_TASKS:
        refuse("level", settings.level, say("settings.level_of_task", task=settings.task))
    return settings


def _check_rolling(settings: Settings) -> None:
    if settings.rolling is not None and settings.budget is not None:
        refuse(f"{settings.task}.budget", settings.budget, say("settings.rolling_and_budget"))
    if settings.level not in ("L0", "L1", "mix"):
        refuse("level", settings.level, say("settings.rolling_level"))
    names = ["scope", "exclude", "tensor_list"]
    if settings.task != "monitor":  # its list names Cells that each step measures
        names.append("list")
    for name in names:
        if getattr(settings, name):
            given = list(getattr(settings, name))
            refuse(f"{settings.task}.{name}", given, say("settings.rolling_names"))
    if settings.task != "monitor" and settings.summary_mode not in (Settings.summary_mode, "md5"):
        refuse(
            f"{settings.task}.summary_mode", settings.summary_mode, say("settings.rolling_summary")
        )
    if settings.keep_steps:
        refuse(f"{settings.task}.keep_steps", settings.keep_steps, say("settings.rolling_steps"))


def _check_alarms(settings: Settings) -> None:
    for name in ("on_alarm", "alarm_steps", "alarm_level", "max_alarms"):
        given = getattr(settings, name)
        if given != getattr(Settings, name):
            refuse(f"{settings.task}.{name}", given, say("settings.alarms_of"))


def _check_scope(settings: Settings) -> None:
    key = f"{settings.task}.scope"
    level = settings.level
    scope = () if level in ("debug", "L2") else settings.scope
    if len(scope) not in (0, 2):
        refuse(key, scope, say("settings.two_names"))
    for name in scope:
        if not is_full_name(name, level):
            refuse(key, name, say("settings.full_names", level=level))

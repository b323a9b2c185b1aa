# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The settings: one row per setting, msprobe's config.json (or YAML) in, one frozen object or one SettingsError out."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Union

from probe.config import file_reader, validators
from probe.config.messages import errors_about, nearest, printable, refuse
from probe.config.own_statistics import own_statistics
from probe.config.validators import (
    DATA_MODES,
    HASHES,
    RANGES,
    TASKS,
    ArrayCondition,
    DimSlice,
    StepSelection,
)
from probe.errors import SettingsError
from probe.findings.sentence import ENGLISH, LANGUAGES, NOTHING, Sentence, say
from probe.naming import is_full_name

_log = logging.getLogger("probe")

PathLike = Union[str, "os.PathLike[str]"]

#: tasks of level L2 alone, which have no settings of their own
KERNEL_TASKS = ("exception_dump", "overflow_check")
#: tasks of msprobe that probe does not have
_MSPROBE_TASKS = tuple("acc_check diff_check free_benchmark grad_probe run_ut".split())
#: keys of msprobe's settings files: accepted, without effect here
_FOREIGN = frozenset(_MSPROBE_TASKS + KERNEL_TASKS).union(
    "seed is_deterministic enable_dataloader acl_config backward_input file_format risk_level custom_op_namespaces "
    "load check_mode error_data_path white_list black_list fuzz_stage fuzz_device fuzz_level pert_mode handler_type "
    "if_preheat preheat_step max_sample pert_type overflow_nums param_list bounds nfs_path request_id diff_nums device "
    "op_debug_mode online_run_ut host port jit_level output_path bench_path".split()
)
#: the keys of the object "golden" -> their settings
_GOLDEN = {"path": "golden", "on_difference": "on_difference", "arrays": "golden_arrays"}
_Rows = Mapping[str, validators.Validator]
#: full names, as messages show them
_FULL_NAMES = "Functional.relu.0.forward (not at L0), Cell.fc.Dense.forward.0 (not at L1)"


def _row(validator: validators.Validator, *tasks: str) -> dict[str, Any]:
    """Return the metadata of a setting under the names of tasks; without ``tasks``, of one at the top of the file."""
    return {"validator": validator, "tasks": tasks}


@dataclass(frozen=True)
class Settings:
    """All settings of one debugger, checked and complete.

    A row names a setting, its default and its validator. Allowed keys and error messages come from the rows alone.
    ``meanings`` says what each setting means; ``dump_path`` is absolute here, and no ranks or steps mean all.
    """

    task: str = field(
        default="statistics", metadata=_row(validators.task(KERNEL_TASKS, _MSPROBE_TASKS))
    )
    dump_path: str = field(default="./dump_path", metadata=_row(validators.dump_path))
    rank: frozenset[int] = field(default=frozenset(), metadata=_row(validators.numbers))
    step: frozenset[int] | StepSelection = field(
        default=frozenset(), metadata=_row(validators.steps)
    )
    level: str = field(
        default="L1", metadata=_row(validators.choice("L0", "L1", "L2", "mix", "debug"))
    )
    extra_info: bool = field(default=True, metadata=_row(validators.boolean))
    support_ops: str | None = field(default=None, metadata=_row(validators.path))
    early_names: bool = field(default=True, metadata=_row(validators.boolean))
    optimizer: str = field(
        default="scalars", metadata=_row(validators.choice("off", "scalars", "states"))
    )
    saved_tensors: bool | None = field(default=None, metadata=_row(validators.boolean))
    storage: bool = field(default=False, metadata=_row(validators.boolean))
    unlisted: bool | None = field(default=None, metadata=_row(validators.boolean))
    overwrite: bool = field(default=False, metadata=_row(validators.boolean))
    synchronize: bool = field(default=False, metadata=_row(validators.boolean))
    measure: str = field(default="auto", metadata=_row(validators.choice("auto", "host", "device")))
    max_disk: int | None = field(default=None, metadata=_row(validators.size))
    journal: str = field(default="batch", metadata=_row(validators.choice("batch", "each")))
    link_equal: bool = field(default=True, metadata=_row(validators.boolean))
    async_dump: bool = field(default=False, metadata=_row(validators.boolean))
    precision: str | None = field(default=None, metadata=_row(validators.choice("high", "low")))
    exact_dtypes: bool = field(default=False, metadata=_row(validators.boolean))
    kernel_dump: Mapping[str, Any] | None = field(default=None, metadata=_row(validators.mapping))
    keep_arrays: bool = field(default=False, metadata=_row(validators.boolean))
    snapshot: bool = field(default=True, metadata=_row(validators.boolean))
    golden: str | None = field(default=None, metadata=_row(validators.path))
    on_difference: str = field(
        default="record", metadata=_row(validators.choice("record", "raise", "stop"))
    )
    golden_arrays: int = field(default=8, metadata=_row(validators.count))
    dump_enable: bool = field(default=True, metadata=_row(validators.boolean))
    quiet: bool = field(default=False, metadata=_row(validators.boolean))

    scope: tuple[str, ...] = field(default=(), metadata=_row(validators.names, *TASKS))
    list: tuple[str, ...] = field(default=(), metadata=_row(validators.patterns, *TASKS))
    exclude: tuple[str, ...] = field(default=(), metadata=_row(validators.patterns, *TASKS))
    tensor_list: tuple[str, ...] = field(default=(), metadata=_row(validators.patterns, *TASKS))
    data_mode: frozenset[str] = field(
        default=frozenset(DATA_MODES[1:]), metadata=_row(validators.modes, *TASKS)
    )
    summary_mode: str | tuple[str, ...] = field(
        default="statistics", metadata=_row(validators.summary, *TASKS)
    )
    when: ArrayCondition | None = field(default=None, metadata=_row(validators.condition, *TASKS))
    sample_mode: int = field(default=0, metadata=_row(validators.sample_mode, *TASKS))
    sample_num: int = field(default=100, metadata=_row(validators.count, *TASKS))
    slice: tuple[DimSlice, ...] = field(default=(), metadata=_row(validators.pieces, *TASKS))
    bench_path: str | None = field(default=None, metadata=_row(validators.optional_path, "tensor"))
    diff_nums: int = field(default=1, metadata=_row(validators.positive, "tensor"))
    last_calls: int = field(default=10, metadata=_row(validators.count, "nan_check"))
    on_nan: str = field(
        default="continue", metadata=_row(validators.choice("continue", "raise"), "nan_check")
    )
    max_hits: int = field(default=1, metadata=_row(validators.count, "nan_check"))
    interval: int = field(default=10, metadata=_row(validators.positive, "monitor"))
    on_alarm: str = field(
        default="log", metadata=_row(validators.choice("log", "dump", "again", "raise"), "monitor")
    )
    times: int = field(default=2, metadata=_row(validators.one_or_two, "monitor"))
    alarm_steps: int = field(default=2, metadata=_row(validators.positive, "monitor"))
    alarm_level: str = field(
        default="mix", metadata=_row(validators.choice("L0", "L1", "mix"), "monitor")
    )
    max_alarms: int = field(default=3, metadata=_row(validators.count, "monitor"))
    keep_steps: int = field(default=0, metadata=_row(validators.count, "monitor"))
    mechanisms: bool = field(default=True, metadata=_row(validators.boolean, "monitor"))

    @property
    def checksums(self) -> bool:
        """Whether records carry a CRC-32."""
        return "md5" in (
            (self.summary_mode,) if isinstance(self.summary_mode, str) else self.summary_mode
        )

    @property
    def journaled(self) -> bool:
        """Whether entries are on disk before the step ends. Steps that may never be written are not."""
        return self.task != "nan_check" and not self.keep_steps

    @property
    def cells(self) -> bool:
        """Whether Cells are recorded."""
        return self.level in ("L0", "mix")

    @property
    def apis(self) -> bool:
        """Whether APIs, Primitives and jit calls are recorded."""
        return self.level in ("L1", "mix")

    @property
    def guards_saved_tensors(self) -> bool:
        """Whether the tensors that a forward keeps for its backward are guarded."""
        is_wanted = self.task == "nan_check" if self.saved_tensors is None else self.saved_tensors
        return is_wanted and (self.cells or self.apis)

    @property
    def operations(self) -> bool:
        """Whether operations outside of every listed API are recorded. A list of the user's own leaves them out."""
        return self.apis and (self.support_ops is None if self.unlisted is None else self.unlisted)


def meanings(language: str = ENGLISH) -> dict[str, str]:
    """Return the meaning of each setting in a language, for help texts."""
    found: dict[str, list[str]] = json.loads(
        (Path(__file__).parent / "meanings.json").read_text(encoding="utf-8")
    )
    return {name: texts[LANGUAGES.index(language)] for name, texts in found.items()}


#: the settings at the top of the file, and those under each task's name, with their validators
TOP_ROWS: _Rows = {
    row.name: row.metadata["validator"] for row in fields(Settings) if not row.metadata["tasks"]
}
TASK_ROWS: Mapping[str, _Rows] = {
    task: {
        row.name: row.metadata["validator"]
        for row in fields(Settings)
        if task in row.metadata["tasks"]
    }
    for task in TASKS
}


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
    with errors_about(f"{file} with the given {', '.join(given)}" if file and given else file):
        return _combined(Settings(**values))


def _section(given: Any, rows: _Rows, prefix: str = "", task: Any = None) -> dict[str, Any]:
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


def _refuse_key(key: Any, rows: _Rows, prefix: str, task: Any) -> None:
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
    if settings.task == "nan_check" and len(settings.data_mode) != len(DATA_MODES) - 1:
        refuse(
            "nan_check.data_mode",
            sorted(settings.data_mode),
            say("settings.all_of_nan_check"),
        )
    if settings.async_dump and settings.checksums:
        refuse("async_dump", True, say("settings.no_async"))
    if settings.task == "monitor" and settings.level not in ("L0", "L1"):
        refuse("level", settings.level, say("settings.levels_of_monitor"))
    if settings.level in ("debug", "L2") and settings.task in TASKS[2:]:
        refuse("task", settings.task, say("settings.tasks_of_level", level=settings.level))
    if settings.bench_path and settings.level not in ("debug", "L2"):
        settings = replace(settings, golden=settings.golden or settings.bench_path)
    if settings.golden and (settings.task not in TASKS[:2] or settings.level in ("debug", "L2")):
        refuse(
            "golden",
            settings.golden,
            say("settings.golden_with"),
        )
    if settings.level != "L2" and settings.task in KERNEL_TASKS:
        refuse("level", settings.level, say("settings.level_of_task", task=settings.task))
    return settings


def _check_scope(settings: Settings) -> None:
    key = f"{settings.task}.scope"
    level = settings.level
    scope = () if level in ("debug", "L2") else settings.scope
    if len(scope) not in (0, 2):
        refuse(key, scope, say("settings.two_names"))
    for name in scope:
        if not is_full_name(name, level):
            refuse(key, name, say("settings.full_names", level=level))


class EditedFile:
    """Notices edits of a file, the first one at once unless it was read already. A path of None has none."""

    def __init__(self, path: str | None, is_read: bool) -> None:
        self.path = path
        self._seen = self._stamp() if is_read else None

    def is_edited(self) -> bool:
        """Return whether the file was edited since the last call."""
        stamp = self._stamp()
        seen = self._seen
        self._seen = stamp or seen
        return stamp not in (None, seen)

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            found = None if self.path is None else os.stat(self.path)
        except OSError:
            return None
        return None if found is None else (found.st_mtime_ns, found.st_size, found.st_ino)


class ConfigFile(EditedFile):
    """A settings file with the arguments that win over it, see ``load``; notices edits.

    A relative path belongs to the folder that is current now. Raise SettingsError when ``config_path`` is no path.
    """

    def __init__(self, config_path: PathLike | None, **arguments: Any) -> None:
        super().__init__(
            None if config_path is None else validators.path("config_path", config_path),
            is_read=True,
        )
        self._arguments = arguments
        self.header: dict[str, Any] = {}  # what the headers of the dump say besides

    def load(self) -> Settings:
        """Return the settings; see ``load``."""
        return load(self.path, **self._arguments)

    def changed(self) -> Settings | None:
        """Return the settings if the file was edited since the last call, else None.

        Raise SettingsError when the edited file is wrong; once per edit.
        """
        return self.load() if self.is_edited() else None

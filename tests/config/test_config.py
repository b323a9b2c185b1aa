# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Settings: what works, and that what does not is one error that says what would."""

from __future__ import annotations

import logging
import os
from dataclasses import fields

import pytest

from probe.config import loading
from probe.config.settings import TASK_ROWS, TOP_ROWS, Settings, meanings
from probe.config.validators import TASKS
from probe.errors import SettingsError
from tests.support.paths import ROOT

#: the settings file that msprobe ships
SHIPPED = {
    "task": "statistics",
    "dump_path": "./dump_path",
    "rank": [],
    "step": [],
    "level": "L1",
    "extra_info": True,
    "async_dump": False,
    "statistics": {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": "statistics"},
    "tensor": {"scope": [], "list": [], "data_mode": ["all"]},
    "acc_check": {"white_list": [], "black_list": [], "error_data_path": "./"},
}


def test_msprobes_file_loads_and_one_warning_names_the_keys_without_effect(load, caplog):
    caplog.set_level(logging.WARNING, "probe")
    settings = load(SHIPPED)
    assert (settings.task, settings.level, settings.step) == ("statistics", "L1", frozenset())
    (message,) = caplog.messages
    assert "acc_check" in message


def test_defaults_hold_without_a_file():
    settings = loading.load()
    assert (settings.task, settings.level) == ("statistics", "L1")
    assert settings.dump_path == os.path.abspath("./dump_path")
    assert settings.data_mode == {"forward", "backward", "input", "output"}


def test_arguments_win_over_the_file(load):
    settings = load(SHIPPED, task="tensor", level="mix", dump_path="/x/y", step=[1, "3-4"])
    assert (settings.task, settings.level, settings.dump_path, settings.step) == (
        "tensor",
        "mix",
        "/x/y",
        {1, 3, 4},
    )


def test_only_the_section_of_the_chosen_task_is_used(load):
    both = {"task": "tensor", "statistics": {"list": ["relu"]}, "tensor": {"list": ["add"]}}
    assert load(both).list == ("add",)
    assert load(both, task="statistics").list == ("relu",)


def test_a_yaml_file_is_read(load):
    settings = load("task: tensor\nstep: ['4-6', 1]\ntensor:\n  list: [relu]\n", "config.yaml")
    assert (settings.task, settings.step, settings.list) == ("tensor", {1, 4, 5, 6}, ("relu",))


@pytest.mark.parametrize(
    ("modes", "expected"),
    [
        (["all"], {"forward", "backward", "input", "output"}),
        (["forward"], {"forward", "input", "output"}),
        (["input"], {"forward", "backward", "input"}),
        (["backward", "output"], {"backward", "output"}),
    ],
)
def test_data_mode_selects_directions_and_sides(load, modes, expected):
    assert load({"statistics": {"data_mode": modes}}).data_mode == expected


def test_task_structure_has_level_mix_by_default(load):
    assert load({"task": "structure"}).level == "mix"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"tsak": "tensor"}, ["tsak", "Did you mean 'task'"]),
        (
            {"task": "statistic"},
            ["task", "'statistic'", "'structure'", "Did you mean 'statistics'"],
        ),
        ({"level": "L3"}, ["level", "'L3'", "'L0', 'L1', 'L2', 'mix', 'debug'"]),
        ({"level": "Mix"}, ["level", "Did you mean 'mix'"]),
        ({"level": 1}, ["level", "1"]),
        ({"step": ["6-4"]}, ["step", "'6-4'", "ranges"]),
        ({"step": [-1]}, ["step", "-1"]),
        ({"step": [True]}, ["step", "True"]),
        ({"rank": "all"}, ["rank", "'all'"]),
        ({"dump_path": ""}, ["dump_path", "a path"]),
        ({"extra_info": "true"}, ["extra_info", "'true'", "true, false"]),
        ({"statistics": []}, ["statistics", "[]"]),
        ({"statistics": {"lst": ["relu"]}}, ["statistics", "lst", "Did you mean 'list'"]),
        ({"statistics": {"list": "relu"}}, ["statistics.list", "'relu'", "a list of names"]),
        (
            {"statistics": {"data_mode": ["forwards"]}},
            ["data_mode", "'forwards'", "Did you mean 'forward'"],
        ),
        ({"statistics": {"data_mode": ["all", "input"]}}, ["data_mode", "'all' alone"]),
        ({"statistics": {"summary_mode": "md"}}, ["summary_mode", "'md'", "'md5'"]),
        (
            {"statistics": {"scope": ["Tensor.add.0.forward"]}},
            ["statistics.scope", "two full names"],
        ),
        (
            {"statistics": {"scope": ["add", "Tensor.add.0.forward"]}},
            ["scope", "'add'", "Functional.relu.0.forward"],
        ),
        (
            {"level": "L1", "statistics": {"scope": ["Cell.a.B.forward.0", "Cell.a.B.forward.1"]}},
            ["scope", "Cell.a.B.forward.0", "level L1"],
        ),
        ("[1, 2]", ["[1, 2] is not allowed"]),
        ('{"task": "tensor",\n "step": [1,, 2]}', ["line 2", "column 13"]),
        ("[" * 100000, ["nested too deeply"]),
    ],
)
def test_a_wrong_setting_is_named_with_the_allowed_values(load, settings, words):
    with pytest.raises(SettingsError) as caught:
        load(settings)
    for word in words:
        assert word in str(caught.value)


def test_broken_yaml_is_refused_with_line_and_column(load):
    with pytest.raises(SettingsError, match="line 3, column 1"):
        load("task: tensor\nstep: [1, 2\n", "config.yaml")


def test_a_missing_file_and_an_unknown_suffix_are_refused_by_name(tmp_path):
    with pytest.raises(SettingsError, match=r"nothing\.json: cannot be read: No such file"):
        loading.load(tmp_path / "nothing.json")
    with pytest.raises(SettingsError, match=r"\.json, \.yaml or \.yml"):
        loading.load(tmp_path / "config.txt")


def test_precision_is_accepted_without_a_warning(debug, caplog):
    caplog.set_level(logging.WARNING, "probe")
    for precision in ("low", "high"):
        debug(precision=precision)
    assert all(message.startswith("a new PrecisionDebugger") for message in caplog.messages)
    with pytest.raises(SettingsError, match=r"precision: 'hihg'.*Did you mean 'high'"):
        debug(precision="hihg")


def test_max_hits_is_a_number_from_0(load, error):
    assert load({"task": "nan_check"}).max_hits == 1
    assert load({"task": "nan_check", "nan_check": {"max_hits": 0}}).max_hits == 0
    assert load({"task": "nan_check", "nan_check": {"max_hits": 7}}).max_hits == 7
    for wrong in (-1, True, 1.5, "3"):
        assert f"nan_check.max_hits: {wrong!r} is not allowed." in error(
            {"nan_check": {"max_hits": wrong}}
        )


def test_quiet_is_a_boolean_at_the_top(load, error):
    assert load({}).quiet is False
    assert load({"quiet": True}).quiet is True
    assert error({"quiet": "yes"}).endswith("quiet: 'yes' is not allowed. Allowed: true, false.")
    assert error({"quiet": "true"}).endswith("quiet: 'true' is not allowed. Allowed: true, false.")
    assert error({"quiet": "True"}).endswith("Allowed: true, false. Did you mean 'true'?")


def test_async_dump_is_accepted(load):
    assert load({"async_dump": True}).async_dump is True


@pytest.mark.parametrize("row", fields(Settings), ids=lambda row: row.name)
def test_every_setting_is_documented_and_checked(load, row):
    assert meanings()[row.name]
    assert f"\n| `{row.name}` |" in (ROOT / "docs" / "settings.md").read_text("utf-8")
    content = (
        {row.name: []}
        if not row.metadata["tasks"]
        else {task: {row.name: 2.5} for task in row.metadata["tasks"]}
    )
    if row.name in ("rank", "step"):
        content = {row.name: [2.5]}
    with pytest.raises(SettingsError, match=rf"\b{row.name}: "):
        load(content)


def test_every_default_passes_its_own_check(load):
    defaults = {
        row.name: row.default
        for row in fields(Settings)
        if isinstance(row.default, (str, int, bool))
    }
    for task in TASKS:
        content = {
            key: value for key, value in defaults.items() if key in TOP_ROWS and key != "task"
        }
        content[task] = {key: value for key, value in defaults.items() if key in TASK_ROWS[task]}
        assert load({**content, "task": task}) == load({"task": task})

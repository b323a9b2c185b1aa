# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Messages of SettingsError: the place of the mistake, and how to mend it."""

from __future__ import annotations

import json

import pytest

from probe.config.loading import load
from tests.support.settings_files import BOTH


@pytest.mark.parametrize(
    ("content", "key", "place"),
    [
        (
            {"list": ["relu"]},
            "list",
            'under the name of the task, as in {"statistics": {"list": ...}}',
        ),
        ({"task": "tensor", "list": ["relu"]}, "list", 'as in {"tensor": {"list": ...}}'),
        (
            {"last_calls": 3},
            "last_calls",
            'under \'nan_check\', as in {"nan_check": {"last_calls": ...}}',
        ),
        ({"statistics": {"max_hits": 3}}, "statistics.max_hits", "under 'nan_check'"),
        ({"statistics": {"level": "L0"}}, "statistics.level", "at the top of the file"),
        ({"statistics": {"tensor": {"list": []}}}, "statistics.tensor", "at the top of the file"),
        ({"nan_check": {"quiet": True}}, "nan_check.quiet", "at the top of the file"),
    ],
)
@BOTH
def test_a_misplaced_key_is_told_where_it_belongs(error, name, content, key, place):
    message = error(content, name)
    assert f"{key}: wrong place." in message
    assert place in message


def test_a_misspelled_key_in_the_wrong_place_is_told_both(error):
    message = error({"maxhits": 3})
    assert "unknown key 'maxhits'." in message
    assert "Did you mean 'max_hits' under 'nan_check'" in message


@pytest.mark.parametrize(
    "content",
    [
        {"tsak": 1},
        {"level": "L7"},
        {"statistics": 3},
        {"list": []},
        {"task": "structure", "level": "debug"},
        {"statistics": {"scope": ["one"]}},
        "{",
        "",
        "[1]",
    ],
)
@BOTH
def test_an_error_of_a_file_names_the_file(error, tmp_path, name, content):
    assert error(content, name).startswith(f"{tmp_path / name}: ")


def test_an_error_of_an_argument_does_not_name_the_file(error):
    assert error({"task": "tensor"}, task="tensr").startswith("task: 'tensr' is not allowed.")


def test_an_error_of_file_and_argument_names_both(error, tmp_path):
    message = error({"task": "structure"}, level="debug")
    assert message.startswith(f"{tmp_path / 'config.json'} with the given level: task: 'structure'")


@pytest.mark.parametrize("task", ["acc_check", "diff_check", "free_benchmark"])
def test_a_task_of_msprobe_is_told_apart_from_a_typo(error, task):
    message = error({"task": task})
    assert f"task: '{task}' is a task of msprobe that probe does not have." in message
    assert "Did you mean" not in message
    assert "'statistics', 'tensor', 'structure', 'nan_check'" in message


def test_a_task_of_level_l2_needs_that_level(error, load):
    for task in ("exception_dump", "overflow_check"):
        assert "level: 'L1' is not allowed. Allowed: \"L2\" where the task is" in error(
            {"task": task}
        )
        assert load({"task": task, "level": "L2"}).task == task


def test_a_wrong_level_is_told_the_nearest_one(error):
    assert "Did you mean 'L1'?" in error({"level": "l1"})


@pytest.mark.parametrize("key", ["list", "exclude", "tensor_list"])
@pytest.mark.parametrize(
    "item", ["name-regex(relu", "name-regex relu)", " name-regex(relu)", "name-regex"]
)
def test_a_regular_expression_without_its_parentheses_is_refused(error, key, item):
    message = error({"statistics": {key: ["relu", item]}})
    assert f"statistics.{key}: {item!r} is not allowed." in message
    assert "both parentheses included" in message


@pytest.mark.parametrize(
    "content",
    [
        {"task": "x" * 5000},
        {"x" * 5000: 1},
        {"dump_path": ["x" * 5000] * 500},
        {"rank": {str(i): list(range(100)) for i in range(100)}},
        {"statistics": {"list": ["name-regex(" + "(" * 5000 + ")"]}},
        {"tensor": {"when": {"stat": "max", ">": "1" * 5000}}},
    ],
)
def test_long_values_are_shortened(error, content):
    message = error(content)
    assert "..." in message
    assert max(len(word) for word in message.split()) < 200


def test_keys_of_msprobe_without_effect_are_told_in_one_warning(tmp_path, caplog):
    file = tmp_path / "config.json"
    own = {
        "scope": [],
        "list": [],
        "data_mode": ["all"],
        "host": "h",
        "summary_mode": "md5",
        "jit_level": "O2",
    }
    file.write_text(
        json.dumps({"task": "tensor", "rank": [], "step": [], "level": "L1", "tensor": own})
    )
    assert load(file).checksums
    (message,) = caplog.messages
    assert message.endswith("no effect in probe: tensor.host, tensor.jit_level")


def test_names_to_record_under_another_task_are_told(tmp_path, caplog):
    file = tmp_path / "config.json"
    file.write_text(
        json.dumps({"task": "tensor", "statistics": {"list": ["relu"]}, "tensor": {"list": []}})
    )
    load(file)
    (message,) = caplog.messages
    assert message.endswith(
        'the task is "tensor": list and scope under "statistics" have no effect'
    )
    caplog.clear()
    load(file, task="statistics")
    load(file, list=["add"])
    assert caplog.messages == []


@pytest.mark.parametrize("mode", ["hash", ["max", "hash:md5"]])
def test_a_hash_is_for_kernels_alone(error, mode):
    assert '"hash" at level "L2" alone' in error({"statistics": {"summary_mode": mode}})

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Level L2: the configuration that the settings mean, and each combination that a platform refuses."""

from __future__ import annotations

import json
import logging
import re

import pytest

from probe import PrecisionDebugger, SettingsError
from probe.capture.kernel.configuration import KEYS, Platform, configuration
from probe.config.loading import load
from tests.support.paths import ROOT

CPU, ASCEND, WHOLE = Platform("CPU", "O0"), Platform("Ascend", "O1"), Platform("Ascend", "O2")


@pytest.fixture
def made(tmp_path):
    """Return a function from settings to the configuration on a platform, as (file name, common, e2e)."""

    def make(platform=CPU, task="statistics", own=None, **settings):
        path = tmp_path / "config.yaml"
        path.write_text(json.dumps({"level": "L2", "task": task, task: own or {}, **settings}))
        found = configuration(load(path), platform, "/d/dump")
        content = found.content()
        return found.file_name, content["common_dump_settings"], content.get("e2e_dump_settings")

    return make


def test_every_choice_of_the_settings_is_in_the_file(made):
    own = {
        "list": ["MatMul", "name-regex(.*Conv2D.*)"],
        "data_mode": ["output"],
        "summary_mode": ["mean", "nan count"],
    }
    name, common, e2e = made(own=own, step=[0, "5-8", 100], rank=[0])
    assert name == "kernel_kbyk_dump.json"
    assert common["path"] == "/d/dump"
    assert (common["dump_mode"], common["kernels"]) == (1, ["MatMul", "name-regex(.*Conv2D.*)"])
    assert common["input_output"] == 2
    assert common["iteration"] == "0|5-8|100"
    assert common["statistic_category"] == ["avg", "nan count"]
    assert common["saved_data"] == "tensor"
    assert e2e["enable"] is True


def test_a_hash_may_be_asked_for(made):
    assert made(own={"summary_mode": "hash"})[1]["statistic_category"] == [
        "max",
        "min",
        "avg",
        "l2norm",
        "hash",
    ]
    assert made(own={"summary_mode": ["max", "hash:sha1"]})[1]["statistic_category"] == [
        "max",
        "hash:sha1",
    ]


def test_the_file_has_every_key_of_mindspore_but_those_of_another_mode(made):
    _, common, e2e = made()
    assert {*common, *e2e} == set(KEYS) - {"overflow_number", "file_format"}
    assert made(WHOLE)[0] == "kernel_graph_dump.json"
    assert set(made(WHOLE)[1]) == {
        key for key, row in KEYS.items() if row.section == "common_dump_settings"
    } - {"overflow_number"}
    assert made(WHOLE)[2] is None
    assert (
        made(ASCEND, "overflow_check", kernel_dump={"overflow_number": 3})[1]["overflow_number"]
        == 3
    )


def test_the_least_number_of_a_key_is_taken(made):
    _, common, e2e = made(
        ASCEND, kernel_dump={"initial_iteration": 0, "sample_mode": 1, "sample_num": 1}
    )
    assert (common["initial_iteration"], e2e["sample_num"]) == (0, 1)


def test_an_accelerator_computes_the_statistics_itself(made):
    assert made(ASCEND)[1]["saved_data"] == "statistic"
    assert made(ASCEND, "tensor")[1]["saved_data"] == "tensor"


def test_exceptions_and_overflow_are_configured_on_ascend(made):
    assert made(ASCEND, "exception_dump")[1]["op_debug_mode"] == 4
    assert made(ASCEND, "exception_dump")[1]["iteration"] == "all"
    assert made(ASCEND, "overflow_check")[1]["op_debug_mode"] == 3


def test_direct_keys_win_and_unknown_ones_pass(made):
    _, common, e2e = made(kernel_dump={"net_name": "Mine", "trans_flag": False, "a_new_key": 3})
    assert (common["net_name"], e2e["trans_flag"], common["a_new_key"], e2e["a_new_key"]) == (
        "Mine",
        False,
        3,
        3,
    )


REFUSED = [
    (
        CPU,
        {"kernel_dump": {"saved_data": "statistic"}},
        "kernel_dump.saved_data: 'statistic'",
        "would end the training",
    ),
    (
        CPU,
        {"kernel_dump": {"saved_data": "full"}},
        "kernel_dump.saved_data: 'full'",
        "MindSpore saves tensors only",
    ),
    (
        CPU,
        {"task": "exception_dump"},
        "task: 'exception_dump'",
        "the platform has no dump of exceptions",
    ),
    (
        CPU,
        {"task": "overflow_check"},
        "task: 'overflow_check'",
        "the platform has no detection of overflow",
    ),
    (
        CPU,
        {"kernel_dump": {"op_debug_mode": 3}},
        "kernel_dump.op_debug_mode: 3",
        "no detection of overflow",
    ),
    (
        CPU,
        {"kernel_dump": {"op_debug_mode": 1}},
        "kernel_dump.op_debug_mode: 1",
        "Allowed: 0, 3, 4",
    ),
    (CPU, {"kernel_dump": {"dump_mode": 2}}, "kernel_dump.dump_mode: 2", "set_dump"),
    (
        CPU,
        {"kernel_dump": {"stat_calc_mode": "device"}},
        "kernel_dump.stat_calc_mode: 'device'",
        "only Ascend",
    ),
    (CPU, {"async_dump": True}, "async_dump: True", "only Ascend has the asynchronous dump"),
    (CPU, {"own": {"sample_mode": 1}}, "statistics.sample_mode: 1", "only Ascend has it"),
    (
        CPU,
        {"kernel_dump": {"save_kernel_args": True}},
        "kernel_dump.save_kernel_args: True",
        "only Ascend has it",
    ),
    (CPU, {"precision": "low"}, "precision: 'low'", "only Ascend has it"),
    (
        CPU,
        {"kernel_dump": {"overflow_number": 2}},
        "kernel_dump.overflow_number: 2",
        "only Ascend has it",
    ),
    (
        CPU,
        {"kernel_dump": {"file_format": "bin"}},
        "kernel_dump.file_format: 'bin'",
        "only Ascend has it",
    ),
    (
        ASCEND,
        {"kernel_dump": {"overflow_number": 2}},
        "kernel_dump.overflow_number: 2",
        "it needs op_debug_mode 3",
    ),
    (
        ASCEND,
        {"kernel_dump": {"file_format": "npy"}},
        "kernel_dump.file_format: 'npy'",
        "only graphs at jit level O2",
    ),
    (
        ASCEND,
        {"kernel_dump": {"sample_num": 5}},
        "kernel_dump.sample_num: 5",
        "it needs sample_mode 1",
    ),
    (
        ASCEND,
        {"task": "overflow_check", "kernel_dump": {"kernels": ["a"]}},
        "kernel_dump.kernels",
        "cannot be chosen",
    ),
    (
        ASCEND,
        {"task": "overflow_check", "kernel_dump": {"input_output": 1}},
        "input_output: 1",
        "inputs and outputs",
    ),
    (
        ASCEND,
        {"task": "overflow_check", "kernel_dump": {"saved_data": "full"}},
        "saved_data: 'full'",
        "only tensors",
    ),
    (ASCEND, {"task": "exception_dump", "step": [3]}, "step: [3]", "steps cannot be chosen"),
    (
        ASCEND,
        {"task": "exception_dump", "kernel_dump": {"input_output": 2}},
        "input_output: 2",
        "only the inputs",
    ),
    (
        ASCEND,
        {"task": "exception_dump", "kernel_dump": {"sample_mode": 1}},
        "sample_mode: 1",
        "only whole tensors",
    ),
    (
        ASCEND,
        {"task": "tensor", "kernel_dump": {"stat_calc_mode": "device"}},
        "stat_calc_mode",
        "saved_data is",
    ),
    (
        ASCEND,
        {"kernel_dump": {"stat_calc_mode": "device", "statistic_category": ["max", "md5"]}},
        "kernel_dump.statistic_category",
        "max, min, avg, l2norm, not md5",
    ),
    (
        ASCEND,
        {"task": "overflow_check", "async_dump": True, "kernel_dump": {"stat_calc_mode": "device"}},
        "kernel_dump.stat_calc_mode: 'device'",
        "op_debug_mode 3 and enable false",
    ),
    (
        ASCEND,
        {"kernel_dump": {"save_kernel_args": True, "enable": False}},
        "save_kernel_args: True",
        "enable true",
    ),
    (
        WHOLE,
        {"kernel_dump": {"file_format": "bin"}},
        "task: 'statistics'",
        'statistics need file_format "npy"',
    ),
    (
        WHOLE,
        {"kernel_dump": {"trans_flag": True}},
        "kernel_dump.trans_flag: True",
        "only graphs at jit level O0 and O1",
    ),
    (CPU, {"kernel_dump": {"path": "/x"}}, "kernel_dump.path: '/x'", "Give dump_path"),
    (CPU, {"kernel_dump": {"net_name": "a b"}}, "kernel_dump.net_name: 'a b'", "letters, digits"),
    (CPU, {"kernel_dump": {"iteration": "1-"}}, "kernel_dump.iteration: '1-'", '"0|5-8|100"'),
    (CPU, {"kernel_dump": {"kernels": "a"}}, "kernel_dump.kernels: 'a'", "a list of texts"),
    (
        CPU,
        {"kernel_dump": {"statistic_category": ["mx"]}},
        "kernel_dump.statistic_category",
        "'max', 'min'",
    ),
    (
        CPU,
        {"kernel_dump": {"saved_data": "tensors"}},
        "kernel_dump.saved_data",
        "Did you mean 'tensor'?",
    ),
    (
        CPU,
        {"own": {"data_mode": ["forward"]}},
        "statistics.data_mode",
        "neither a forward nor a backward",
    ),
    (CPU, {"own": {"scope": ["a", "b"]}}, "statistics.scope", "no such choice"),
    (CPU, {"own": {"exclude": ["a"]}}, "statistics.exclude", "no such choice"),
    (CPU, {"own": {"tensor_list": ["a"]}}, "statistics.tensor_list", "no such choice"),
    (CPU, {"own": {"when": "nonfinite"}}, "statistics.when", "no such choice"),
    (CPU, {"own": {"slice": [{"dim": 0}]}}, "statistics.slice", "no such choice"),
    (CPU, {"own": {"list": ["name-regex(a\\d)"]}}, "statistics.list", "MindSpore doubles it"),
]


@pytest.mark.parametrize(
    ("platform", "settings", "named", "reason"), REFUSED, ids=range(len(REFUSED))
)
def test_a_refused_combination_is_named_with_the_reason(made, platform, settings, named, reason):
    with pytest.raises(SettingsError, match=re.escape(named)) as caught:
        made(platform, **settings)
    assert reason in str(caught.value)


def test_a_path_that_mindspore_cannot_write_is_refused():
    with pytest.raises(
        SettingsError,
        match=r"dump_path: '/d/my\.dump' is not allowed\. Allowed: an absolute path of",
    ):
        configuration(load(level="L2"), CPU, "/d/my.dump")


def test_the_refusal_comes_when_the_debugger_is_made(tmp_path):
    before = PrecisionDebugger._living
    with pytest.raises(
        SettingsError, match="the platform has no dump of exceptions; only Ascend has it"
    ):
        PrecisionDebugger(task="exception_dump", level="L2", dump_path=str(tmp_path / "dump"))
    for task in ("structure", "nan_check"):
        with pytest.raises(SettingsError, match=f"task: '{task}' is not allowed"):
            PrecisionDebugger(task=task, level="L2", dump_path=str(tmp_path / "dump"))
    assert PrecisionDebugger._living is before


def test_unknown_keys_are_said_once_with_the_nearest_known_one(tmp_path, caplog):
    caplog.set_level(logging.WARNING, "probe")
    path = tmp_path / "config.yaml"
    path.write_text(
        f"level: L2\ndump_path: {tmp_path}/dump\nkernel_dump: {{iterations: 'all', zzz: 1}}\n"
    )
    PrecisionDebugger(str(path))
    PrecisionDebugger.close()
    (message,) = [message for message in caplog.messages if "unknown keys" in message]
    assert "iterations (did you mean iteration?)" in message
    assert "zzz" in message


def test_the_page_has_every_key_with_its_type_platforms_and_levels():
    page = (ROOT / "docs" / "compiled.md").read_text("utf-8")
    for key, row in KEYS.items():
        (line,) = [line for line in page.splitlines() if line.startswith(f"| `{key}` |")]
        cells = [cell.strip() for cell in line.split("|")]
        platforms = "all" if len(row.platforms) == 3 else ", ".join(row.platforms)
        levels = "all" if len(row.levels) == 3 else ", ".join(row.levels)
        assert cells[2:6] == [row.section.partition("_")[0], row.kind, platforms, levels], key

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Files that crash a parser or the process: each is a SettingsError."""

from __future__ import annotations

import logging
import sys

import mindspore as ms
import pytest
from mindspore import ops

from probe import SettingsError
from probe.config.config_file import ConfigFile
from tests.support.settings_files import as_bytes

pytestmark = pytest.mark.medium

ALIASES = "a: &a [1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 8)}]\n"
    for old, new in zip("abcdefghij", "bcdefghijk")
)


HARMFUL = {
    "whole number of 5,000 digits": '{"step": %s}' % ("7" * 5000),
    "negative number of 5,000 digits": '{"rank": [-%s]}' % ("7" * 5000),
    "size of 5,000 digits": '{"max_disk": %s}' % ("7" * 5000),
    "number of 400 digits in a condition": '{"tensor": {"when": {"stat": "max", ">": %s}}}'
    % ("7" * 400),
    "decimal number of 5,000 digits": '{"step": %s.5e5}' % ("7" * 5000),
    "number of 5,000 digits under nan_check": '{"nan_check": {"max_hits": %s}}' % ("7" * 5000),
    "number of 5,000 digits in a slice": '{"tensor": {"slice": [{"dim": 0, "end": %s}]}}'
    % ("7" * 5000),
    "repetition of 5,000 digits": {"tensor": {"list": ["name-regex(a{" + "7" * 5000 + "})"]}},
    "deep regular expression": {
        "tensor": {"list": ["name-regex(" + "(" * 3000 + ")" * 3000 + ")"]}
    },
    "two ranges of a million numbers": {"step": ["0-999999", "1000000-1999999"]},
    "lone surrogate in a path": '{"dump_path": "/\\ud800"}',
    "lone surrogate in a name": '{"statistics": {"list": ["\\udfff"]}}',
    "lone surrogate in a key": '{"\\ud800": 1}',
    "lone surrogate in a task": '{"task": "\\ud800"}',
    "null character in a path": '{"support_ops": "a\\u0000b"}',
    "deep list": '{"step": ' + "[" * 50_000 + "]" * 50_000 + "}",
    "deep object": '{"tensor":' * 50_000,
    "deep list in a key that has no effect": '{"acc_check": ' + "[" * 50_000 + "]" * 50_000 + "}",
}


HARMFUL_YAML = {
    "deep blocks": "- " * 50_000,
    "hexadecimal number of 5,000 digits": "step: 0x" + "7" * 5000,
    "tag that does not fit": "step: !!int seven",
    "date that does not fit": "step: !!timestamp seven",
    "boolean that does not fit": "quiet: !!bool seven",
    "object of Python": "task: !!python/object/apply:os.getcwd []",
    "list as a key": "? [task]\n: tensor",
    "list that holds itself": "rank: &a [*a]",
    "mapping that holds itself": "statistics: &a {list: *a}",
    "aliases of aliases": ALIASES + "rank: *k\n",
    "control character": "task: \x01",
    "two documents": "task: tensor\n---\ntask: tensor\n",
}


@pytest.mark.parametrize("name", ["config.json", "config.yaml", "config.yml"])
@pytest.mark.parametrize("content", HARMFUL.values(), ids=HARMFUL)
def test_a_harmful_file_is_a_settings_error(error, name, content):
    error(content, name)


@pytest.mark.parametrize("content", HARMFUL_YAML.values(), ids=HARMFUL_YAML)
def test_a_harmful_yaml_file_is_a_settings_error(error, content):
    error(content, "config.yaml")


@pytest.mark.parametrize("content", ["[" * 50_000, "- " * 50_000], ids=["flow", "block"])
@pytest.mark.parametrize("ending", [".json", ".yaml"])
def test_deep_nesting_is_refused_under_any_recursion_limit(load, ending, content):
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(1_000_000)
    try:
        with pytest.raises(SettingsError, match=r"nested too deeply|Expecting value"):
            load(content, f"config{ending}")
    finally:
        sys.setrecursionlimit(limit)


@pytest.mark.parametrize("content", [*HARMFUL.values(), "{", b"\xff\xfe{\x00", {"list": []}, ""])
def test_an_edit_raises_settings_errors_alone(tmp_path, content):
    path = tmp_path / "config.json"
    path.write_text("{}")
    source = ConfigFile(path)
    path.write_bytes(as_bytes(content) + b"\n")
    with pytest.raises(SettingsError, match=r"config\.json"):
        source.changed()
    assert source.changed() is None
    path.write_text('{"task": "tensor"}    ')
    assert source.changed().task == "tensor"


def test_a_training_goes_on_after_a_harmful_edit(debug, caplog):
    caplog.set_level(logging.WARNING, "probe")
    debugger = debug()
    path = debug.path / "config.json"
    good = path.read_text()
    for number, content in enumerate(HARMFUL.values()):
        path.write_bytes(as_bytes(content) + b" " * number)
        debugger.start()
        ops.tanh(ms.Tensor([1.0]))
        debugger.stop()
        debugger.step()
    assert len(list(debug.dump_path.iterdir())) == len(HARMFUL)
    assert sum("config.json" in message for message in caplog.messages) == len(HARMFUL)
    path.write_text(good)


def test_a_harmful_list_of_apis_is_a_settings_error(debug, tmp_path):
    path = tmp_path / "ops.yaml"
    path.write_text("ops: " + "[" * 100_000)  # libyaml crashes the process
    with pytest.raises(
        SettingsError, match=r"support_ops: .*ops\.yaml: line 1, column 106: nested too deeply"
    ):
        debug(support_ops=str(path)).start()

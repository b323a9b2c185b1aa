# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Settings files with mistakes: each is one SettingsError that says where it is and how to mend it."""

from __future__ import annotations

import json
import logging
import os
import sys
from dataclasses import fields
from pathlib import Path

import mindspore as ms
import pytest
from mindspore import ops

import probe
from probe import SettingsError
from probe.config import settings as config
from probe.config.config_file import ConfigFile
from probe.config.settings import Settings

DOCS = Path(probe.__file__).parent.parent / "docs"
BOTH = pytest.mark.parametrize("name", ["config.json", "config.yaml"])


def as_bytes(content):
    if isinstance(content, bytes):
        return content
    return (content if isinstance(content, str) else json.dumps(content)).encode()


@pytest.fixture
def load(tmp_path):
    def load(content, name="config.json", **arguments):
        (tmp_path / name).write_bytes(as_bytes(content))
        return config.load(tmp_path / name, **arguments)

    return load


@pytest.fixture
def error(load):
    """Return the message of the error, without the folder of the file."""

    def error(content, name="config.json", **arguments):
        with pytest.raises(SettingsError) as caught:
            load(content, name, **arguments)
        message = str(caught.value)
        message.encode()  # every stream of UTF-8 can print it
        assert len(message) < 1000
        return message

    return error


# -- misplaced and unknown keys -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "key", "place"),
    [
        ({"list": ["relu"]}, "list", 'under the name of the task, as in {"statistics": {"list": ...}}'),
        ({"last_calls": 3}, "last_calls", 'under \'nan_check\': {"nan_check": {"last_calls": ...}}'),
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
    assert "'maxhits' is not allowed" in message
    assert "Did you mean 'max_hits', under 'nan_check'" in message


# -- the file is named --------------------------------------------------------------------------------------------


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


# -- encodings ----------------------------------------------------------------------------------------------------

CHINESE = '{"task": "tensor",\n "dump_path": "/数据/中文"}'


@BOTH
def test_a_byte_order_mark_of_utf_8_is_accepted(load, name):
    settings = load(CHINESE.encode("utf-8-sig"), name)
    assert (settings.task, settings.dump_path) == ("tensor", "/数据/中文")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@BOTH
def test_utf_16_is_named_with_line_and_remedy(error, name, encoding):
    message = error(CHINESE.encode(encoding), name)
    assert "line 1: the file is encoded in UTF-" in message
    assert message.endswith("Save it as UTF-8.")


@BOTH
def test_gbk_is_named_with_line_and_remedy(error, name):
    message = error(CHINESE.encode("gbk"), name)
    assert "line 2: byte 0xca is not UTF-8. The file may be encoded in GBK. Save the file as UTF-8." in message


# -- JSON ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "line", "column"),
    [
        ("// settings\n{}", 1, 1),
        ('{\n "task": "tensor", // arrays\n "step": [1]}', 2, 20),
        ('{"task": "tensor" /* arrays */}', 1, 19),
        ('{"step": [1, # first\n 2]}', 1, 14),
        ("{}\n# end", 2, 1),
    ],
)
def test_a_comment_in_json_is_named_with_line_and_remedy(error, content, line, column):
    message = error(content)
    assert f"line {line}, column {column}: JSON has no comments. Remove it, or use a .yaml file" in message


@pytest.mark.parametrize(
    ("content", "line", "column"),
    [('{"task": "tensor",\n}', 1, 18), ('{"step": [1,\n 2,\n ]}', 2, 3), ('{"step": [1,], "rank": []}', 1, 12)],
)
def test_a_trailing_comma_in_json_is_named_with_line_and_remedy(error, content, line, column):
    assert f"line {line}, column {column}: a comma after the last item. Remove the comma." in error(content)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{'task': 'tensor'}", "' is not a quote of JSON. Put texts and keys in double quotes"),
        ("{“task”: 1}", "“ is not a quote of JSON"),
        ('{"task"： "tensor"}', "： is a full-width character. Write : instead."),  # noqa: RUF001
        ('{"task": "tensor"， "level": "L1"}', "， is a full-width character. Write , instead."),  # noqa: RUF001
        ('{"quiet": True}', "True is not JSON. Write true."),
        ('{"dump_path": "C:\\dump"}', "Write two backslashes, or / in a path."),
        ('{"task": "tensor" "level": "L1"}', "a comma or a closing bracket is missing"),
    ],
)
def test_other_mistakes_in_json_name_the_remedy(error, content, words):
    message = error(content)
    assert "line 1, column " in message
    assert words in message


# -- duplicate keys -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "key", "line", "first"),
    [
        ('{"task": "tensor",\n "level": "L1",\n "task": "statistics"}', "task", 3, 1),
        ('{"tensor": {"list": [],\n "list": ["relu"]}}', "list", 2, 1),
        ('{"tensor": {"list": [], "list": ["relu"]}}', "list", 1, 1),
        ('{"tensor": {"when": {"stat": "max",\n\n "stat": "min"}}}', "stat", 3, 1),
    ],
)
@BOTH
def test_a_duplicate_key_is_named_with_both_lines(error, name, content, key, line, first):
    assert f"line {line}: duplicate key '{key}', first in line {first}. Remove one of the two." in error(content, name)


def test_a_duplicate_key_in_block_style_is_named(error):
    message = error("task: tensor\nstep: [1]\ntask: statistics\n", "config.yaml")
    assert "line 3: duplicate key 'task', first in line 1." in message


def test_a_key_that_only_looks_twice_is_accepted(load):
    content = '{"dump_path": "/a\\\\\\"b\\"{,\\"task\\":", "tensor": {"list": []}, "statistics": {"list": ["list"]}}'
    assert load(content).list == ("list",)
    merged = "tensor: &names {list: [a], data_mode: [all]}\nstatistics:\n  <<: *names\n  list: [c]\n"
    assert load(merged, "config.yaml").list == ("c",)


# -- YAML 1.1 -----------------------------------------------------------------------------------------------------


def test_an_octal_number_of_yaml_is_refused(error):
    message = error("task: tensor\nstep: [8, 010]\n", "config.yaml")
    assert "line 2, column 11: YAML reads 010 as an octal number, 8." in message
    assert message.endswith("Write it without 0 in front, or in quotes.")


@pytest.mark.parametrize(("text", "key"), [("1:30", "step"), ("1:30.5", "rank")])
def test_a_number_of_base_60_is_refused(error, text, key):
    assert f"line 1, column 7: YAML reads {text} as a number of base 60." in error(f"{key}: {text}", "config.yaml")


def test_quoted_numbers_of_yaml_are_texts(load):
    assert load("step: ['010', \"7\"]", "config.yaml").step == {10, 7}


def test_yaml_reads_exponents_and_dates_as_json_does(load):
    text = 'task: tensor\ndump_path: /2026-13-45\ntensor: {when: {stat: max, ">": 1e4}}\n'
    settings = load(text, "config.yaml")
    assert settings.when == ("max", ">", 10000.0)
    assert settings.dump_path == "/2026-13-45"


def test_a_tab_in_yaml_names_the_remedy(error):
    assert "Indent with spaces, not with tabs." in error("tensor:\n\tlist: [relu]\n", "config.yaml")


# -- words --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", ["acc_check", "diff_check", "exception_dump", "overflow_check", "free_benchmark"])
def test_a_task_of_msprobe_is_told_apart_from_a_typo(error, task):
    message = error({"task": task})
    assert f"task: '{task}' is a task of msprobe that probe does not have." in message
    assert "Did you mean" not in message
    assert "'statistics', 'tensor', 'structure', 'nan_check'" in message


def test_a_level_of_msprobe_is_told_apart_from_a_typo(error):
    message = error({"level": "L2"})
    assert "'L2' (kernels) is a level of msprobe that probe does not have. Allowed: 'L0', 'L1', 'mix'" in message
    assert "Did you mean" not in message
    assert "Did you mean 'L1'?" in error({"level": "l1"})


@pytest.mark.parametrize("key", ["list", "exclude", "tensor_list"])
@pytest.mark.parametrize("item", ["name-regex(relu", "name-regex relu)", " name-regex(relu)", "name-regex"])
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


# -- nothing in a file may end a training -------------------------------------------------------------------------

ALIASES = "a: &a [1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 8)}]\n" for old, new in zip("abcdefghij", "bcdefghijk")
)
HARMFUL = {
    "whole number of 5,000 digits": '{"step": %s}' % ("7" * 5000),
    "negative number of 5,000 digits": '{"rank": [-%s]}' % ("7" * 5000),
    "size of 5,000 digits": '{"max_disk": %s}' % ("7" * 5000),
    "number of 400 digits in a condition": '{"tensor": {"when": {"stat": "max", ">": %s}}}' % ("7" * 400),
    "decimal number of 5,000 digits": '{"step": %s.5e5}' % ("7" * 5000),
    "number of 5,000 digits under nan_check": '{"nan_check": {"max_hits": %s}}' % ("7" * 5000),
    "number of 5,000 digits in a slice": '{"tensor": {"slice": [{"dim": 0, "end": %s}]}}' % ("7" * 5000),
    "repetition of 5,000 digits": {"tensor": {"list": ["name-regex(a{" + "7" * 5000 + "})"]}},
    "deep regular expression": {"tensor": {"list": ["name-regex(" + "(" * 3000 + ")" * 3000 + ")"]}},
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
        with pytest.raises(SettingsError, match=r"nested too deeply|a value is missing"):
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
    with pytest.raises(SettingsError, match=r"support_ops: .*ops\.yaml: line 1: nested too deeply"):
        debug(support_ops=str(path)).start()


# -- paths --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["dump_path", "support_ops"])
def test_home_and_variables_in_paths_are_expanded(load, monkeypatch, tmp_path, key):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("RUN_NAME", "run~7")
    monkeypatch.setenv("LITERAL", "$RUN_NAME")
    for given, expected in [
        ("~", str(tmp_path)),
        ("~/dump", f"{tmp_path}/dump"),
        ("$HOME/${RUN_NAME}_a/$RUN_NAME", f"{tmp_path}/run~7_a/run~7"),
        ("/data/~/a$", "/data/~/a$"),
        ("/$LITERAL", "/$RUN_NAME"),
    ]:
        assert getattr(load({key: given}), key) == expected
    assert load({}, dump_path="~/argument").dump_path == f"{tmp_path}/argument"


def test_home_and_variables_in_config_path_are_expanded(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CONFIGS", str(tmp_path))
    (tmp_path / "config.json").write_text('{"task": "tensor"}')
    for given in ("~/config.json", "$CONFIGS/config.json", Path("~/config.json")):
        source = ConfigFile(given)
        assert source.load().task == "tensor"
        assert source.changed() is None
    (tmp_path / "config.json").write_text('{"task": "statistics"}')
    assert source.changed().task == "statistics"


@pytest.mark.parametrize("value", [None, ""])
@pytest.mark.parametrize("key", ["dump_path", "support_ops", "config_path"])
def test_an_undefined_variable_is_a_settings_error(load, monkeypatch, key, value):
    if value is None:
        monkeypatch.delenv("PROBE_SCRATCH", raising=False)
    else:
        monkeypatch.setenv("PROBE_SCRATCH", value)
    read = ConfigFile if key == "config_path" else lambda path: load({key: path})
    with pytest.raises(SettingsError, match=f"{key}: the environment variable 'PROBE_SCRATCH' is not set, or empty"):
        read("$PROBE_SCRATCH/x")


def test_an_unknown_home_is_a_settings_error(error):
    assert "dump_path: the home folder '~no-such-user-here' is unknown" in error({"dump_path": "~no-such-user-here/x"})


def test_a_config_path_belongs_to_the_folder_of_its_debugger(monkeypatch, tmp_path):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    source = ConfigFile("config.json")
    monkeypatch.chdir(tmp_path / "elsewhere")
    (tmp_path / "config.json").write_text('{"task": "tensor"}')
    assert source.changed().task == "tensor"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a system that lets a current folder be removed")
def test_a_current_folder_that_was_removed_is_a_settings_error(monkeypatch, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(SettingsError, match="dump_path: the current folder does not exist"):
        config.load(dump_path="dump")
    assert config.load(dump_path="/dump").dump_path == "/dump"


# -- new settings -------------------------------------------------------------------------------------------------


def test_max_hits_is_a_number_from_0(load, error):
    assert load({"task": "nan_check"}).max_hits == 1
    assert load({"task": "nan_check", "nan_check": {"max_hits": 0}}).max_hits == 0
    assert load({"task": "nan_check", "nan_check": {"max_hits": 7}}).max_hits == 7
    for wrong in (-1, True, 1.5, "3"):
        assert f"nan_check.max_hits: {wrong!r} is not allowed." in error({"nan_check": {"max_hits": wrong}})


def test_quiet_is_a_boolean_at_the_top(load, error):
    assert load({}).quiet is False
    assert load({"quiet": True}).quiet is True
    assert "quiet: 'yes' is not allowed. Allowed: true, false." in error({"quiet": "yes"})


def test_async_dump_is_accepted(load):
    assert load({"async_dump": True}).async_dump is True


# -- the rows -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", fields(Settings), ids=lambda row: row.name)
def test_every_setting_is_documented_and_checked(load, row):
    assert f"\n        {row.name}: " in Settings.__doc__
    assert f"\n| `{row.name}` |" in (DOCS / "settings.md").read_text("utf-8")
    content = {row.name: []} if not row.metadata["tasks"] else {task: {row.name: 2.5} for task in row.metadata["tasks"]}
    if row.name in ("rank", "step"):
        content = {row.name: [2.5]}
    with pytest.raises(SettingsError, match=rf"\b{row.name}: "):
        load(content)


def test_every_default_passes_its_own_check(load):
    defaults = {row.name: row.default for row in fields(Settings) if isinstance(row.default, (str, int, bool))}
    for task in config.TASKS:
        content = {key: value for key, value in defaults.items() if key in config.TOP_ROWS and key != "task"}
        content[task] = {key: value for key, value in defaults.items() if key in config.TASK_ROWS[task]}
        assert load({**content, "task": task}) == load({"task": task})

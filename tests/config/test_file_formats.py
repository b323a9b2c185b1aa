# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""JSON and YAML: encodings, syntax errors with line and remedy, duplicate keys, numbers of YAML 1.1."""

from __future__ import annotations

import pytest

from tests.support.settings_files import BOTH

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

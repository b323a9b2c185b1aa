# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
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
    assert "line 1, column 1: the file is encoded in UTF-16 or UTF-32." in message
    assert message.endswith("Save it as UTF-8.")


@BOTH
def test_gbk_is_named_with_line_and_remedy(error, name):
    message = error(CHINESE.encode("gbk"), name)
    assert (
        "line 2, column 17: byte 0xca is not UTF-8. Save the file as UTF-8, not as GBK." in message
    )


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
    assert (
        f"line {line}, column {column}: JSON has no comments. Remove it, or use a .yaml file"
        in message
    )


@pytest.mark.parametrize(
    ("content", "line", "column"),
    [
        ('{"task": "tensor",\n}', 1, 18),
        ('{"step": [1,\n 2,\n ]}', 2, 3),
        ('{"step": [1,], "rank": []}', 1, 12),
    ],
)
def test_a_trailing_comma_in_json_is_named_with_line_and_remedy(error, content, line, column):
    assert f"line {line}, column {column}: a comma after the last item. Remove the comma." in error(
        content
    )


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{'task': 'tensor'}", "' is not a quote of JSON. Put texts and keys in double quotes"),
        ("{“task”: 1}", "“ is not a quote of JSON"),
        ('{"task"： "tensor"}', "： is a full-width character. Write : instead."),  # noqa: RUF001
        ('{"task": "tensor"， "level": "L1"}', "， is a full-width character. Write , instead."),  # noqa: RUF001
        ('{"quiet": True}', "True is not JSON. Write true, false or null."),
        ('{"dump_path": "C:\\dump"}', "Write two backslashes, or / in a path."),
        ('{"task": "tensor" "level": "L1"}', "Expecting ',' delimiter"),
    ],
)
def test_other_mistakes_in_json_name_the_remedy(error, content, words):
    message = error(content)
    assert "line 1, column " in message
    assert words in message


@pytest.mark.parametrize(
    ("content", "key", "line", "column", "first"),
    [
        ('{"task": "tensor",\n "level": "L1",\n "task": "statistics"}', "task", 3, 2, 1),
        ('{"tensor": {"list": [],\n "list": ["relu"]}}', "list", 2, 2, 1),
        ('{"tensor": {"list": [], "list": ["relu"]}}', "list", 1, 25, 1),
        ('{"tensor":\n {"when": {"stat": "max",\n\n "stat": "min"}}}', "stat", 4, 2, 2),
    ],
)
@BOTH
def test_a_duplicate_key_is_named_with_both_lines(error, name, content, key, line, column, first):
    words = f"line {line}, column {column}: duplicate key '{key}', first in line {first}. Remove one of the two."
    assert words in error(content, name)


def test_a_duplicate_key_in_block_style_is_named(error):
    message = error("task: tensor\nstep: [1]\ntask: statistics\n", "config.yaml")
    assert "line 3, column 1: duplicate key 'task', first in line 1." in message


def test_a_key_that_only_looks_twice_is_accepted(load):
    content = '{"dump_path": "/a\\\\\\"b\\"{,\\"task\\":", "tensor": {"list": []}, "statistics": {"list": ["list"]}}'
    assert load(content).list == ("list",)
    merged = (
        "tensor: &names {list: [a], data_mode: [all]}\nstatistics:\n  <<: *names\n  list: [c]\n"
    )
    assert load(merged, "config.yaml").list == ("c",)


@pytest.mark.parametrize(
    "text",
    ["010", "-010", "1:30", "1:30.5", "0x1F", "0b11", "1_000", "+5", ".5", ".inf", "!!int x"],
)
def test_a_number_that_json_writes_otherwise_is_refused(error, text):
    message = error(f"task: tensor\nstep: [8, {text}]\n", "config.yaml")
    assert f"line 2, column 11: '{text.split()[-1]}' is no JSON number." in message
    assert message.endswith("Write it in decimal without 0 in front, or in quotes.")


def test_quoted_numbers_of_yaml_are_texts(load):
    assert load("step: ['010', \"7\"]", "config.yaml").step == {10, 7}


def test_yaml_reads_exponents_and_dates_as_json_does(load):
    text = 'task: tensor\ntensor: {list: [2026-10-31, 2026-13-45], when: {stat: max, ">": %s}}\n'
    for number in ("1e4", "1E+4", "1.0e4", "10000.0", "10000"):
        settings = load(text % number, "config.yaml")
        assert settings.when == ("max", ">", 10000.0)
        assert settings.list == ("2026-10-31", "2026-13-45")


def test_a_tab_in_yaml_names_the_remedy(error):
    assert "Indent with spaces, not with tabs." in error("tensor:\n\tlist: [relu]\n", "config.yaml")

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Random settings files: each works, or is refused by the one error."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings, strategies as st

from probe import SettingsError
from probe.config.loading import _FOREIGN, load
from probe.config.settings import TASK_ROWS, TOP_ROWS, Settings
from probe.config.validators import TASKS
from tests.support.examples import EXAMPLES, MANY

LIKELY = st.sampled_from(
    [
        "statistics",
        "tensor",
        "structure",
        "L0",
        "L1",
        "mix",
        "md5",
        "all",
        "forward",
        "input",
        "1-3",
        "7",
        "2GB",
        "host",
    ]
    + [
        True,
        False,
        None,
        0,
        3,
        -1,
        2.5,
        [],
        {},
        [1, "4-6"],
        ["all"],
        ["forward", "output"],
        ["relu"],
        "auto",
    ]
    + [
        ["Functional.relu.0.forward", "Cell.a.A.backward.0"],
        "1-999999999",
        "x" * 300,
        "\0",
        "~",
        "../..",
    ]
    + [
        "\ud800",
        ["\udfff"],
        "$NO_SUCH_VARIABLE",
        "~nobody-here/x",
        "name-regex(",
        ["name-regex(a{9}"],
        10**400,
    ]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
VALUES = LIKELY | st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
)
KEYS = st.sampled_from([*TOP_ROWS, *TASK_ROWS["nan_check"], *TASKS, *sorted(_FOREIGN)]) | st.text(
    max_size=12
)
SECTION = st.dictionaries(
    st.sampled_from(sorted(TASK_ROWS["nan_check"])) | KEYS, VALUES, max_size=4
)
STEPS = st.lists(st.integers(0, 99) | st.integers(0, 99).map(str) | st.just("4-6"), max_size=3)
NAMES = st.lists(st.text(min_size=1, max_size=9), max_size=3)
GOOD = st.fixed_dictionaries(
    {},
    optional={
        "task": st.sampled_from(TASKS),
        "level": st.sampled_from(["L0", "L1", "mix"]),
        "step": STEPS,
        "rank": STEPS,
        "max_disk": st.integers(1, 10**15) | st.integers(1, 999).map("{}GB".format),
        "extra_info": st.booleans(),
        "statistics": st.fixed_dictionaries(
            {}, optional={"list": NAMES, "data_mode": st.just(["forward"])}
        ),
    },
)
COMMON = {key: VALUES for key in TOP_ROWS if key != "task"}
FILES = (
    GOOD
    | st.dictionaries(KEYS, VALUES, max_size=6)
    | st.fixed_dictionaries(
        {"task": st.sampled_from(TASKS)}, optional={**COMMON, **dict.fromkeys(TASKS, SECTION)}
    )
)


@pytest.mark.slow
def test_random_settings_files_work_or_raise_settings_error(tmp_path, capsys):
    counts = {"works": 0, "refused": 0}

    @MANY
    @given(FILES, st.sampled_from(["json", "yaml"]))
    def attempt(content, ending):
        path = tmp_path / f"config.{ending}"
        path.write_text(json.dumps(content))
        try:
            assert isinstance(load(path), Settings)
            counts["works"] += 1
        except SettingsError:
            counts["refused"] += 1

    attempt()
    with capsys.disabled():
        print(f"\nrandom settings files: {counts}")
    assert sum(counts.values()) >= EXAMPLES
    assert min(counts.values()) > EXAMPLES // 20


@pytest.mark.slow
def test_random_text_is_refused_as_a_settings_file(tmp_path):
    said = []

    @settings(parent=MANY, max_examples=EXAMPLES // 4)
    @given(
        st.binary(max_size=80) | st.text(max_size=80).map(str.encode),
        st.sampled_from(["json", "yaml", "yml", "txt"]),
    )
    def attempt(content, ending):
        path = tmp_path / f"config.{ending}"
        path.write_bytes(content)
        try:
            load(path)
        except SettingsError as error:
            said.append(str(error))

    attempt()
    assert len(said) > EXAMPLES // 10
    assert all("config" in text for text in said)

# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Random settings files and random arguments: each works, or is refused by the one error."""

from __future__ import annotations

import json
import os

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from probe import SettingsError
from probe.config.settings import _FOREIGN, TASK_ROWS, TOP_ROWS, Settings, load
from probe.config.validators import TASKS
from probe.measure.describe import ValueDescriber
from probe.measure.host import HostMeasurer
from probe.store.documents import encode

#: `make test-force` asks for ten times as many
EXAMPLES = int(os.environ.get("PROBE_EXAMPLES", "1000"))
MANY = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)

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
    + [True, False, None, 0, 3, -1, 2.5, [], {}, [1, "4-6"], ["all"], ["forward", "output"], ["relu"], "auto"]
    + [["Functional.relu.0.forward", "Cell.a.A.backward.0"], "1-999999999", "x" * 300, "\0", "~", "../.."]
    + ["\ud800", ["\udfff"], "$NO_SUCH_VARIABLE", "~nobody-here/x", "name-regex(", ["name-regex(a{9}"], 10**400]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
VALUES = LIKELY | st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
)
KEYS = st.sampled_from([*TOP_ROWS, *TASK_ROWS["nan_check"], *TASKS, *sorted(_FOREIGN)]) | st.text(max_size=12)
SECTION = st.dictionaries(st.sampled_from(sorted(TASK_ROWS["nan_check"])) | KEYS, VALUES, max_size=4)
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
        "statistics": st.fixed_dictionaries({}, optional={"list": NAMES, "data_mode": st.just(["forward"])}),
    },
)
COMMON = {key: VALUES for key in TOP_ROWS if key != "task"}
FILES = (
    GOOD
    | st.dictionaries(KEYS, VALUES, max_size=6)
    | st.fixed_dictionaries({"task": st.sampled_from(TASKS)}, optional={**COMMON, **dict.fromkeys(TASKS, SECTION)})
)


def test_random_settings_files_work_or_raise_the_one_error(tmp_path, capsys):
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


def test_random_text_is_no_settings_file(tmp_path):
    said = []

    @settings(parent=MANY, max_examples=EXAMPLES // 4)
    @given(
        st.binary(max_size=80) | st.text(max_size=80).map(str.encode), st.sampled_from(["json", "yaml", "yml", "txt"])
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


class Stranger:
    """No kind of value that a record knows."""


LEAVES = SCALARS | st.sampled_from(
    [
        ...,
        slice(1, None, 2),
        np.float32(3),
        np.int64(-2),
        np.bool_(True),
        np.zeros((2, 0)),
        b"bytes",
        {1, 2},
        Stranger(),
    ]
    + [np.array(["text"]), np.array([1 + 2j]), np.datetime64("2026-01-01"), float, len, 1j, 2**80, "=1+1"]
)
ARGUMENTS = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=6) | st.integers(), inner, max_size=4)
    ),
    max_leaves=30,
)


def test_random_arguments_become_valid_json():
    describe = ValueDescriber(HostMeasurer(md5=False)).value

    @MANY
    @given(ARGUMENTS)
    def attempt(argument):
        text = encode(describe(argument, "name", None), "   ")
        json.loads(text)

    attempt()


def test_a_number_that_python_does_not_write_is_described():
    text = encode(ValueDescriber(HostMeasurer(md5=False)).value(10**5000, "name", None), "")
    assert json.loads(text) == {"type": "int", "value": "a number of 16610 bits"}

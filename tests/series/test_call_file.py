# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The file of the calls of rolling records."""

import math
import os

import pytest

from probe.series.call_file import CallContent, CallFile

ROW = {"output.0.norm": 1.5, "output.0.max": -2.0}


def read(path):
    return dict(CallContent(path.read_bytes()).rows())


def written(path, steps, entry="Functional.relu.0.forward"):
    file = CallFile(str(path), 5)
    for step in range(steps):
        file.write(step, {entry: {**ROW, "output.0.norm": float(step)}})
    file.close()
    return path


def test_each_step_has_the_numbers_of_its_calls(tmp_path):
    path = written(tmp_path / "r" / "calls.bin", 3)
    names = ["Functional.relu.0.forward.output.0.norm", "Functional.relu.0.forward.output.0.max"]
    assert read(path) == {step: dict(zip(names, [float(step), -2.0])) for step in range(3)}


def test_nan_and_inf_stay_and_a_number_above_float32_is_inf(tmp_path):
    path = tmp_path / "calls.bin"
    file = CallFile(str(path), 5)
    file.write(0, {"f": {"a": math.nan, "b": -math.inf, "c": 1e300, "d": -1e300}})
    file.close()
    row = read(path)[0]
    assert math.isnan(row["f.a"])
    assert [row["f.b"], row["f.c"], row["f.d"]] == [-math.inf, math.inf, -math.inf]


@pytest.mark.parametrize("cut", [1, 7, 20])
def test_a_cut_file_has_all_complete_steps_and_is_continued(tmp_path, cut):
    path = written(tmp_path / "calls.bin", 4)
    os.truncate(path, path.stat().st_size - cut)
    assert list(read(path)) == [0, 1, 2]
    file = CallFile(str(path), 5)
    file.write(9, {"Functional.relu.0.forward": ROW, "other": {"x": 1.0}})
    file.close()
    assert list(read(path)) == [0, 1, 2, 9]
    assert read(path)[9]["other.x"] == 1.0


def test_a_damaged_step_is_left_out_alone(tmp_path):
    path = written(tmp_path / "calls.bin", 4)
    content = bytearray(path.read_bytes())
    content[-10] ^= 0xFF  # in the last step
    path.write_bytes(content)
    assert list(read(path)) == [0, 1, 2]
    file = CallFile(str(path), 5)
    file.write(4, {"Functional.relu.0.forward": ROW})
    file.close()
    assert list(read(path)) == [0, 1, 2, 4]


def test_a_file_above_the_limit_loses_every_second_of_the_oldest_rounds(tmp_path):
    path = tmp_path / "calls.bin"
    limit = 4000
    file = CallFile(str(path), 5, limit)
    for step in range(1000):
        file.write(step, {"Functional.relu.0.forward": ROW})
    file.close()
    assert path.stat().st_size <= limit
    steps = list(read(path))
    assert steps[-1] == 999 and steps == sorted(steps)
    gaps = [after - before for before, after in zip(steps, steps[1:])]
    assert steps[0] < 700, "old rounds are thinned, not cut"
    assert max(gaps[-20:]) == 1 and max(gaps) > 5


def test_another_file_is_refused():
    with pytest.raises(ValueError, match="no file of calls"):
        CallContent(b"something else")

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Two runs with rolling records: the first step that leaves the noise, and the call."""

import math

import pytest

from probe.series.call_file import CallContent, CallFile
from probe.series.call_pairs import compare_calls

RELU, TANH = "Functional.relu.0.forward", "Functional.tanh.0.forward"


def numbers(entry, into, out, lowest=None):
    """Return the numbers of a call whose largest elements are these."""
    return {
        entry: {
            f"{place}.{name}": number
            for place, size in (("input.0", into), ("output.0", out))
            for name, number in {
                "max": size,
                "min": -size if lowest is None else lowest,
                "mean": 0.1 * size,
                "norm": 3 * size,
            }.items()
        }
    }


def run(tmp_path, name, rows):
    file = CallFile(str(tmp_path / name), 3)
    for step, row in rows:
        file.write(step, row)
    file.close()
    return CallContent((tmp_path / name).read_bytes())


def steps(change=lambda step: 1.0, before=lambda step: 1.0):
    """Return the rows of 12 steps in rounds of three; ``change`` multiplies what relu gives, ``before`` all inputs."""
    for step in range(1, 13):
        factor = before(step)
        if step % 3 == 1:
            yield step, numbers(RELU, 1.0 * factor, 0.5 * factor * change(step))
        elif step % 3 == 2:
            yield step, numbers(TANH, 0.5 * factor * change(step), 0.4 * factor * change(step))


def test_equal_runs_agree_and_the_number_of_records_is_told(tmp_path):
    left, right = run(tmp_path, "a", steps()), run(tmp_path, "b", steps())
    assert compare_calls(left, right) == (None, 8)


def test_the_call_is_named_whose_output_differs_by_more_than_its_input(tmp_path):
    left = run(tmp_path, "a", steps())
    right = run(tmp_path, "b", steps(lambda step: 1.01 if step >= 6 else 1.0))
    found, count = compare_calls(left, right)
    assert (found.entry, found.first, found.step, count) == (RELU, 7, 7, 8)
    assert "from step 7 on" in found.sentence


def test_a_difference_from_outside_blames_no_call(tmp_path):
    left = run(tmp_path, "a", steps())
    right = run(tmp_path, "b", steps(before=lambda step: 1.1 if step >= 6 else 1.0))
    found, _ = compare_calls(left, right)
    assert (found.entry, found.first) == ("", 7)


@pytest.mark.parametrize(("fault", "first"), [(1.1, 7), (1.002, None)])
def test_runs_with_noise_differ_where_it_is_left(tmp_path, fault, first):
    left = run(tmp_path, "a", steps())
    noise = lambda step: 1 + 3e-4 * (1 + step % 2)  # noqa: E731
    right = run(tmp_path, "b", steps(lambda step: fault if step >= 7 else 1.0, noise))
    found, _ = compare_calls(left, right)
    if first is None:
        assert found is None or found.first < 7
    else:
        assert (found.entry, found.first) == (RELU, first)


def test_nan_on_one_side_is_a_difference(tmp_path):
    left = run(tmp_path, "a", steps())
    right = run(tmp_path, "b", steps(lambda step: math.nan if step >= 6 else 1.0))
    found, _ = compare_calls(left, right)
    assert (found.entry, found.first) == (RELU, 7)


def test_the_mask_of_an_input_hides_no_difference_of_its_numbers(tmp_path):
    rows = {
        side: [(step, numbers(TANH, size, size, lowest=-1e9)) for step in (1, 4)]
        for side, size in (("a", 1.0), ("b", 1.5))
    }
    left, right = (run(tmp_path, side, rows[side]) for side in "ab")
    assert compare_calls(left, right)[0].entry == ""


def test_a_later_round_blames_nobody_though_few_steps_of_a_round_record(tmp_path):
    def rows(is_faulty):
        for step in range(1, 60, 6):
            late = 2.0 if is_faulty and step >= 25 else 1.0
            early = 1.01 if is_faulty and step >= 7 else 1.0
            if step % 12 == 1:
                yield step, numbers(RELU, 1.0, 0.5 * late)
            else:
                yield step, numbers(TANH, 0.5, 0.4 * early)

    found, _ = compare_calls(run(tmp_path, "a", rows(False)), run(tmp_path, "b", rows(True)))
    assert (found.entry, found.first) == (TANH, 7)

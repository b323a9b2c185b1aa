# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The file of the monitor: what is written is read, also while it grows, after a kill, and with new columns."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from probe.errors import UsageError
from probe.series.file import MARK, RankSeries, SeriesFile, SeriesTail, sections
from probe.series.series import find_series, open_series

ROWS = [
    (0, {"loss": 1.5}),
    (1, {"loss": 1.25, "w.grad": 2.0}),
    (2, {"w.grad": 3.0}),
    (3, {"loss": 0.5, "w.grad": 4.0}),
]


def written(folder, rows=ROWS):
    file = SeriesFile(str(folder))
    for row in rows:
        file.write(*row)
    file.close()
    return file.path


def test_all_rows_come_back(tmp_path):
    series = RankSeries(written(tmp_path), 0)
    assert list(series.rows()) == ROWS
    assert (series.steps, series.names) == ([0, 1, 2, 3], ["loss", "w.grad"])
    assert series["loss"].steps.tolist() == [0, 1, 3]
    assert series["w.grad"].values.tolist() == [2.0, 3.0, 4.0]


def test_a_row_is_there_as_soon_as_it_is_written(tmp_path):
    file = SeriesFile(str(tmp_path))
    tail = None
    for row in ROWS:
        file.write(*row)
        tail = tail or SeriesTail(file.path)
        assert tail.new_rows() == [row]
        assert tail.new_rows() == []


@pytest.mark.parametrize("cut", range(1, 13))
def test_a_row_that_is_cut_comes_when_it_is_whole(tmp_path, cut):
    content = (tmp_path / "source", written(tmp_path / "source"))[1]
    with open(content, "rb") as file:
        whole = file.read()
    path = tmp_path / "copy"
    path.write_bytes(whole[:-cut])
    tail = SeriesTail(str(path))
    assert tail.new_rows() == ROWS[:-1]
    path.write_bytes(whole)
    assert tail.new_rows() == ROWS[-1:]


@pytest.mark.parametrize("cut", [1, 7, 11])
def test_a_file_that_a_killed_process_left_is_continued_behind_its_last_whole_row(tmp_path, cut):
    path = written(tmp_path)
    with open(path, "r+b") as file:
        file.truncate(file.seek(0, 2) - cut)
    written(tmp_path, [(9, {"loss": 9.0})])
    assert list(RankSeries(path, 0).rows()) == [*ROWS[:-1], (9, {"loss": 9.0})]


def test_of_two_rows_of_one_step_the_last_counts(tmp_path):
    path = written(tmp_path, [(4, {"loss": 1.0}), (5, {"loss": 2.0}), (4, {"loss": 3.0})])
    series = RankSeries(path, 0)["loss"]
    assert (series.steps.tolist(), series.values.tolist()) == ([4, 5], [3.0, 2.0])


def test_numbers_of_rows_that_look_like_the_begin_of_a_section_are_none(tmp_path):
    odd = float(np.frombuffer(MARK[:4], "<f4")[0])
    rows = [(0, {"loss": odd}), (1, {"loss": odd}), (2, {"loss": 1.0})]
    assert [value["loss"] for _, value in RankSeries(written(tmp_path, rows), 0).rows()] == [
        odd,
        odd,
        1.0,
    ]


def test_another_file_is_refused(tmp_path):
    (tmp_path / "x").write_bytes(b"something else\n" * 9)
    with pytest.raises(UsageError, match="cannot be read"):
        RankSeries(str(tmp_path / "x"), 0)
    with pytest.raises(UsageError, match="no file of the monitor"):
        open_series(str(tmp_path))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.lists(
        st.dictionaries(st.sampled_from(["a", "b", "c"]), st.floats(width=32, allow_nan=False)),
        max_size=8,
    )
)
def test_a_section_begins_with_each_new_column(tmp_path_factory, values):
    rows = list(enumerate(values))
    path = written(tmp_path_factory.mktemp("series"), rows)
    if not rows:
        return
    with open(path, "rb") as file:
        content = file.read()
    found = list(sections(content))
    seen, news = {}, 0
    for place, (_, value) in enumerate(rows):
        news += bool(value.keys() - seen.keys()) or (not place) or len(seen) == 0
        seen.update(value)
    assert len(found) == news
    assert sum(section.rows for section in found) == len(rows)
    assert list(RankSeries(path, 0).rows()) == rows
    assert all(json.loads(content[: content.index(b"\n")])["names"][0] == "step" for _ in found)


def test_ranks_are_found_in_their_order(tmp_path):
    for rank in ("rank10", "rank2", "rank", "other"):
        written(tmp_path / "monitor" / rank, ROWS[:1])
    assert [rank for _, rank in find_series(str(tmp_path))] == [None, 2, 10]
    (own,) = find_series(str(tmp_path / "monitor" / "rank2"))
    assert own[1] == 2
    assert find_series(own[0]) == [own]
    assert find_series(str(tmp_path / "nothing")) == []

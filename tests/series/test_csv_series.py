# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The csv files of TrainerMon are read as series."""

from __future__ import annotations

import os

import pytest

from probe import UsageError
from probe.__main__ import main
from probe.series.series import open_series

HEAD = "vpp_stage,name,step,max,norm,shape,dtype\n"


def write(folder, run="Nov25_20-12-58-rank0-1ab721d1", norms=("1.0", "2.0", "nan")):
    """Write the files of one rank: a file for each kind and two steps."""
    own = folder / run
    own.mkdir(parents=True, exist_ok=True)
    for step, norm in enumerate(norms):
        for kind in ("grad_unreduced", "grad_reduced", "param_updated", "exp_avg"):
            file = own / f"{kind}_{step - step % 2}-{step - step % 2 + 1}.csv"
            has_head = file.exists()
            with file.open("a") as lines:
                lines.write(
                    ("" if has_head else HEAD) + f'0,fc.weight,{step},4.0,{norm},"(2, 3)",Float32\n'
                )
    return own


def test_each_kind_has_the_names_of_task_monitor(tmp_path):
    write(tmp_path)
    (rank,) = open_series(str(tmp_path))
    assert (rank.rank, rank.steps) == (0, [0, 1, 2])
    assert {
        "fc.weight.grad",
        "fc.weight.grad_in",
        "fc.weight.param",
        "optimizer.moment1.fc.weight",
    } < set(rank.names)
    assert str(rank["fc.weight.grad"].values.tolist()) == "[1.0, 2.0, nan]"
    assert rank["fc.weight.grad.max"].values.tolist() == [4.0, 4.0, 4.0]


def test_of_several_runs_the_newest_of_each_rank_counts(tmp_path):
    old = write(tmp_path, norms=("5.0",))
    write(tmp_path, "Nov26_20-12-58-rank0-aaaaaaaa", ("1.0", "2.0"))
    write(tmp_path, "Nov26_20-12-58-rank1-aaaaaaaa", ("1.0",))
    os.utime(old, (0, 0))
    assert [(item.rank, item.steps) for item in open_series(str(tmp_path))] == [
        (0, [0, 1]),
        (1, [0]),
    ]
    assert open_series(str(old))[0].steps == [0]


@pytest.mark.parametrize(("command", "status"), [("watch", 1), ("trend", 1)])
def test_the_commands_read_them_and_judge(tmp_path, capsys, command, status):
    write(tmp_path)
    assert main([command, str(tmp_path)]) == status
    assert "NaN" in capsys.readouterr().out


def test_rows_that_are_cut_or_wrong_are_left_out(tmp_path):
    own = write(tmp_path)
    with (own / "grad_unreduced_0-1.csv").open("a") as lines:
        lines.write(
            "0,fc.weight,x,1,1\n0,fc.weight,-1,1,1\n0,fc.weight,1e400,1,1\n0,b\x00,1,a,b\n0,fc.wei"
        )
    (rank,) = open_series(str(tmp_path))
    assert rank.steps == [0, 1, 2]


def test_a_file_that_is_none_is_named(tmp_path):
    own = write(tmp_path)
    os.mkfifo(own / "grad_unreduced_4-5.csv")
    with pytest.raises(UsageError, match="it is a FIFO"):
        open_series(str(tmp_path))


def test_a_running_training_is_followed_in_the_file_of_task_monitor_alone(tmp_path, capsys):
    write(tmp_path)
    assert main(["watch", str(tmp_path), "--follow"]) == 2
    assert "--follow needs the file of task monitor" in capsys.readouterr().err

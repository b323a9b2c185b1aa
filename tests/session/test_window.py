# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Which steps and ranks are recorded."""

from __future__ import annotations

import numpy as np
import pytest
from mindspore import ops

from probe import SettingsError
from tests.support.tensors import tensor

X = tensor(np.arange(6.0).reshape(2, 3))


def test_only_the_chosen_steps_are_recorded_and_init_step_sets_the_number(debug):
    debugger = debug(step=[1, "3"])
    for _ in range(5):
        debugger.start()
        ops.exp(X)
        debugger.stop()
        debugger.step()
    assert sorted(path.name for path in debug.dump_path.iterdir()) == ["step1", "step3"]
    debugger.set_init_step(3)
    debugger.start()
    ops.exp(X)
    ops.exp(X)
    debugger.stop()
    assert len(debug.dump(3).data) == 2


def test_rank_id_names_the_folder_and_rank_chooses_who_records(debug):
    debugger = debug(rank=["1-2"])
    for rank in (0, 1):
        debugger.start(rank_id=rank)
        ops.exp(X)
        debugger.stop()
        debugger.step()
    assert debug.dump(1, 1).data
    assert not (debug.dump_path / "step0").exists()


def test_step_may_name_every_third_step_and_some_others(debug):
    debugger = debug(step=["every 3", 1, "7-8"])
    for _ in range(10):
        debugger.start()
        ops.exp(X)
        debugger.stop()
        debugger.step()
    assert sorted(int(path.name[4:]) for path in debug.dump_path.iterdir()) == [0, 1, 3, 6, 7, 8, 9]


@pytest.mark.parametrize("wrong", ["every 0", "every", "every -2", "each 3"])
def test_a_wrong_step_is_refused_with_an_example_of_every(debug, wrong):
    with pytest.raises(SettingsError, match=r'step: .*"every 100"'):
        debug(step=[wrong])

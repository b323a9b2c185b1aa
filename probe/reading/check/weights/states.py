# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The states of an optimizer among the parameters of a checkpoint, by their names."""

from __future__ import annotations

import re
from collections.abc import Container

from probe.findings.sentence import Sentence, say

#: the first part of the names of an optimizer's states
_STATE = re.compile(
    r"(moments?\d?|adam_[mv]|exp_avg(_sq)?|accum(ulation)?|stat|velocity|mean_square|mean_gradient|linear|"
    r"optimizer|state|hidden_state|.*_(m|v|moment\d?))\."
)
#: the names of an optimizer's numbers
_NUMBERS = re.compile(
    r"(global_step|learning_rate|beta[12]_power|weight_decay|momentum|loss_scale|scale_sense|current_iterator_step|"
    r"last_overflow_iterator_step|step_num|epoch_num|learning_rate_group_\d+)$"
)


def state_of(name: str, names: Container[str]) -> str:
    """Return the kind of an optimizer's state, "" for a parameter; ``names`` has all names of the checkpoint."""
    if _NUMBERS.match(name):
        return name
    match = _STATE.match(name)
    if match is None:
        return ""
    parameter = name[match.end() :]
    is_own = match[1].startswith(("optimizer", "state"))
    return match[0][:-1] if is_own or parameter in names else ""


def states(kind: str, count: int) -> Sentence | str:
    """Return a kind of states, and how many tensors it has."""
    if _NUMBERS.match(kind):
        return kind
    if kind == "optimizer":  # torch numbers them
        return say("check.tensors", count=count)
    return say("check.states", name=kind, count=count)

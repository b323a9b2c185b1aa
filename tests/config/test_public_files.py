# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A hundred settings files as people publish them for msprobe: each loads, or one line says why not."""

from __future__ import annotations

import copy
import itertools
import json

import pytest

from probe import SettingsError
from probe.config.loading import load

#: the template of msprobe's own documents: every task has its section
TEMPLATE = {
    "task": "statistics",
    "dump_path": "/home/data_dump",
    "rank": [],
    "step": [],
    "level": "L1",
    "enable_dataloader": False,
    "async_dump": False,
    "extra_info": True,
    "precision": "high",
    "seed": 1234,
    "is_deterministic": False,
    "acl_config": "",
    "statistics": {
        "scope": [],
        "list": [],
        "tensor_list": [],
        "data_mode": ["all"],
        "summary_mode": "statistics",
    },
    "tensor": {
        "scope": [],
        "list": [],
        "data_mode": ["all"],
        "backward_input": [],
        "file_format": "npy",
        "summary_mode": "statistics",
        "bench_path": "/home/bench_data_dump",
        "diff_nums": 5,
    },
    "structure": {"scope": [], "list": [], "data_mode": ["all"]},
    "exception_dump": {"scope": [], "list": [], "data_mode": ["all"]},
    "overflow_check": {"overflow_nums": 1, "check_mode": "all"},
    "acc_check": {"white_list": [], "black_list": [], "error_data_path": "./"},
    "run_ut": {
        "white_list": [],
        "black_list": [],
        "error_data_path": "./",
        "online_run_ut": False,
        "nfs_path": "",
        "host": "",
        "port": -1,
    },
    "grad_probe": {"grad_level": "L1", "param_list": [], "bounds": [-1, 0, 1]},
    "diff_check": {"diff_nums": 1},
    "free_benchmark": {
        "scope": [],
        "list": [],
        "fuzz_device": "npu",
        "pert_mode": "improve_precision",
        "handler_type": "check",
        "fuzz_level": "L1",
        "fuzz_stage": "forward",
        "if_preheat": False,
        "preheat_step": 15,
        "max_sample": 20,
        "pert_type": "improve_precision",
    },
}
SERVED, REFUSED = (
    ("statistics", "tensor", "structure"),
    (
        "overflow_check",
        "acc_check",
        "run_ut",
        "grad_probe",
        "diff_check",
        "free_benchmark",
    ),
)


def whole(task="statistics", section=None, **top):
    """Return the template with changes at the top, and in the section of the task."""
    content = copy.deepcopy(TEMPLATE)
    content.update(task=task, **top)
    content.setdefault(task, {}).update(section or {})
    return content


def short(task="statistics", section=None, **top):
    """Return a file with one section."""
    return {"task": task, "dump_path": "./dump", **top, task: section or {}}


def _files():
    """Yield (content, the setting and its value, or None, and a part of the line that refuses it)."""
    for form, task, level in itertools.product((whole, short), SERVED, ("L0", "L1", "mix")):
        kept = "mix" if (task, level) == ("structure", "L1") else level
        yield form(task, level=level), ("level", kept), ""
    for task in ("statistics", "tensor"):
        for level, form in itertools.product(("debug", "L2"), (whole, short)):
            yield form(task, level=level), ("level", level), ""
        for given, steps in (
            ([0], {0}),
            (["0-2"], {0, 1, 2}),
            ([0, "3-5", 8], {0, 3, 4, 5, 8}),
            ([], set()),
        ):
            yield short(task, step=given), ("step", frozenset(steps)), ""
            yield short(task, rank=given), ("rank", frozenset(steps)), ""
        for names in (
            [],
            ["relu"],
            ["Functional.relu", "Mint.matmul"],
            ["name-regex(layers\\.[0-3]\\.)"],
        ):
            yield short(task, {"list": names}), ("list", ...), ""
        for mode in (
            ["all"],
            ["forward"],
            ["backward"],
            ["input", "output"],
            ["forward", "input"],
            [],
        ):
            yield short(task, {"data_mode": mode}), ("data_mode", ...), ""
        scope = ["Functional.relu.0.forward", "Functional.relu.3.forward"]
        yield short(task, {"scope": scope}), ("scope", tuple(scope)), ""
        yield (
            short(
                task, {"scope": ["Cell.fc.Dense.forward.0", "Cell.fc.Dense.backward.0"]}, level="L0"
            ),
            ("level", "L0"),
            "",
        )
    for mode in ("statistics", "md5", ["max", "min"], ["mean", "l2norm"], ["max", "nan count"]):
        yield short("statistics", {"summary_mode": mode}), ("summary_mode", ...), ""
    yield short("statistics", {"tensor_list": ["relu"]}), ("tensor_list", ("relu",)), ""
    yield short("tensor", {"summary_mode": "md5"}), ("summary_mode", "md5"), ""
    yield (
        short("tensor", {"file_format": "npy", "bench_path": "/b", "diff_nums": 3}),
        ("task", "tensor"),
        "",
    )
    yield short("statistics", {"summary_mode": "hash"}, level="L2"), ("summary_mode", ...), ""
    yield short("statistics", {"device": "device", "precision": "low"}), None, "precision"
    for top in (
        {"extra_info": False},
        {"async_dump": True},
        {"precision": "low"},
        {"dump_enable": False},
        {"seed": 42},
        {"is_deterministic": True},
        {"enable_dataloader": True},
        {"acl_config": "/a.json"},
        {"risk_level": "ALL"},
        {"jit_level": "O0"},
        {"rank": None},
        {"step": None},
        {"free_benchmark": None},
        {"grad_probe": {}},
    ):
        yield whole(**top), ("task", "statistics"), ""
    for task in REFUSED:
        yield whole(task), None, task
        yield short(task), None, task
    yield whole("exception_dump"), None, "exception_dump"
    for task in ("nan_check", "monitor"):
        yield short(task), ("task", task), ""
    # mistakes that people make
    yield short(level="L3"), None, "level"
    yield short(level="l1"), None, "'L1'"
    yield short("statistic"), None, "statistics"
    yield {"task": "tensor", "list": ["relu"]}, None, '{"tensor": {"list": ...}}'
    yield short("tensor", {"scop": []}), None, "scope"
    yield short(rank="0"), ("rank", frozenset({0})), ""
    yield short(rank="zero"), None, "rank"
    yield short(step=["a-b"]), None, "step"
    yield short(step=[-1]), None, "step"
    yield short("statistics", {"data_mode": ["forwards"]}), None, "data_mode"
    yield short("statistics", {"summary_mode": "md4"}), None, "summary_mode"
    yield short("statistics", {"summary_mode": "hash"}), None, "hash"
    yield short("statistics", {"scope": ["relu"]}), None, "scope"
    yield {"task": ["statistics"]}, None, "task"
    yield [], None, "content"


FILES = list(_files())


def test_there_are_a_hundred():
    assert len({json.dumps(content) for content, *_ in FILES}) >= 100
    assert {key for content, *_ in FILES for key in content} >= set(TEMPLATE)


@pytest.mark.parametrize("number", range(len(FILES)))
def test_each_loads_or_one_line_says_why_not(tmp_path, number):
    content, kept, refusal = FILES[number]
    path = tmp_path / "config.json"
    path.write_text(json.dumps(content, indent=4))
    if kept is None:
        with pytest.raises(SettingsError) as caught:
            load(path)
        line = str(caught.value)
        assert "\n" not in line
        assert line.startswith(str(path))
        assert refusal in line
    else:
        settings = load(path)
        name, value = kept
        assert value is ... or getattr(settings, name) == value

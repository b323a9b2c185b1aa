# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
# ruff: noqa: RUF001 - Chinese has its own commas
"""Real ranks: faults between them are named by every command, and healthy layouts are not accused."""

from __future__ import annotations

import json

import pytest

from probe.__main__ import main
from tests.reading.report.runs import columns
from tests.support.launch import launch
from tests.support.thorough import thorough_but

pytestmark = pytest.mark.slow

RANKS = (2, 4)
#: fault -> kind of the first finding, a part of its name, whether rank 3 of four is apart alone
FAULTS = {
    "a_seed_each": ("parameter", "first.weight", False),
    "a_seed_each_without_a_model": ("parameter", "MatMul.0.forward.input.1", False),
    "a_seed_each_in_one_bucket": ("parameter", "first.weight", False),
    "last_has_another_seed": ("parameter", "first.weight", True),
    "one_layer_not_shared": ("parameter", "middle.weight", False),
    "statistic_apart": ("statistic", "norm.moving_mean", True),
    "last_evaluates": ("mode", "", True),
    "distributed_tensor_apart": ("parameter", "same", True),
}
WHOLE = (
    "a_seed_each",
    "a_seed_each_without_a_model",
    "a_seed_each_in_one_bucket",
    "last_has_another_seed",
)
HEALTHY = [
    "data_parallel", "data_parallel_without_a_model", "data_parallel_in_one_bucket", "zero", "tensor_parallel",
    "pipeline", "pipeline_with_the_same_names", "one_without_a_model", "distributed_tensors",
]  # fmt: skip
OF_FOUR = ["tensor_and_data_parallel"]
MONITORED = {"monitored_a_seed_each": True, "monitored": False}
NOT_KNOWN = "a_seed_each_and_nothing_in_common"


@pytest.fixture(
    scope="module", params=thorough_but([2], RANKS), ids=[f"{ranks}_ranks" for ranks in RANKS]
)
def trained(request, tmp_path_factory):
    """Return the number of ranks, and the folder with a dump of each case."""
    folder = tmp_path_factory.mktemp(f"agreement{request.param}")
    names = [*FAULTS, *HEALTHY, NOT_KNOWN, *MONITORED, *(OF_FOUR if request.param == 4 else [])]
    launch("agreement.py", request.param, folder, *names)
    return request.param, folder


def answer(capsys, *words):
    """Return the exit status of a command, and its answer from JSON."""
    jobs = [] if words[0] == "watch" else ["--jobs", "1"]
    status = main([*map(str, words), *jobs, "--json"])
    return status, json.loads(capsys.readouterr().out)


def text(capsys, *words):
    status = main([*map(str, words), "--jobs", "1"])
    return status, capsys.readouterr().out


def page_of(dump, folder):
    """Return the status of a report, and the description in its page."""
    page = folder / "page.html"
    status = main(["report", str(dump), "-o", str(page), "--jobs", "1"])
    return status, columns(page)["description"]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named_first(trained, fault, capsys):
    ranks, folder = trained
    kind, name, is_last = FAULTS[fault]
    status, found = answer(capsys, "ranks", folder / fault)
    assert status == 1
    first = found[0]
    assert (first["kind"], first["step"], first["name"].endswith(name)) == (kind, 0, True), first
    assert first["ranks"] == ([3] if is_last and ranks == 4 else list(range(ranks)))
    said = first["sentence"]
    if fault in WHOLE:
        assert said.startswith("all 6 parameters ")
    if kind != "mode" and not (is_last and ranks == 4):
        assert "the ranks alone do not tell which one is right" in said


@pytest.mark.parametrize("case", [*HEALTHY, *OF_FOUR])
def test_a_healthy_layout_is_not_accused(trained, case, capsys):
    ranks, folder = trained
    if case in OF_FOUR and ranks < 4:
        pytest.skip("two ranks have no two axes")
    assert answer(capsys, "ranks", folder / case) == (0, [])
    status, said = text(capsys, "ranks", folder / case, "--lang", "en")
    assert status == 0
    assert said.startswith(f"the ranks agree: steps 0-1, ranks 0-{ranks - 1}, ")
    status, said = text(capsys, "ranks", folder / case, "--lang", "zh")
    assert status == 0
    assert said.startswith(f"各 rank 一致：第 0-1 步，rank 0-{ranks - 1}")


def test_ranks_with_nothing_in_common_cannot_be_known(trained, capsys):
    ranks, folder = trained
    status, found = answer(capsys, "ranks", folder / NOT_KNOWN)
    assert status == 2
    assert {item["kind"] for item in found} == {"unknown"}
    assert found[0]["sentence"].startswith("cannot be known: parameter first.weight")
    assert "Record the collectives too" in found[0]["sentence"]
    assert found[0]["ranks"] == list(range(ranks))
    status, said = text(capsys, "ranks", folder / NOT_KNOWN, "--lang", "zh")
    assert (
        status,
        "无法判断：参数 first.weight" in said,
        "一致：" in said.replace("不一致", ""),
    ) == (2, True, False)


@pytest.mark.parametrize("fault", FAULTS)
def test_check_and_the_page_say_the_same(trained, fault, capsys, tmp_path):
    _, folder = trained
    sentence = answer(capsys, "ranks", folder / fault)[1][0]["sentence"]
    status, found = answer(capsys, "check", folder / fault)
    assert status == 1
    faults = [item for item in found["findings"] if item["rule"] == "ranks"]
    assert (faults[0]["weight"], faults[0]["sentence"]) == ("fault", sentence)
    status, page = page_of(folder / fault, tmp_path)
    assert status == 1
    assert page["ranks"][0]["sentence"] == sentence
    assert sentence in page["chinese"]


@pytest.mark.parametrize("case", [*HEALTHY, *OF_FOUR])
def test_check_and_the_page_leave_a_healthy_layout_alone(trained, case, capsys, tmp_path):
    ranks, folder = trained
    if case in OF_FOUR and ranks < 4:
        pytest.skip("two ranks have no two axes")
    _, found = answer(capsys, "check", folder / case)
    assert [item for item in found["findings"] if item["rule"] == "ranks"] == []
    _, page = page_of(folder / case, tmp_path)
    assert page["ranks"] == []
    assert page["ranks_said"].startswith("the ranks agree: steps 0-1")


def test_check_and_the_page_say_what_cannot_be_known(trained, capsys, tmp_path):
    _, folder = trained
    sentence = answer(capsys, "ranks", folder / NOT_KNOWN)[1][0]["sentence"]
    status, found = answer(capsys, "check", folder / NOT_KNOWN)
    notes = [item["sentence"] for item in found["findings"] if item["rule"] == "ranks"]
    assert sentence in notes
    assert status == (2 if found["ok"] else 1)
    status, page = page_of(folder / NOT_KNOWN, tmp_path)
    assert status in (1, 2)
    assert page["ranks"][0]["sentence"] == sentence
    assert sentence in page["chinese"]


@pytest.mark.parametrize(("case", "is_apart"), MONITORED.items())
def test_the_monitor_names_a_rank_with_other_weights(trained, case, is_apart, capsys):
    _, folder = trained
    _, found = answer(capsys, "watch", folder / case)
    alarms = [alarm for rank in found["ranks"] for alarm in rank["alarms"]]
    apart = [alarm for alarm in alarms if alarm["rule"] == "ranks apart"]
    assert bool(apart) == is_apart, found
    assert ("first.weight.param" in {alarm["series"] for alarm in apart}) == is_apart
    assert not is_apart or "equal gradients enter the optimizers" in apart[0]["sentence"]

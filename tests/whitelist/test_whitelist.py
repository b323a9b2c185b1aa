# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Every API of support_ops.yaml: probe changes nothing in it, and records its call and its gradients exactly.

``WHITELIST_WRITE=1`` rewrites the lists of names beside this file, which are for the newest supported MindSpore.
"""

from __future__ import annotations

import ctypes
import os
from collections import Counter
from pathlib import Path

import mindspore as ms
import pytest
from mindspore import ops

from probe.capture import support_ops
from probe.capture.autograd.nodes import AutogradNodes
from tests.support.thorough import thorough_but
from tests.whitelist.comparing import (
    COMPARED,
    NO_KERNEL,
    NOT_CALLED,
    Comparison,
    Outcome,
    supported_version,
)
from tests.whitelist.recipes import OWN_OUTPUTS

pytestmark = [pytest.mark.slow, pytest.mark.whole, pytest.mark.filterwarnings("ignore")]

HERE = Path(__file__).parent
LISTED = support_ops.load_supported_apis(None)
#: ops.functional has the functions of ops
APIS = [api for api in LISTED if api.owner is not ops.functional]
CHUNK = 60
#: after it, MindSpore takes the results of mint.rand_like for differentiable: it returns the seed of the generator
LAST = "Functional.speed_fusion_attention"
CHUNKS = {
    f"{section}-{start // CHUNK}": members[start : start + CHUNK]
    for section in dict.fromkeys(api.key.split(".")[0] for api in APIS)
    for members in [[api for api in APIS if api.key.split(".")[0] == section and api.key != LAST]]
    for start in range(0, len(members), CHUNK)
}
CHUNKS["Last"] = [api for api in APIS if api.key == LAST]
FORWARD_ONLY = "forward_only"
#: `make test` calls these; `make thorough` calls all, as the last test looks at the whole list
OFTEN = ("Functional-0", "MintFunctional-0", "Tensor-1")


def test_ops_functional_has_the_functions_of_ops():
    others = [api for api in LISTED if api.owner is ops.functional]
    assert len(others) > 500
    assert [
        api.name
        for api in others
        if getattr(ops, api.name) is not getattr(ops.functional, api.name)
    ] == []
    assert {api.key for api in others} <= {api.key for api in APIS}


def read(kind):
    lines = (HERE / f"{kind}.txt").read_text().splitlines()
    return dict(line.split("\t", 1) for line in lines)


@pytest.fixture(scope="module")
def outcomes():
    """What the chunks found, for the count at the end."""
    return []


@pytest.fixture(scope="module", autouse=True)
def _usual_arithmetic():
    """Undo that a kernel of MindSpore makes subnormal numbers zero in this thread: hypothesis refuses to run so."""
    yield
    default_environment = ctypes.c_void_p(-1)  # FE_DFL_ENV
    ctypes.CDLL("libm.so.6").fesetenv(default_environment)


@pytest.mark.parametrize("chunk", thorough_but(OFTEN, list(CHUNKS)))
def test_listed_apis_are_recorded_as_they_ran_without_probe(debug, outcomes, chunk):
    compare = Comparison(debug, AutogradNodes().key, OWN_OUTPUTS)
    found = [compare(api) for api in CHUNKS[chunk]]
    outcomes.extend(found)
    wrong = [f"{it.name} {text}" for it in found for text in it.differences]
    assert not wrong, "\n".join(wrong)


def names(outcomes: list[Outcome], kind: str) -> dict[str, str]:
    if kind == FORWARD_ONLY:
        return {it.name: it.forward_only for it in outcomes if it.forward_only}
    return {it.name: it.reason for it in outcomes if it.category == kind}


def test_nearly_every_listed_api_was_compared(outcomes, capsys):
    if len(outcomes) != len(APIS):
        pytest.skip("only a part of the list was run")
    kinds = (NO_KERNEL, NOT_CALLED, FORWARD_ONLY)
    found = {kind: names(outcomes, kind) for kind in kinds}
    if os.environ.get("WHITELIST_WRITE"):
        for kind in kinds:
            lines = [f"{name}\t{reason}\n" for name, reason in sorted(found[kind].items())]
            (HERE / f"{kind}.txt").write_text("".join(lines))
    count = Counter(it.category for it in outcomes)
    backward = sum(it.backward for it in outcomes)
    share = count[COMPARED] / (len(outcomes) - count[NO_KERNEL])
    listed = sum(
        len(names)
        for section, names in support_ops._read(None).items()
        if section != "ops.functional"
    )
    lines = [
        f"listed {listed}, resolved {len(outcomes)}",
        f"compared {count[COMPARED]}: {backward} with their backward, {count[COMPARED] - backward} without "
        f"({len(found[FORWARD_ONLY])} of them because MindSpore's gradient raises)",
        f"other calls of these compared too: {sum(it.variants for it in outcomes)}; with outputs of their own at every "
        f"run, so that only the dump was compared with the run: {', '.join(OWN_OUTPUTS)}",
        f"no kernel on CPU {count[NO_KERNEL]}, could not be called {count[NOT_CALLED]}",
        f"compared / (resolved - no kernel) = {share:.3f}",
    ]
    new = []
    if supported_version() and ms.get_context("device_target") == "CPU":  # the lists are for it
        for kind in kinds:
            known = read(kind)
            new += [
                f"{kind}: {name}: {why}" for name, why in found[kind].items() if name not in known
            ]
            gone = sorted(set(known) - set(found[kind]))
            lines += [f"no longer in {kind}.txt: {', '.join(gone)}"] * bool(gone)
    with capsys.disabled():
        print("\n" + "\n".join(lines))
    assert not new, "\n".join(new)
    assert not supported_version() or share >= 0.90

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The monitor finds attention, routers, embeddings and weights, and measures them every ``interval`` steps."""

from __future__ import annotations

import json

import mindspore as ms
import numpy as np
import pytest
from mindspore import nn, ops

from probe import PrecisionDebugger
from probe.measure import features
from probe.monitor.mechanisms import is_router
from probe.monitor.numbers import HostNumbers
from probe.series.series import open_series

pytestmark = pytest.mark.medium


class Net(nn.Cell):
    """Attention of two heads, and a router of three experts whose Cell has other matrices too."""

    def __init__(self):
        super().__init__()
        self.tokens, self.qk = nn.Embedding(8, 8), nn.Dense(8, 16)
        self.router, self.gate_proj, self.head = nn.Dense(8, 3), nn.Dense(8, 32), nn.Dense(32, 8)

    def construct(self, tokens):
        x = self.tokens(tokens)
        q, k = (
            part.reshape(2, 4, 2, 4).swapaxes(1, 2) for part in ops.split(self.qk(x), 8, axis=-1)
        )
        self.scores = ops.matmul(q, k.swapaxes(-1, -2))
        self.weights = ops.softmax(self.scores, -1)
        x = x + ops.matmul(self.weights, k).swapaxes(1, 2).reshape(2, 4, 8)
        self.logits = self.router(x)
        return self.head(self.gate_proj(x) * ops.softmax(self.logits, -1)[..., :1])


def run(folder, steps=3, watch=True, **settings):
    """Return the net, its losses, and the series of the monitor."""
    ms.set_seed(1)
    net = Net()
    optimizer = nn.Adam(net.trainable_params(), 0.01)
    gradient = ms.value_and_grad(lambda x: (net(x) ** 2).mean(), None, optimizer.parameters)
    path = folder / "config.json"
    own = {"measure": settings.pop("measure", "auto"), "monitor": {"interval": 2, **settings}}
    path.write_text(json.dumps({"task": "monitor", "dump_path": str(folder / "watch"), **own}))
    debugger = PrecisionDebugger(config_path=str(path)) if watch else None
    tokens, losses, seen = ms.Tensor(np.arange(8).reshape(2, 4).astype(np.int32)), [], []
    for _ in range(steps):
        before = net.qk.weight.asnumpy()
        if debugger:
            debugger.start(net)
        loss, gradients = gradient(tokens)
        optimizer(gradients)
        if debugger:
            debugger.stop()
            debugger.step()
        losses.append(float(loss.asnumpy()))
        seen.append((before, *(t.asnumpy() for t in (net.scores, net.weights, net.logits))))
    if debugger:
        debugger.close()
    series = open_series(str(folder / "watch"))[0] if debugger else None
    parameters = [parameter.asnumpy().tobytes() for parameter in net.get_parameters()]
    return series, losses, seen, parameters


@pytest.mark.parametrize("measure", ["host", "device"])
def test_attention_router_and_weights_are_measured_every_interval(tmp_path, measure):
    series, _, seen, _ = run(tmp_path, 4, measure=measure)
    for step in (0, 2):
        weight, scores, weights, logits = seen[step]
        gates = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
        preferred = (gates >= 1 / 3).mean((0, 1))
        singular = np.linalg.svd(weight, compute_uv=False)
        expected = {
            "qk.weight.stable_rank": (singular**2).sum() / singular[0] ** 2,
            "Functional.softmax.attention_logits": scores.max(),
            "Functional.softmax.attention_entropy": -(weights * np.log(weights)).sum(-1).mean(),
            "Cell.router.Dense.expert_entropy": -(gates * np.log(gates)).sum(-1).mean(),
            "Cell.router.Dense.expert_largest": preferred.max() / preferred.sum(),
            "Cell.router.Dense.expert_smallest": preferred.min() / preferred.mean(),
        }
        for name, value in expected.items():
            found = dict(zip(*(part.tolist() for part in series[name])))
            assert sorted(found) == [0, 2]
            assert found[step] == pytest.approx(
                value, rel=0.05 if name.endswith("rank") else 1e-4
            ), name


def test_updates_of_embeddings_and_routers_are_told_as_parts_of_their_norms(tmp_path):
    series, *_ = run(tmp_path)
    tables = [name for name in series.names if name.endswith(".update_ratio")]
    assert sorted(tables) == ["router.weight.update_ratio", "tokens.embedding_table.update_ratio"]
    for name in tables:
        owner = name.rpartition(".")[0]
        np.testing.assert_allclose(
            series[name][1], series[f"{owner}.update"][1] / series[f"{owner}.param"][1], 1e-5
        )


@pytest.mark.parametrize("measure", ["host", "device"])
def test_measuring_changes_no_bit(tmp_path, measure):
    (tmp_path / "bare").mkdir()
    _, losses, seen, parameters = run(tmp_path / "bare", watch=False)
    series, watched, also_seen, others = run(tmp_path, measure=measure)
    assert watched == losses and others == parameters and "qk.weight.stable_rank" in series.names
    assert all(
        a.tobytes() == b.tobytes()
        for one, other in zip(seen, also_seen)
        for a, b in zip(one, other)
    )


def test_nothing_is_measured_where_the_setting_says_so(tmp_path):
    series, *_ = run(tmp_path, mechanisms=False)
    assert not [
        name
        for name in series.names
        if name.endswith(("rank", "entropy", "logits", "smallest", "ratio"))
    ]


def test_nothing_is_installed_between_intervals(tmp_path):
    original = ops.softmax.__code__
    codes = []

    class Watching(Net):
        def construct(self, tokens):
            codes.append(ops.softmax.__code__ is original)
            return super().construct(tokens)

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(globals(), "Net", Watching)
        run(tmp_path, 4)
    assert codes == [False, True, False, True] and ops.softmax.__code__ is original


@pytest.mark.parametrize(
    ("key", "shape", "expected"),
    [
        ("Cell.layers.0.router.Dense", (8, 64), True),
        ("Cell.mlp.gate.Dense", (16, 64), True),
        ("Cell.moe.gate.wg.Dense", (4, 64), True),
        ("Cell.gate_proj.Dense", (8, 64), False),
        ("Cell.gate.Dense", (64, 64), False),
        ("Cell.fc.Dense", (8, 64), False),
        ("Cell.router.Dense", (1, 8), False),
    ],
)
def test_a_router_is_found_by_name_and_shape(key, shape, expected):
    assert is_router(key, shape) is expected


@pytest.mark.parametrize("layout", ["BSH", "SBH", "BSND", "BNSD"])
def test_fused_attention_is_that_of_its_first_head(layout):
    q, k = (
        np.random.default_rng(seed).normal(size=(2, 5, 3, 4)).astype(np.float32) for seed in (0, 1)
    )
    axes = {"BSH": (0, 1, 2, 3), "SBH": (1, 0, 2, 3), "BSND": (0, 1, 2, 3), "BNSD": (0, 2, 1, 3)}[
        layout
    ]
    given = [np.ascontiguousarray(array.transpose(axes)) for array in (q, k)]
    given = [
        ms.Tensor(array.reshape(*array.shape[:2], 12) if "H" in layout else array)
        for array in given
    ]
    numbers = HostNumbers(lambda: None, on_cpu=True)
    found = numbers.computed(features.attention, *given, layout, 3)
    unfused = [ms.Tensor(array.transpose(1, 0, 2, 3).copy()) for array in (q, k)]
    expected = numbers.computed(features.attention, *unfused, "SBND")
    assert found["entropy"] == pytest.approx(expected["entropy"], rel=1e-5)
    scores = np.tril(q[0, :, 0] @ k[0, :, 0].T / 2) + np.triu(np.full((5, 5), -1e9), 1)
    assert found["logits"] == pytest.approx(scores.max(), rel=1e-5)


def test_of_an_unknown_layout_nothing_is_told():
    assert features.attention(None, None, "TND", 3) == {}

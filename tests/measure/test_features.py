# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Features of attention, routers and weights have the numbers that numpy gives, on the host and on a device."""

from __future__ import annotations

import mindspore as ms
import numpy as np
import pytest

from probe.measure import features
from probe.monitor.numbers import DeviceNumbers, HostNumbers, known


def host():
    return HostNumbers(lambda: None, on_cpu=True)


def tensor(*shape, seed=0, scale=1.0):
    return ms.Tensor((np.random.default_rng(seed).normal(size=shape) * scale).astype(np.float32))


def softmax(logits):
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def entropy(weights):
    return -(weights * np.log(np.where(weights > 0, weights, 1))).sum(-1)


@pytest.mark.parametrize(("order", "axes"), [("SBND", (0, 1, 2, 3)), ("BSND", (1, 0, 2, 3))])
@pytest.mark.parametrize("keys", [5, 7])
def test_attention_is_that_of_the_first_head_of_the_first_sample(order, axes, keys):
    q, k = tensor(5, 2, 3, 4).asnumpy(), tensor(keys, 2, 3, 4, seed=1).asnumpy()
    scores = q[:, 0, 0] @ k[:, 0, 0].T / 2
    weights = softmax(np.where(np.triu(np.ones((5, keys)), keys - 4), -np.inf, scores))
    given = (ms.Tensor(np.ascontiguousarray(array.transpose(axes))) for array in (q, k))
    found = host().computed(features.attention, *given, order)
    assert found["entropy"] == pytest.approx(entropy(weights).mean(), rel=1e-5)
    assert found["softmax"] == pytest.approx(weights.max(-1).mean(), rel=1e-5)


def test_an_expert_that_is_masked_adds_no_entropy():
    logits = np.array([[0.0, 0.0, -np.inf], [0.0, -np.inf, -np.inf]], np.float32)
    found = host().computed(features.router, ms.Tensor(logits))
    assert found["per_token_expert_entropy"] == pytest.approx(np.log(2) / 2, rel=1e-5)


def test_weights_that_are_nearly_zero_have_an_entropy():
    logits = np.array([[[[0.0, -np.inf, -88.0, -97.0]] * 4]], np.float32)
    assert host().computed(features.scores, ms.Tensor(logits))["entropy"] == pytest.approx(
        0.0, abs=1e-30
    )


def test_shares_and_tokens_of_experts():
    logits = np.zeros((2, 4, 3), np.float32)
    logits[..., 1] = 2.0
    logits[1, 3, 2] = 5.0
    found = host().computed(features.router, ms.Tensor(logits))
    assert (found["largest"], found["smallest"]) == (7 / 8, 0.0)
    even = host().computed(features.router, ms.Tensor(np.zeros((5, 3), np.float32)))
    assert (even["largest"], even["smallest"]) == pytest.approx((1 / 3, 1.0))
    assert host().computed(features.tokens, ms.Tensor(logits)) == {"0": 0.0, "1": 7.0, "2": 1.0}


@pytest.mark.parametrize("shape", [(4, 16), (16, 4)])
def test_similarity_is_the_mean_cosine_of_two_experts(shape):
    weight = tensor(*shape)
    rows = weight.asnumpy() if shape[0] < shape[1] else weight.asnumpy().T
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    mean = (rows @ rows.T)[np.triu_indices(4, 1)].mean()
    found = host().computed(features.similarity, weight)
    assert found["router_weight_similarity"] == pytest.approx(mean, abs=1e-6)


@pytest.mark.parametrize("shape", [(24, 24), (8, 40), (64, 16), (1, 5)])
def test_the_largest_singular_value_is_at_most_a_percent_too_small(shape):
    weight = tensor(*shape)
    largest = np.linalg.norm(weight.asnumpy(), 2)
    found = host().computed(features.stable_rank, weight)
    assert 0.99 * largest <= found["kernel_norm"] <= 1.00001 * largest
    assert found["sr"] * found["kernel_norm"] == pytest.approx(
        np.linalg.norm(weight.asnumpy()), rel=1e-5
    )


def test_a_weight_of_zeros_has_no_rank():
    assert host().computed(features.stable_rank, tensor(3, 4, scale=0.0)) == dict.fromkeys(
        ("sr", "stable_rank", "kernel_norm"), 0.0
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_computed_in_single_precision(dtype):
    weight = tensor(6, 5).astype(getattr(ms, dtype))
    exact = host().computed(features.stable_rank, weight.astype(ms.float32))
    assert host().computed(features.stable_rank, weight) == exact


def test_no_random_number_is_drawn():
    def drawn(with_features):
        ms.set_seed(3)
        ms.manual_seed(3)
        if with_features:
            host().computed(features.stable_rank, tensor(8, 8))
        return ms.ops.randn(4).asnumpy().tolist(), np.random.rand(4).tolist()

    assert drawn(True) == drawn(False)


def test_on_a_device_the_numbers_are_fetched_later():
    numbers = DeviceNumbers(lambda: None, on_cpu=True)
    q, k, weight = tensor(4, 1, 1, 8), tensor(4, 1, 1, 8, seed=1), tensor(6, 7)
    later = {
        **numbers.computed(features.attention, q, k, "SBND"),
        **numbers.computed(features.stable_rank, weight),
        **numbers.computed(features.tokens, weight),
    }
    here = {
        **host().computed(features.attention, q, k, "SBND"),
        **host().computed(features.stable_rank, weight),
        **host().computed(features.tokens, weight),
    }
    assert not any(isinstance(number, float) for number in later.values())
    assert known(later, numbers.fetch(numbers.take())) == pytest.approx(here, rel=2e-6)

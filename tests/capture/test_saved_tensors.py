# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A tensor that changes between forward and backward is found, and the call that wrote it is named."""

from __future__ import annotations

import gc
import json
import logging
import resource
import threading
import weakref
from pathlib import Path

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

from probe.executor import pynative_executor
from tests.support.saved_hooks import needs_hooks

pytestmark = needs_hooks

TWO = np.full((2, 2), 2.0, np.float32)
MODIFIED = (
    "One of the Tensor needed for gradient computation has been modified by an inplace operation"
)
DETACHED = "Trying to use a saved tensor that has been detached in-place"


def five():
    return Tensor(np.full((2, 2), 5.0, np.float32))


def training(change, of="weight"):
    """Return a function that computes gradients; ``change`` gets the weight, or an activation, before the backward."""
    weight = ms.Parameter(Tensor(TWO), name="weight")
    x = Tensor(np.ones((2, 2), np.float32))

    def forward(x):
        hidden = ops.mul(x, weight)
        written = weight if of == "weight" else hidden
        y = ops.matmul(hidden, weight)
        with ms._no_grad():
            change(written)
        return y.sum()

    return lambda: [g.asnumpy().tolist() for g in ms.value_and_grad(forward, None, [weight])(x)[1]]


def forget_the_graph():
    """After an error in a forward, MindSpore's next training would see the graph that was left."""
    pynative_executor().clear_res()


def write(tensor):
    ops.assign(tensor, five())


def outcome(function):
    """Return the gradients, or the first sentence of the error."""
    try:
        return function()
    except RuntimeError as error:
        forget_the_graph()
        return type(error), str(error).partition(",")[0]


def findings(debug):
    path = debug.dump_path / "step0" / "rank" / "findings.jsonl"
    return (
        [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []
    )


def watch(debug, function, model=None, **settings):
    """Return the outcome of a function under the guard, and the sentences of the findings."""
    debugger = debug(**{"saved_tensors": True, **settings})
    debugger.start(model)
    try:
        result = outcome(function)
    finally:
        debugger.stop()
        debugger.step()
        debugger.close()
    assert not list(debug.dump_path.rglob("dump_error_info.log"))
    return result, [found["sentence"] for found in findings(debug)]


def in_a_thread(write):
    def run(written):
        thread = threading.Thread(target=write, args=(written,))
        thread.start()
        thread.join()

    return run


def through_a_view(written):
    ops.auto_generate.gen_ops_prim.InplaceCopy()(
        written.view(4), Tensor(np.full(4, 5.0, np.float32))
    )


def set_the_data(written):
    written.data = five()


#: way -> the write, the tensor that it is done to, the call that is named
WAYS = {
    "assign": (lambda t: ops.assign(t, five()), "weight", "Functional.assign.0.forward"),
    "assign to an activation": (
        lambda t: ops.assign(t, five()),
        "hidden",
        "Functional.assign.0.forward",
    ),
    "set_data": (lambda t: t.set_data(five()), "weight", "Tensor.assign_value.0.forward"),
    "setitem": (lambda t: t.__setitem__(0, 7.0), "weight", "Tensor.__setitem__.0.forward"),
    "setitem of an activation": (
        lambda t: t.__setitem__(0, 7.0),
        "hidden",
        "Tensor.__setitem__.0.forward",
    ),
    "copy_": (lambda t: t.copy_(five()), "weight", "Tensor.copy_.0.forward"),
    "copy_ to an activation": (lambda t: t.copy_(five()), "hidden", "Tensor.copy_.0.forward"),
    "assign_value": (lambda t: t.assign_value(five()), "weight", "Tensor.assign_value.0.forward"),
    "assign_value to an activation": (
        lambda t: t.assign_value(five()),
        "hidden",
        "Tensor.assign_value.0.forward",
    ),
    "another thread": (
        in_a_thread(lambda t: ops.assign(t, five())),
        "weight",
        "Functional.assign.0.forward",
    ),
    "a view": (through_a_view, "weight", "Primitive.fn:through_a_view.InplaceCopy.0.forward"),
    "assign of a product": (
        lambda t: ops.assign(t, t * 10 + t),
        "weight",
        "Functional.assign.0.forward",
    ),
    "data =": (set_the_data, "weight", "written by Tensor.data = (test_saved_tensors.py:"),
    "data = of an activation": (
        set_the_data,
        "hidden",
        "written by Tensor.data = (test_saved_tensors.py:",
    ),
}


@pytest.mark.parametrize("level", ["L1", "mix"])
@pytest.mark.parametrize("way", WAYS)
def test_each_way_to_write_is_named(debug, way, level):
    change, of, name = WAYS[way]
    bare = outcome(training(change, of))
    watched, found = watch(debug, training(change, of), model=nn.ReLU(), level=level)
    assert watched == bare  # the gradients, or MindSpore's own error
    assert found, found
    assert all(name in sentence for sentence in found), found


def test_a_finding_names_the_input_the_writer_and_its_line(debug, caplog):
    with caplog.at_level(logging.WARNING, "probe"):
        _, found = watch(debug, training(lambda t: ops.assign(t, five())))
    line = found[0].partition("(")[2]
    assert line.startswith("test_saved_tensors.py:")
    assert found[0] == (
        "the input 1 that Functional.matmul.0.forward keeps for its backward changed between forward and backward: "
        f"written by Functional.assign.0.forward ({line}"
    )
    assert found[0] in caplog.messages
    first = findings(debug)[0]
    assert first["key"] == "guard.saved"
    assert first["facts"]["which"]["facts"] == {"call": "Functional.matmul.0.forward", "name": "1"}


#: operators in place -> the write; on CPU some leave the memory of a tensor as it is whose graph is recorded
IN_PLACE = {
    "add_": lambda t: t.add_(1.0),
    "mul_": lambda t: t.mul_(3.0),
    "sub_": lambda t: t.sub_(1.0),
    "div_": lambda t: t.div_(4.0),
    "+=": lambda t: t.__iadd__(1.0),
    "*=": lambda t: t.__imul__(3.0),
    "scatter_update": lambda t: ops.scatter_update(
        t, Tensor([0]), Tensor(np.full((1, 2), 5.0, np.float32))
    ),
    "scatter_add": lambda t: ops.scatter_add(
        t, Tensor([0]), Tensor(np.full((1, 2), 5.0, np.float32))
    ),
}


@pytest.mark.parametrize("way", IN_PLACE)
@pytest.mark.parametrize("of", ["weight", "hidden"])
def test_operators_in_place_are_found_where_they_write(debug, way, of):
    """Where an operator has written, its finding names it; where the memory is as it was, there is none."""
    bare, untouched = outcome(training(IN_PLACE[way], of)), outcome(training(lambda t: None, of))
    watched, found = watch(debug, training(IN_PLACE[way], of))
    assert watched == bare
    assert bool(found) == (bare != untouched)
    assert all(f".{way}.0.forward (test_saved_tensors.py:" in sentence for sentence in found)


def test_a_parameter_that_is_replaced_leaves_the_one_that_was_used(debug):
    cell = nn.Dense(2, 2, weight_init="ones")

    def function():
        first = cell.weight

        def forward(x):
            y = ops.matmul(x, cell.weight)
            cell.weight = ms.Parameter(five(), name="weight")
            return y.sum()

        gradient = ms.grad(forward)(Tensor(TWO)).asnumpy().tolist()
        cell.weight = first
        return gradient

    bare = function()
    assert watch(debug, function) == (bare, [])


@pytest.mark.parametrize("make", [Tensor.from_numpy, ms.from_numpy], ids=["Tensor", "mindspore"])
def test_the_buffer_of_a_data_set_is_named_with_the_call_that_shares_it(debug, make):
    def function():
        buffer = np.ones((2, 2), np.float32)
        x = make(buffer)
        weight = ms.Parameter(Tensor(TWO), name="weight")

        def forward():
            y = ops.matmul(x, weight)
            buffer[:] = 7.0
            return y.sum()

        return ms.value_and_grad(forward, None, [weight])()[1][0].asnumpy().tolist()

    bare = function()
    watched, found = watch(debug, function)
    assert (watched, len(found)) == (bare, 1)
    assert "the input 0 that Functional.matmul.0.forward" in found[0]
    assert (
        "its memory is that of the numpy array given to Tensor.from_numpy.0.forward (test_saved"
        in found[0]
    )


def test_an_optimizer_that_steps_between_is_named(debug):
    def function():
        weight = ms.Parameter(Tensor(TWO), name="weight")
        optimizer = nn.SGD([weight], 0.5)

        def forward(x):
            y = ops.matmul(ops.matmul(x, weight), weight)
            optimizer((five(),))
            return y.sum()

        return [
            g.asnumpy().tolist() for g in ms.value_and_grad(forward, None, [weight])(Tensor(TWO))[1]
        ]

    bare = function()
    watched, found = watch(debug, function)
    assert watched == bare
    assert found, found
    assert all(
        "written by Cell.optimizer.SGD.forward.0 (test_saved_tensors.py:" in sentence
        for sentence in found
    )


def test_a_hook_that_writes_is_named(debug):
    def function():
        cell = nn.Dense(2, 2, weight_init="ones")
        cell.register_forward_hook(lambda cell, inputs, output: write(cell.weight))
        return ms.grad(lambda x: cell(x).sum())(Tensor(TWO)).asnumpy().tolist()

    bare = function()
    watched, found = watch(debug, function)
    assert watched == bare
    assert found, found
    assert all("written by Functional.assign.0.forward" in sentence for sentence in found)


def test_a_callback_of_the_backward_that_writes_is_named(debug):
    def function():
        weight = ms.Parameter(Tensor(TWO), name="weight")

        def forward(x):
            hidden = ops.matmul(x, weight)
            y = ops.tanh(hidden)
            y.register_hook(lambda gradient: write(weight))
            return y.sum()

        return ms.grad(forward)(Tensor(TWO)).asnumpy().tolist()

    bare = function()
    watched, found = watch(debug, function)
    assert watched == bare
    assert len(found) == 1
    assert "the input 1 that Functional.matmul.0.forward" in found[0]
    assert "written by Functional.assign.0.forward" in found[0]


def test_an_output_that_is_written_ends_the_training_as_without_the_guard(debug):
    def function():
        weight = ms.Parameter(Tensor(TWO), name="weight")

        def forward(x):
            y = ops.tanh(x * weight)
            with ms._no_grad():
                y.copy_(five())
            return y.sum()

        return ms.value_and_grad(forward, None, [weight])(Tensor(TWO))[1][0].asnumpy().tolist()

    bare = outcome(function)
    assert bare == (RuntimeError, MODIFIED)
    watched, found = watch(debug, function)
    assert watched == bare
    assert len(found) == 1
    assert "the output that Functional.tanh.0.forward keeps" in found[0]


@pytest.mark.parametrize("way", ["assign", "copy_ to an activation", "data ="])
def test_at_level_l0_the_cell_that_keeps_the_tensor_is_named(debug, way):
    change, of, _ = WAYS[way]

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def construct(self, x):
            return self.inner(x)

    class Inner(nn.Cell):
        def construct(self, x):
            return gradients(x)

    weight = ms.Parameter(Tensor(TWO), name="weight")

    def gradients(x):
        hidden = ops.mul(x, weight)
        y = ops.matmul(hidden, weight)
        with ms._no_grad():
            change(weight if of == "weight" else hidden)
        return y.sum()

    def function():
        weight.set_data(Tensor(TWO))
        return ms.value_and_grad(net, None, [weight])(Tensor(TWO))[1][0].asnumpy().tolist()

    net = Net()
    bare = outcome(function)
    watched, found = watch(debug, function, model=net, level="L0")
    assert watched == bare
    assert found, found
    assert all(
        "that Cell.inner.Inner.forward.0 keeps for its backward" in sentence for sentence in found
    )


def test_the_guard_is_off_by_default_and_on_for_nan_check(debug):
    debugger = debug()
    debugger.start()
    outcome(training(lambda t: ops.assign(t, five())))
    debugger.stop()
    debugger.step()
    debugger.close()
    assert findings(debug) == []
    _, found = watch(
        debug, training(lambda t: ops.assign(t, five())), saved_tensors=None, task="nan_check"
    )
    assert len(found) == 2


def test_a_backward_after_stop_is_guarded_too(debug):
    weight = ms.Parameter(Tensor(TWO), name="weight")
    debugger = debug(saved_tensors=True)

    def forward(x):
        debugger.start()
        y = ops.matmul(x, weight)
        ops.assign(weight, five())
        debugger.stop()
        return y.sum()

    ms.grad(forward)(Tensor(TWO))
    debugger.step()
    assert [found["sentence"].partition(":")[0] for found in findings(debug)] == [
        "the input 1 that Functional.matmul.0.forward keeps for its backward changed between forward and backward"
    ]


def test_tensors_die_as_without_the_guard(debug):
    """Kept activations die with a graph that is never used, and during the backward."""
    debugger = debug(saved_tensors=True, task="structure", level="mix")

    def lives(function):
        died = []

        def forward(x):
            hidden = ops.tanh(x)
            weakref.finalize(hidden, died.append, "hidden")
            y = ops.matmul(hidden, hidden)
            pointers = hidden._data_ptr()
            del hidden
            function(y)
            return y.sum(), pointers

        with pytest.raises(KeyError):
            ms.grad(lambda x: forward(x)[0])(Tensor(TWO))
        forget_the_graph()
        gc.collect()
        return len(died)

    def stop_here(y):
        raise KeyError

    bare = lives(stop_here)
    debugger.start(nn.ReLU())
    watched = lives(stop_here)
    debugger.stop()
    debugger.step()
    assert watched == bare == 1


def test_other_hooks_stay_in_force(debug):
    packed, unpacked = [], []
    weight = ms.Parameter(Tensor(TWO), name="weight")
    hooks = lambda: ms.saved_tensors_hooks(  # noqa: E731
        lambda t: packed.append(1) or t * 1.0, lambda t: unpacked.append(1) or t
    )

    def forward(x):
        with hooks():
            y = ops.matmul(x, weight)
        z = ops.matmul(y, weight)
        ops.assign(weight, five())
        return z.sum()

    def function():
        weight.set_data(Tensor(TWO))
        return ms.grad(forward)(Tensor(TWO)).asnumpy().tolist()

    bare, counts = function(), (len(packed), len(unpacked))
    watched, found = watch(debug, function)
    assert watched == bare
    assert (len(packed), len(unpacked)) == (2 * counts[0], 2 * counts[1])
    assert [sentence.partition(" keeps")[0] for sentence in found] == [
        "the input 1 that Functional.matmul.1.forward"
    ]


@pytest.mark.parametrize("ends", [True, False])
def test_hooks_around_start_or_stop_stay_alone(debug, ends):
    executor = pynative_executor()

    packed = []
    debugger = debug(saved_tensors=True)
    hooks = ms.saved_tensors_hooks(lambda t: packed.append(1) or t * 1.0, lambda t: t)
    weight = ms.Parameter(Tensor(TWO), name="weight")
    if ends:
        debugger.start()
        hooks.__enter__()
        debugger.stop()
    else:
        hooks.__enter__()
        debugger.start()
    assert executor.is_saved_tensor_hook_active()
    ms.grad(lambda x: ops.matmul(x, weight).sum())(Tensor(TWO))
    assert packed
    hooks.__exit__(None, None, None)
    debugger.stop()
    debugger.step()
    assert not executor.is_saved_tensor_hook_active()


def test_nothing_of_the_guard_is_left_after_stop(debug):
    executor = pynative_executor()

    before = {name: getattr(type(executor), name) for name in dir(type(executor))}
    debugger = debug(saved_tensors=True)
    debugger.start()
    assert not executor.is_saved_tensor_hook_active()  # the training sees none
    debugger.stop()
    assert {name: getattr(type(executor), name) for name in dir(type(executor))} == before
    assert not executor.is_saved_tensor_hook_active()
    debugger.step()


def test_a_training_in_another_thread_is_guarded(debug):
    found = {}

    def function():
        def run():
            found["gradients"] = outcome(training(lambda t: ops.assign(t, five())))

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        return found["gradients"]

    bare = function()
    watched, sentences = watch(debug, function)
    assert watched == bare
    assert all("written by Functional.assign.0.forward" in sentence for sentence in sentences)
    assert sentences


@pytest.mark.parametrize("reentrant", [True, False])
def test_recompute_has_equal_gradients_and_no_finding(debug, reentrant):
    cell = nn.SequentialCell(nn.Dense(2, 2, weight_init="ones"), nn.Tanh())

    def function():
        def forward(x):
            return ms.recompute(cell, x * 2.0, use_reentrant=reentrant).sum()

        return [
            g.asnumpy().tolist()
            for g in ms.value_and_grad(forward, None, cell.trainable_params())(Tensor(TWO))[1]
        ]

    bare = function()
    assert watch(debug, function, model=cell, level="mix") == (bare, [])


def test_higher_orders_are_equal(debug):
    def function():
        def inner(x):
            h = x * x
            return (ops.tanh(h) * h).sum()

        second = ms.grad(lambda x: ms.grad(inner)(x).sum())(Tensor(TWO))
        return second.asnumpy().tolist()

    bare = function()
    assert watch(debug, function) == (bare, [])


def test_an_error_of_the_guard_never_reaches_the_training(debug, monkeypatch):
    from probe.measure.storage import DeviceChecksums, HostChecksums

    def fail(self, tensor):
        raise ZeroDivisionError("in the guard")

    for kind in (HostChecksums, DeviceChecksums):
        monkeypatch.setattr(kind, "take", fail)
    bare = outcome(training(lambda t: None))
    debugger = debug(saved_tensors=True)
    debugger.start()
    assert outcome(training(lambda t: None)) == bare
    debugger.stop()
    debugger.step()
    log = next(debug.dump_path.rglob("dump_error_info.log"))
    assert "in the guard" in log.read_text()
    log.unlink()


@pytest.mark.parametrize("way", ["assign", "setitem of an activation", "data ="])
def test_on_a_device_the_checksums_are_fetched_at_the_end_of_the_step(debug, way):
    change, of, name = WAYS[way]
    bare = outcome(training(change, of))
    watched, found = watch(debug, training(change, of), measure="device")
    assert watched == bare
    assert found, found
    assert all(name in sentence for sentence in found), found
    assert watch(debug, training(lambda t: None), measure="device", overwrite=True)[1] == []


@pytest.mark.parametrize("way", ["accumulation", "two optimizers"])
def test_usual_trainings_have_equal_bits_and_no_finding(debug, way):
    """Gradients that are added over micro-batches; and two nets that are trained in turn, each through the other."""

    def function():
        ms.set_seed(1)
        first, second = nn.Dense(2, 2, weight_init="ones"), nn.Dense(2, 2, weight_init="ones")
        optimizers = [nn.Momentum(cell.trainable_params(), 0.1, 0.9) for cell in (first, second)]
        grads = [
            ms.value_and_grad(
                lambda x: ops.tanh(second(ops.tanh(first(x)))).sum(), None, cell.trainable_params()
            )
            for cell in (first, second)
        ]
        seen = []
        if way == "accumulation":
            added = None
            for part in range(3):
                _, found = grads[0](Tensor(TWO * part))
                added = (
                    found if added is None else [one + other for one, other in zip(added, found)]
                )
            optimizers[0](tuple(added))
        else:
            for gradient, optimizer in zip(grads * 2, optimizers * 2):
                value, found = gradient(Tensor(TWO))
                optimizer(found)
                seen.append(value)
        tensors = [*seen, *first.get_parameters(), *second.get_parameters()]
        return [tensor.asnumpy().tobytes() for tensor in tensors]

    bare = function()
    assert watch(debug, function, model=nn.ReLU(), level="mix") == (bare, [])


def test_the_memory_of_outputs_without_a_backward_is_free_again(debug):
    """A forward whose backward never runs keeps nothing: an output that kept itself would live for good."""
    size = 1 << 20
    data = Tensor(np.ones(size, np.float32))

    def stops(x):
        ops.tanh(ops.tanh(x))
        raise KeyError

    debugger = debug(saved_tensors=True, task="structure", level="mix")
    debugger.start(nn.ReLU())
    for number in range(12):
        with pytest.raises(KeyError):
            ms.grad(stops)(data)
        forget_the_graph()
        if number == 3:
            before = resident()
    after = resident()
    debugger.stop()
    debugger.step()
    assert after - before < 4 * 4 * size  # eight steps would have left eight times two outputs


def resident():
    """Return the bytes of memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


class Shared(nn.Cell):
    """One BatchNorm that is called twice, as a net with two branches does. The first call may be in evaluation."""

    def __init__(self, form, first_trains):
        super().__init__()
        self.form = form
        self.first_trains = first_trains
        self.norm = nn.BatchNorm2d(2)

    def call(self, x, trains):
        norm = self.norm
        norm.set_train(trains)
        if self.form == "Cell":
            return norm(x)
        held = (norm.moving_mean, norm.moving_variance, norm.gamma, norm.beta)
        return ops.batch_norm(x, *held, trains)

    def construct(self, x):
        first = self.call(x, self.first_trains)
        return ops.square(first + self.call(x * 2, True)).sum()


@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
@pytest.mark.parametrize("form", ["Cell", "function"])
@pytest.mark.parametrize("first_trains", [True, False])
def test_moving_statistics_count_in_evaluation_alone(debug, level, form, first_trains):
    net = Shared(form, first_trains)
    x = Tensor(np.arange(64, dtype=np.float32).reshape(2, 2, 4, 4))
    debugger = debug(level=level, saved_tensors=True)
    debugger.start(net)
    ms.grad(net)(x)
    debugger.stop()
    debugger.step()
    told = findings(debug)
    assert bool(told) != first_trains
    if told and level == "L1" and form == "Cell":
        assert "written by Primitive.bn_train.BatchNorm.0.forward" in str(told)


@pytest.mark.parametrize("first_trains", [True, False])
def test_the_gradient_depends_on_moving_statistics_in_evaluation_alone(first_trains):
    x = Tensor(np.arange(64, dtype=np.float32).reshape(2, 2, 4, 4))

    def gradient(is_called_again):
        net = Shared("function", first_trains)
        call = net.call

        def forward(x):
            y = ops.square(call(x, first_trains)).sum()
            if is_called_again:
                y = y + 0 * call(ops.stop_gradient(x * 100), True).sum()
            return y

        return ms.grad(forward)(x).asnumpy()

    assert np.array_equal(gradient(False), gradient(True)) == first_trains


def test_statistics_of_a_norm_by_hand_are_guarded(debug):
    """Its own function has the same local names, and its gradient depends on them."""

    def norm(x, running_mean, training=True):
        return ops.mul(x, running_mean)

    mean = ms.Parameter(Tensor(np.ones(2, np.float32)), name="mean", requires_grad=False)

    def forward(x):
        y = norm(x, mean)
        with ms._no_grad():
            ops.assign(mean, Tensor(np.full(2, 3.0, np.float32)))
        return y.sum()

    debugger = debug(level="L1", saved_tensors=True)
    debugger.start()
    try:
        ms.grad(forward)(Tensor(np.ones((3, 2), np.float32)))
    except RuntimeError:
        forget_the_graph()
    debugger.stop()
    debugger.step()
    assert findings(debug)

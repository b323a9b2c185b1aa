# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""TrainerMon writes what the training had into csv files with msprobe's names, and changes nothing."""

from __future__ import annotations

import csv
import json
import re

import mindspore as ms
import numpy as np
import pytest
from mindspore import nn, ops

from probe import SettingsError, TrainerMon, UsageError
from probe.monitor.numbers import DeviceNumbers, HostNumbers

pytestmark = pytest.mark.medium

ALL = {
    "wg_distribution": True,
    "mv_distribution": True,
    "param_distribution": True,
    "xy_distribution": True,
}
OPS = ["min", "max", "norm", "zeros", "nans", "mean"]


class Block(nn.Cell):
    """A layer and its neighbour, whose names msprobe shortens."""

    def __init__(self):
        super().__init__()
        self.fc, self.ln = nn.Dense(4, 4), nn.LayerNorm((4,))

    def construct(self, x, scale):
        return self.ln(ops.relu(self.fc(x)) * scale)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.layers = nn.CellList([Block(), Block()])
        self.head = nn.Dense(4, 2)

    def construct(self, x):
        for layer in self.layers:
            x = layer(x, x * 0.5)
        return self.head(x)


class Loop:
    """A small training under TrainerMon."""

    def __init__(self, folder, config, accumulated=1, watch=True, optimizer=nn.Adam, **arguments):
        ms.set_seed(1)
        self.random, self.accumulated, self.folder = np.random.default_rng(0), accumulated, folder
        self.net = Net()
        self.net.set_train()
        self.optimizer = optimizer(self.net.trainable_params(), 0.01)
        self.grad = ms.value_and_grad(
            lambda x, y: ((self.net(x) - y) ** 2).mean(), None, self.optimizer.parameters
        )
        self.path = folder / "monitor.json"
        self.path.write_text(json.dumps(config))
        self.monitor = None
        if watch:
            self.monitor = TrainerMon(str(self.path))
            self.monitor.set_monitor(self.net, self.optimizer, accumulated, **arguments)
        self.losses, self.gradients, self.before, self.entered = [], [], [], []

    def run(self, steps, change=lambda step, gradients: gradients):
        for step in range(steps):
            total = None
            self.gradients.append([])
            for _ in range(self.accumulated):
                x = self.random.normal(size=(8, 4)).astype(np.float32)
                loss, gradients = self.grad(ms.Tensor(x), ms.Tensor(x[:, :2] * 2))
                self.losses.append(float(loss.asnumpy()))
                self.gradients[-1].append([gradient.asnumpy().copy() for gradient in gradients])
                total = (
                    gradients if total is None else tuple(a + b for a, b in zip(total, gradients))
                )
            total = change(step, total)
            self.entered.append([gradient.asnumpy().copy() for gradient in total])
            self.before.append(
                [parameter.asnumpy().copy() for parameter in self.net.trainable_params()]
            )
            self.optimizer(total)
        self.after = [parameter.asnumpy().copy() for parameter in self.net.trainable_params()]
        return self

    @property
    def names(self):
        return [parameter.name for parameter in self.net.trainable_params()]

    def files(self):
        return sorted(self.folder.glob("out/*-rank0-*/*.csv"))

    def rows(self, kind):
        found = []
        for path in self.files():
            if re.fullmatch(rf"{kind}_\d+-\d+", path.stem):
                with path.open(newline="") as file:
                    found += csv.DictReader(file)
        return found

    def column(self, kind, op, step):
        return {row["name"]: float(row[op]) for row in self.rows(kind) if int(row["step"]) == step}


@pytest.fixture
def loop(tmp_path, monkeypatch):
    monkeypatch.setenv("MONITOR_OUTPUT_DIR", str(tmp_path / "out"))
    made = []

    def make(config, **arguments):
        made.append(Loop(tmp_path, config, **arguments))
        return made[-1]

    yield make
    for one in reversed(made):
        if one.monitor is not None:
            one.monitor.close()


def norms(arrays, names):
    return {name: float(np.linalg.norm(array)) for name, array in zip(names, arrays)}


def test_the_files_have_the_names_and_columns_of_msprobe(loop):
    ran = loop({**ALL, "ops": OPS, "step_count_per_record": 2}).run(3)
    kinds = {
        "grad_unreduced",
        "grad_reduced",
        "param_origin",
        "param_updated",
        "exp_avg",
        "exp_avg_sq",
    }
    expected = {
        f"{kind}_{steps}.csv" for kind in (*kinds, "actv", "actv_grad") for steps in ("0-1", "2-3")
    }
    assert {path.name for path in ran.files()} == expected
    assert re.fullmatch(
        r"[A-Z]\w\w\d\d_\d\d-\d\d-\d\d-rank0-[0-9a-f]{8}", ran.files()[0].parent.name
    )
    for path in ran.files():
        head = path.read_text().splitlines()[0].split(",")
        part = ["micro_step"] if path.name.startswith("actv") else []
        assert head == ["vpp_stage", "name", "step", *part, *OPS, "shape", "dtype"]
    for kind in kinds:
        rows = [row for row in ran.rows(kind) if row["step"] == "1"]
        assert sorted(row["name"] for row in rows) == sorted(ran.names), kind
        assert {row["vpp_stage"] for row in rows} == {"0"}
    shapes = {row["name"]: (row["shape"], row["dtype"]) for row in ran.rows("param_origin")}
    assert shapes["head.weight"] == ("(2, 4)", "Float32") and shapes["head.bias"] == (
        "(2,)",
        "Float32",
    )


def test_gradients_and_parameters_are_those_of_the_training(loop):
    halved = lambda step, gradients: tuple(gradient * 0.5 for gradient in gradients)  # noqa: E731
    ran = loop({**ALL, "ops": OPS, "ndigits": 12}).run(3, halved)
    for step in range(3):
        arrived = norms(ran.gradients[step][0], ran.names)
        assert ran.column("grad_unreduced", "norm", step) == pytest.approx(arrived, rel=1e-5)
        assert ran.column("grad_reduced", "norm", step) == pytest.approx(
            norms(ran.entered[step], ran.names), rel=1e-5
        )
        assert ran.column("param_origin", "norm", step) == pytest.approx(
            norms(ran.before[step], ran.names), rel=1e-5
        )
        later = ran.before[step + 1] if step < 2 else ran.after
        assert ran.column("param_updated", "norm", step) == pytest.approx(
            norms(later, ran.names), rel=1e-5
        )
        means = {
            name: float(gradient.mean())
            for name, gradient in zip(ran.names, ran.gradients[step][0])
        }
        assert ran.column("grad_unreduced", "mean", step) == pytest.approx(
            means, rel=1e-4, abs=1e-7
        )
        zeros = {
            name: float((np.abs(g) < 1e-8).mean())
            for name, g in zip(ran.names, ran.gradients[step][0])
        }
        assert ran.column("grad_unreduced", "zeros", step) == pytest.approx(zeros)
    assert set(ran.column("exp_avg", "norm", 0).values()) == {0.0}  # before the first update
    first = norms([0.1 * gradient for gradient in ran.entered[0]], ran.names)
    assert ran.column("exp_avg", "norm", 1) == pytest.approx(first, rel=1e-4)


def test_cells_have_rows_for_inputs_outputs_and_gradients(loop):
    ran = loop(
        {"xy_distribution": True, "targets": {"layers.1": {}, "head": {}}, "ops": ["norm", "max"]}
    ).run(2)
    forward = {row["name"] for row in ran.rows("actv")}
    assert forward == {
        "layers.1.input_0",
        "layers.1.input_1",
        "layers.1.output",
        "head.input",
        "head.output",
    }
    backward = {row["name"] for row in ran.rows("actv_grad")}
    assert backward == forward
    assert {row["micro_step"] for row in ran.rows("actv")} == {"0"}
    wanted = [
        gradient for gradient, name in zip(ran.gradients[1][0], ran.names) if name == "head.bias"
    ]
    assert wanted  # the gradient of the bias is the sum of the gradients of the output
    whole = loop({"xy_distribution": True, "ops": ["norm"]}).run(1)
    assert ".input" in {row["name"] for row in whole.rows("actv")}  # the model itself


def test_a_cell_that_is_called_in_a_validation_has_no_row(loop):
    ran = loop({"xy_distribution": True, "targets": {"head": {}}, "ops": ["norm"], "ndigits": 12})
    ran.net.set_train(False)
    ran.net(ms.Tensor(np.full((8, 4), 9, np.float32)))
    ran.net.set_train(True)
    ran.run(1)
    assert [row["micro_step"] for row in ran.rows("actv")] == ["0", "0"]


def test_each_of_the_accumulated_gradients_may_have_a_row(loop):
    ran = loop(
        {"wg_distribution": True, "monitor_mbs_grad": True, "ndigits": 12}, accumulated=3
    ).run(2)
    rows = [row for row in ran.rows("grad_unreduced") if row["name"] == "head.weight"]
    assert [(row["step"], row["micro_step"]) for row in rows] == [
        (s, m) for s in "01" for m in "012"
    ]
    place = ran.names.index("head.weight")
    expected = [
        np.linalg.norm(ran.gradients[step][part][place]) for step in range(2) for part in range(3)
    ]
    np.testing.assert_allclose([float(row["norm"]) for row in rows], expected, rtol=1e-5)
    last = loop({"wg_distribution": True, "ndigits": 12}, accumulated=3).run(1)
    np.testing.assert_allclose(
        last.column("grad_unreduced", "norm", 0)["head.weight"],
        np.linalg.norm(last.gradients[0][2][place]),
        rtol=1e-5,
    )


def test_the_steps_are_those_that_the_settings_select(loop):
    config = {"param_distribution": True, "start_step": 12, "step_interval": 2, "collect_times": 3}
    ran = loop(config, start_iteration=10).run(12)
    assert sorted({int(row["step"]) for row in ran.rows("param_origin")}) == [12, 14, 16]


def test_targets_choose_parameters_by_their_beginning(loop):
    ran = loop({"wg_distribution": True, "targets": {"layers.0": {}, "0:head.bias": {}}}).run(1)
    names = {row["name"] for row in ran.rows("grad_reduced")}
    assert names == {
        name for name in ran.names if name.startswith("layers.0") or name == "head.bias"
    }


def test_other_ranks_write_nothing(loop):
    ran = loop({**ALL, "module_ranks": [3]}).run(2)
    assert ran.files() == []


@pytest.mark.parametrize(
    "optimizer", [nn.Adam, lambda p, lr: ms.experimental.optim.AdamW(p, lr=lr)]
)
def test_the_training_keeps_its_bits(loop, optimizer):
    bare = loop({}, watch=False, optimizer=optimizer).run(6)
    watched = loop({**ALL, "ops": OPS}, optimizer=optimizer).run(6)
    assert watched.losses == bare.losses
    for one, other in zip(watched.after, bare.after):
        assert one.tobytes() == other.tobytes()
    assert {row["name"] for row in watched.rows("exp_avg_sq")} == set(watched.names)


def test_on_a_device_the_rows_have_the_same_numbers(loop, tmp_path, monkeypatch):
    on_host = loop({**ALL, "ops": OPS, "ndigits": 4}).run(3)
    kinds = ("grad_unreduced", "grad_reduced", "param_updated", "exp_avg_sq", "actv", "actv_grad")
    expected = {kind: on_host.rows(kind) for kind in kinds}
    on_host.monitor.close()
    monkeypatch.setenv("MONITOR_OUTPUT_DIR", str(tmp_path / "device"))
    monkeypatch.setattr("probe.monitor.numbers.HostNumbers", DeviceNumbers)
    ran = loop({**ALL, "ops": OPS, "ndigits": 4}).run(3)
    ran.monitor.close()
    ran.files = lambda: sorted(tmp_path.glob("device/*-rank0-*/*.csv"))
    for kind, rows in expected.items():
        found = ran.rows(kind)
        keys = [(row["name"], row["step"], row["shape"], row["dtype"]) for row in rows]
        assert [(row["name"], row["step"], row["shape"], row["dtype"]) for row in found] == keys
        for row, other in zip(rows, found):
            for op in OPS:
                assert float(other[op]) == pytest.approx(float(row[op]), rel=1e-3, abs=2e-4), (
                    kind,
                    row,
                    other,
                )


@pytest.mark.parametrize(("eps", "zeros"), [(0.0, 0.0), (0.5, 0.25), (1.5, 0.5)])
def test_on_a_device_the_elements_below_eps_are_those_of_the_host(eps, zeros):
    tensor = ms.Tensor(np.array([0, 1, -2, np.nan], np.float32))
    numbers = DeviceNumbers(lambda: None, on_cpu=True)
    found = numbers.several(tensor, ["zeros", "nans"], eps)
    fetched = numbers.fetch(numbers.take())
    assert {name: found[name].of(fetched) for name in ("zeros", "nans")} == {
        "zeros": zeros,
        "nans": 1,
    }
    assert HostNumbers(lambda: None, on_cpu=True).several(tensor, ["zeros"], eps)["zeros"] == zeros


def test_alarms_are_on_the_log_and_in_anomaly_json(loop, tmp_path, caplog):
    def change(step, gradients):
        return tuple(gradient * (1000 if step == 2 else 1) for gradient in gradients)

    rules = [{"rule_name": "AnomalyTurbulence", "args": {"threshold": 99}}]
    loop(
        {"wg_distribution": True, "ops": ["norm", "max"], "alert": {"rules": rules, "dump": True}}
    ).run(3, change)
    said = [
        record.getMessage()
        for record in caplog.records
        if "AnomalyTurbulence" in record.getMessage()
    ]
    assert said and all("/post_grad: norm" in line and "step 2" in line for line in said)
    written = json.loads(
        (tmp_path / "out" / "anomaly_detected" / "rank0" / "anomaly.json").read_text()
    )
    assert len(written) == len(said)
    assert {item["step"] for item in written.values()} == {2}
    assert all(key.startswith(f"{item['tag_name']}_step_2_call_") for key, item in written.items())


def test_a_nan_raises_an_alarm_and_is_written(loop, caplog):
    def change(step, gradients):
        return tuple(gradient * (np.nan if step == 1 else 1) for gradient in gradients)

    ran = loop({"wg_distribution": True, "alert": {"rules": [{"rule_name": "AnomalyNan"}]}}).run(
        2, change
    )
    assert any(
        "AnomalyNan: 0:head.weight/rank0/post_grad" in record.getMessage()
        for record in caplog.records
    )
    assert {row["norm"] for row in ran.rows("grad_reduced") if row["step"] == "1"} == {"nan"}


def test_an_edit_begins_and_ends_measuring(loop, monkeypatch):
    monkeypatch.setenv("DYNAMIC_MONITOR", "True")
    ran = loop({"dynamic_on": False, "param_distribution": True}).run(2)
    assert ran.files() == []
    ran.path.write_text(
        json.dumps({"dynamic_on": True, "param_distribution": True, "collect_times": 2})
    )
    ran.run(4)
    assert sorted({int(row["step"]) for row in ran.rows("param_origin")}) == [3, 4]
    assert json.loads(ran.path.read_text())["dynamic_on"] is False
    ran.path.write_text(
        json.dumps(
            {"dynamic_on": True, "param_distribution": True, "collect_times": 1, "ndigits": 3}
        )
    )
    ran.run(2)
    assert sorted({int(row["step"]) for row in ran.rows("param_origin")}) == [3, 4, 7]
    ran.path.write_text("{")
    ran.run(1)  # a broken file changes nothing


#: the configurations of msprobe's documents, in our words
DOCUMENTED = {
    "weights": {"targets": {}, "param_distribution": True, "format": "csv", "ops": ["norm", "min", "max", "nans"]},
    "gradients": {"targets": {}, "wg_distribution": True, "format": "csv", "ops": ["min", "max", "mean", "norm"],
                  "ndigits": 16},
    "activations": {"targets": {}, "xy_distribution": True, "forward_only": False, "backward_only": False,
                    "all_xy": True, "format": "csv", "ops": ["norm", "min", "max", "nans"]},
    "states": {"targets": {}, "mv_distribution": True, "format": "csv", "ops": ["norm", "min", "max", "nans"]},
    "stacks": {"targets": {}, "format": "csv", "stack_info": True},
    "structure": {"print_struct": True},
    "one target": {"targets": {"module.encoder.layers.0.mlp": {}}},
    "two targets": {"targets": {"module.encoder.layers.0.mlp": {}, "module.embedding.word_embedding.weight": {}}},
    "everything": {"targets": {}},
    "features": {"l2_targets": {"attention_hook": ["0:0.self_attention.flash"], "linear_hook": ["0:0.linear_qkv"]},
                 "recording_l2_features": True, "sa_order": "b,s,h,d"},
    "micro-batches": {"wg_distribution": True, "monitor_mbs_grad": True},
    "turbulence": {"alert": {"rules": [{"rule_name": "AnomalyTurbulence", "args": {"threshold": 0.5}}], "dump": True}},
    "nan": {"alert": {"rules": [{"rule_name": "AnomalyNan", "args": {"threshold": 1e10}}], "dump": True}},
    "both": {"alert": {"rules": [{"rule_name": "AnomalyNan", "args": {"threshold": 1e10}},
                                 {"rule_name": "AnomalyTurbulence", "args": {"threshold": 0.5}}], "dump": True}},
    "all keys": {
        "targets": {"layers.0": {"input": "tuple[2]:0", "output": "tensor", "input_grad": "tuple[2]:0",
                                 "output_grad": "tuple[1]:0"}},
        "dynamic_on": False, "start_step": 0, "collect_times": 100000000, "step_interval": 1, "print_struct": False,
        "module_ranks": [0, 1, 2, 3], "ur_distribution": True, "xy_distribution": True, "all_xy": True,
        "forward_only": False, "backward_only": False, "mv_distribution": True, "param_distribution": True,
        "wg_distribution": True, "monitor_mbs_grad": True, "cc_distribution": {"enable": True, "cc_codeline": []},
        "alert": {"rules": [{"rule_name": "AnomalyTurbulence", "args": {"threshold": 0.5}}], "dump": False},
        "format": "csv", "ops": ["min", "max", "norm", "zeros", "nans", "mean"], "eps": 1e-8, "ndigits": 12,
        "step_count_per_record": 1, "append_output": [], "squash_name": False,
    },
    "an older form": {
        "targets": {"layers.1": {"input": "tuple[2]:0", "output": "tensor"}}, "print_struct": False,
        "module_ranks": [0], "ur_distribution": True, "xy_distribution": True, "mv_distribution": True,
        "wg_distribution": True, "mg_direction": True, "cc_distribution": {"enable": True, "cc_codeline": []},
        "alert": {"rules": [{"rule_name": "AnomalyTurbulence", "args": {"threshold": 0.5}}]},
        "ops": ["min", "max", "norm", "zeros", "id"], "eps": 1e-8,
    },
}  # fmt: skip
#: those that msprobe writes no csv for, or not on MindSpore
SILENT = {
    "structure",
    "one target",
    "two targets",
    "everything",
    "features",
    "turbulence",
    "nan",
    "both",
}


@pytest.mark.parametrize("name", list(DOCUMENTED))
def test_a_configuration_of_msprobes_documents_runs(loop, name, caplog):
    ran = loop(DOCUMENTED[name]).run(2)
    assert (ran.files() == []) == (name in SILENT)
    assert not [
        record.getMessage() for record in caplog.records if "has no effect" in record.getMessage()
    ]
    assert not list(ran.folder.rglob("dump_error_info.log"))


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ({"ops": "norm"}, "ops"),
        ({"step_interval": 0}, "step_interval"),
        ({"wg_distribution": 1}, "wg_distribution"),
        ({"targets": ["fc"]}, "targets"),
        ({"alert": {"rules": [{"rule_name": "AnomalyTurbulence"}]}}, "threshold"),
        ({"alert": {"rules": [{"rule_name": "Anomaly"}]}}, "rule_name"),
        ({"ndigits": 0}, "ndigits"),
        ({"l2_targets": {"atention_hook": []}}, "attention_hook"),
        ({"l2_targets": {"linear_hook": "fc"}}, "linear_hook"),
        ({"sa_order": "h,d,s,b"}, "sa_order"),
        ({"cc_distribution": {"enabled": True}}, "enable"),
        ({"append_output": ["Dec03_21-34-40"]}, "append_output"),
        ({"append_output": ["Dec03_21-34-40", "Jan03_21-34-40"]}, "append_output"),
        ({"append_output": ["yesterday", "today"]}, "append_output"),
        ({"monitors": {"module": {"enabled": True}}}, "monitors.*TrainerMonitorV2"),
    ],
)
def test_a_wrong_value_is_refused_with_its_key(tmp_path, config, text):
    path = tmp_path / "monitor.json"
    path.write_text(json.dumps(config))
    with pytest.raises(SettingsError, match=text):
        TrainerMon(str(path))


def test_wrong_arguments_are_refused(loop, tmp_path):
    ran = loop({}, watch=False)
    monitor = TrainerMon(str(ran.path))
    for arguments, text in (
        ((3, ran.optimizer), "model"),
        ((ran.net, ran.net), "optimizer"),
        ((ran.net, ran.optimizer, 0), "grad_acc_steps"),
        ((ran.net, ran.optimizer, 1, None, None, -1), "start_iteration"),
    ):
        with pytest.raises(UsageError, match=text):
            monitor.set_monitor(*arguments)
    monitor.set_monitor(ran.net, ran.optimizer)
    with pytest.raises(UsageError, match="another"):
        monitor.set_monitor(ran.net, ran.optimizer)
    monitor.close()


def test_an_unknown_key_is_told_with_its_neighbour(loop, caplog):
    loop({"wg_distributions": True})
    assert any("is it wg_distribution" in record.getMessage() for record in caplog.records)


def test_an_error_of_ours_never_reaches_the_training(loop, monkeypatch):
    bare = loop({}, watch=False).run(2)

    def fail(*args, **kwargs):
        raise ZeroDivisionError("ours")

    monkeypatch.setattr("probe.monitor.numbers.HostNumbers.several", fail)
    watched = loop(ALL).run(2)
    assert watched.losses == bare.losses
    (log,) = watched.folder.rglob("dump_error_info.log")
    assert "ours" in log.read_text()
    log.unlink()


def test_after_close_nothing_is_installed(loop):
    before = [vars(kind).get("__call__") for kind in (nn.Cell, nn.Optimizer)]
    ran = loop(ALL).run(1)
    ran.monitor.close()
    count = len(ran.files())
    ran.run(1)
    assert len(ran.files()) == count
    assert [vars(kind).get("__call__") for kind in (nn.Cell, nn.Optimizer)] == before


def test_a_training_of_model_train_is_watched(loop):
    ran = loop({"wg_distribution": True, "param_distribution": True, "ops": ["norm"]})
    x = ran.random.normal(size=(12, 4)).astype(np.float32)
    data = ms.dataset.NumpySlicesDataset((x, x[:, :2] * 2), ["x", "y"], shuffle=False).batch(4)
    ms.Model(ran.net, nn.MSELoss(), ran.optimizer).train(1, data, dataset_sink_mode=False)
    for kind in ("grad_unreduced", "grad_reduced", "param_origin", "param_updated"):
        rows = [(row["step"], row["name"]) for row in ran.rows(kind)]
        assert sorted(rows) == sorted(
            (str(step), name) for step in range(3) for name in ran.names
        ), kind
    arrived, entered = ran.rows("grad_unreduced"), ran.rows("grad_reduced")
    assert {(row["name"], row["step"], row["norm"]) for row in arrived} == {
        (row["name"], row["step"], row["norm"]) for row in entered
    }


def test_a_dump_may_be_made_in_the_same_steps(loop, debug):
    bare = loop({}, watch=False).run(4)
    ran = loop({**ALL, "collect_times": 2})
    debugger = debug(level="mix")
    original = ran.grad

    def grad(*batch):
        debugger.start(ran.net)
        return original(*batch)

    def end(step, gradients):
        return gradients

    ran.grad = grad
    for _ in range(4):  # measuring ends while the debugger records
        ran.run(1, end)
        debugger.stop()
        debugger.step()
    debugger.close()
    assert ran.losses == bare.losses
    assert [one.tobytes() for one in ran.after] == [one.tobytes() for one in bare.after]
    assert sorted({row["step"] for row in ran.rows("actv_grad")}) == ["0", "1"]
    names = debug.dump(3).names("Cell.optimizer")
    assert names and debug.dump(3).names("Cell.head.Dense.backward")


class Experts(nn.Cell):
    """Attention of one head, and a router of four experts."""

    def __init__(self):
        super().__init__()
        self.qk, self.core, self.router = nn.Dense(4, 8), Core(), nn.Dense(4, 4, has_bias=False)

    def construct(self, x):
        q, k = ops.split(self.qk(x).reshape(8, 1, 1, 8), 4, axis=-1)
        return ops.softmax(self.router(x) + self.core(q, key=k).sum(), -1)[:, :2]


class Core(nn.Cell):
    def construct(self, q, key):
        return ops.matmul(q[:, 0, 0], key[:, 0, 0].T)


HOOKS = {"attention_hook": ["core"], "moe_router_weight_hook": ["0:router"], "moe_router_logit_hook": ["0:router"],
         "linear_hook": ["0:qk", "0:core"]}  # fmt: skip
EXTRA = {
    "recording_l2_features": True,
    "l2_targets": HOOKS,
    "ur_distribution": True,
    "mg_direction": True,
    "stack_info": True,
    "print_struct": True,
    "ndigits": 12,
    "ops": OPS,
}


@pytest.fixture
def of_experts(loop, monkeypatch):
    monkeypatch.setitem(globals(), "Net", Experts)
    return loop


def test_features_stacks_and_updates_change_no_bit(of_experts):
    bare = of_experts({}, watch=False).run(4)
    ran = of_experts(EXTRA).run(4)
    assert ran.losses == bare.losses
    assert [one.tobytes() for one in ran.after] == [one.tobytes() for one in bare.after]
    assert not list(ran.folder.rglob("dump_error_info.log"))


def test_features_of_cells_are_in_files_of_their_hooks(of_experts):
    ran = of_experts(EXTRA).run(2)
    weight = ran.before[1][ran.names.index("qk.weight")]
    (row,) = [row for row in ran.rows("linear_hook") if row["step"] == "1"]
    assert (row["name"], row["micro_step"]) == ("qk.linear", "0")
    assert float(row["kernel_norm"]) == pytest.approx(np.linalg.norm(weight, 2), rel=1e-2)
    (row,) = [row for row in ran.rows("attention_hook") if row["step"] == "0"]
    assert (
        row["name"] == "core.attention"
        and 0 < float(row["entropy"]) < np.log(8)
        and float(row["softmax"]) < 1
    )
    (row,) = [row for row in ran.rows("moe_router_weight_hook") if row["step"] == "0"]
    rows = ran.before[0][ran.names.index("router.weight")]
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    assert float(row["router_weight_similarity"]) == pytest.approx(
        (rows @ rows.T)[np.triu_indices(4, 1)].mean(), 1e-4
    )
    tokens = [float(row["tokens"]) for row in ran.rows("tokens_per_expert") if row["step"] == "0"]
    assert len(tokens) == 4 and sum(tokens) == 8


def test_the_update_of_adam_and_the_direction_of_its_gradient(of_experts):
    ran = of_experts(EXTRA).run(3)
    updates = {row["name"]: row for row in ran.rows("ur_distribution") if row["step"] == "0"}
    assert {name.rpartition(".")[0] for name in updates} == set(ran.names)
    for name, gradient in zip(
        ran.names, ran.entered[0]
    ):  # in the first step the mean is the gradient
        expected = gradient / (np.abs(gradient) + 1e-8)
        assert float(updates[f"{name}.update"]["norm"]) == pytest.approx(
            np.linalg.norm(expected), rel=1e-3
        )
    found = ran.column("mg_direction", "mg_direction", 1)
    for name, first, second in zip(ran.names, *ran.entered[:2]):
        assert found[name] == pytest.approx(np.mean((np.sign(first * second) + 1) / 2), abs=1e-6)


def test_stacks_and_shapes_are_written_once(of_experts):
    ran = of_experts({"stack_info": True, "print_struct": True}).run(2)
    (path,) = ran.folder.glob("out/*/stack_info.csv")
    with path.open(newline="") as file:
        stacks = {row["module_name"]: row["stack_info"] for row in csv.DictReader(file)}
    assert set(stacks) == {"0:", "0:qk", "0:core", "0:router"}
    assert "self.core(q, key=k)" in stacks["0:core"] and stacks["0:core"].startswith("File ")
    shapes = json.loads(
        (ran.folder / "out" / "module_struct" / "rank0" / "module_struct.json").read_text()
    )
    assert shapes["0:router"] == {
        "input": {"config": "list[1]", "0": "size=(8, 4), dtype=Float32"},
        "output": {"config": "tensor", "tensor": "size=(8, 4), dtype=Float32"},
        "input_grad": {"config": "tuple[1]", "0": "<class 'NoneType'>"},
        "output_grad": {"config": "tuple[1]", "0": "size=(8, 4), dtype=Float32"},
    }


def test_output_is_appended_to_a_folder_between_two_times(loop):
    config = {"wg_distribution": True, "step_count_per_record": 10}
    first = loop(config).run(2)
    first.monitor.close()
    (before,) = first.files()[:1]
    second = loop(
        {**config, "append_output": ["Jan01_00-00-00", "Dec31_23-59-59"]}, start_iteration=2
    ).run(2)
    assert {path.parent for path in second.files()} == {before.parent}
    assert sorted({int(row["step"]) for row in second.rows("grad_reduced")}) == [0, 1, 2, 3]


def test_inputs_that_are_no_heads_are_told_once(of_experts, caplog):
    of_experts({"recording_l2_features": True, "l2_targets": {"attention_hook": ["0:qk"]}}).run(3)
    said = [
        record.getMessage() for record in caplog.records if "attention_hook" in record.getMessage()
    ]
    assert said == ["attention_hook needs queries and keys of 4 dimensions: 0:qk has none"]

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""An update is seen by one patch, whoever listens: dump, monitor, TrainerMon, `probe run`."""

from __future__ import annotations

import mindspore as ms
import pytest
from mindspore import Parameter, Tensor, experimental, nn

from probe import TrainerMon
from probe.capture.method_event import Listener
from probe.capture.training.events import updates

KINDS = [nn.Optimizer, experimental.optim.Optimizer]


def an_optimizer():
    return nn.SGD([Parameter(Tensor([1.0], ms.float32), name="w")], 0.5)


class Heard:
    """Listeners that note when they begin and end."""

    def __init__(self):
        self.seen, self.listeners = [], {}

    def listener(self, name, before=lambda: None):
        def run(original, optimizer, *args):
            before()
            self.seen.append(f"{name} begins")
            result = original(optimizer, *args)
            self.seen.append(f"{name} ends")
            return result

        found = self.listeners[name] = Listener(updates(), run)
        return found


@pytest.fixture
def heard():
    made = Heard()
    yield made
    for listener in made.listeners.values():
        listener.remove()
    assert not any("__call__" in vars(kind) for kind in KINDS)


def test_the_first_listener_is_the_outermost_and_the_update_is_made_once(heard):
    for name in ("one", "two"):
        heard.listener(name).install()
    optimizer = an_optimizer()
    optimizer((Tensor([1.0], ms.float32),))
    assert heard.seen == ["one begins", "two begins", "two ends", "one ends"]
    assert optimizer.parameters[0].asnumpy() == 0.5
    heard.listeners["one"].remove()
    optimizer((Tensor([1.0], ms.float32),))
    assert heard.seen[4:] == ["two begins", "two ends"]


def test_a_listener_that_comes_during_an_update_hears_of_it(heard):
    late = heard.listener("late")
    heard.listener("first", before=late.install).install()
    an_optimizer()((Tensor([1.0], ms.float32),))
    assert heard.seen == ["first begins", "late begins", "late ends", "first ends"]


def test_a_listener_that_goes_during_an_update_is_told_of_its_end(heard):
    heard.listener("one").install()
    heard.listener("two", before=lambda: heard.listeners["one"].remove()).install()
    an_optimizer()((Tensor([1.0], ms.float32),))
    assert heard.seen == ["one begins", "two begins", "two ends", "one ends"]


def test_dump_and_trainer_mon_share_one_patch(debug, tmp_path, monkeypatch):
    monkeypatch.setenv("MONITOR_OUTPUT_DIR", str(tmp_path / "output"))
    (tmp_path / "monitor.json").write_text('{"wg_distribution": true}')
    net, plain = nn.SequentialCell([nn.Dense(2, 2)]), nn.Cell.__call__
    optimizer = nn.SGD(net.trainable_params(), 0.5)
    monitor = TrainerMon(str(tmp_path / "monitor.json"))
    monitor.set_monitor(net, optimizer)
    debugger = debug(level="L0")
    debugger.start(net)
    assert [kind.__call__.__wrapped__ for kind in KINDS] == [plain, plain]
    optimizer(tuple(parameter * 1 for parameter in net.trainable_params()))
    debugger.step()
    assert all("__call__" in vars(kind) for kind in KINDS)  # TrainerMon listens until its end
    monitor.close()
    assert not any("__call__" in vars(kind) for kind in KINDS)
    assert any(name.startswith("Cell.optimizer.SGD") for name in debug.dump().data)
    assert [path.name for path in (tmp_path / "output").rglob("*.csv")]

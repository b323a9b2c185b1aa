# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Trains two steps bare and two recorded, on a MindSpore that nobody tested: without_a_name.py DUMP [NAME].

NAME is one of ``probe.private_names``: probe does not see it after the bare steps. Prints one line of JSON.
"""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import json
import logging
import sys
from pathlib import Path
from types import ModuleType

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
ms.set_device("CPU")
PROBE = str(Path(importlib.util.find_spec("probe").origin).parent)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc, self.norm = nn.Dense(4, 6), nn.LayerNorm((6,))

    def construct(self, x):
        return ops.relu(self.norm(self.fc(x))).sum()


def train(around):
    ms.set_seed(3)
    net = Net()
    optimizer = nn.Adam(net.trainable_params(), 0.01)
    differentiate = ms.value_and_grad(net, None, net.trainable_params())
    found = []
    for _ in range(2):
        with around(net):
            loss, gradients = differentiate(Tensor(np.arange(8, dtype=np.float32).reshape(2, 4)))
            optimizer(gradients)
        found += [loss.asnumpy(), *(gradient.asnumpy() for gradient in gradients)]
    return [*found, *(parameter.asnumpy() for parameter in net.get_parameters())]


@contextlib.contextmanager
def bare(net):
    yield


class Hidden:
    """An attribute of a class that probe does not see; MindSpore does."""

    def __init__(self, name, original):
        self.name, self.original = name, original

    def __get__(self, instance, owner=None):
        if is_asked_by_probe():
            raise AttributeError(f"there is no {self.name}")
        get = getattr(type(self.original), "__get__", None)
        return self.original if get is None else get(self.original, instance, owner)


class HiddenFromSet(Hidden):
    """The same of one that can be assigned."""

    def __set__(self, instance, value):
        type(self.original).__set__(self.original, instance, value)


def is_asked_by_probe():
    return sys._getframe(2).f_code.co_filename.startswith(PROBE)


def hide_in_module(module, *names):
    class Hiding(type(module)):
        def __getattribute__(self, asked):
            if asked in names and is_asked_by_probe():
                raise AttributeError(f"there is no {asked}")
            return super().__getattribute__(asked)

    module.__class__ = Hiding


class _Every(type):
    """The class of graph nodes for probe: it has every name but one."""

    hidden = ""

    def __getattr__(cls, name):
        if name == cls.hidden:
            raise AttributeError(f"there is no {name}")


class Node(metaclass=_Every):
    """A graph node for probe."""

    def __init__(self, node):
        self.node = node

    def __getattr__(self, name):
        if name == type(self).hidden:
            raise AttributeError(f"there is no {name}")
        found = getattr(self.node, name)
        if name != "next_functions":
            return found
        return tuple((None if node is None else Node(node), place) for node, place in found)


class HiddenOfNodes(Hidden):
    """``Tensor._grad_node``: probe gets a node without a name."""

    def __get__(self, instance, owner=None):
        node = self.original.__get__(instance, owner)
        return (
            Node(node)
            if instance is not None and node is not None and is_asked_by_probe()
            else node
        )


def hide(name):
    """Hide a name of the table from probe; return whether there was one to hide."""
    if name.startswith("node:"):
        _Every.hidden = name[5:].rstrip("?")
        ms.Tensor._grad_node = HiddenOfNodes(
            "_grad_node", inspect.getattr_static(ms.Tensor, "_grad_node")
        )
        return True
    hidden, modules = False, {}
    for place in name.rstrip("?").split("|"):
        module, _, dotted = place.partition(":")
        with contextlib.suppress(ImportError, AttributeError):
            owner = importlib.import_module(module)
            *words, last = dotted.split(".")
            for word in words:
                owner = getattr(owner, word.removesuffix("()"))
            if isinstance(owner, ModuleType):
                getattr(owner, last)
                modules.setdefault(owner, []).append(last)
            else:
                kind = owner if isinstance(owner, type) else type(owner)
                original = inspect.getattr_static(kind, last)
                descriptor = HiddenFromSet if hasattr(type(original), "__set__") else Hidden
                setattr(kind, last, descriptor(last, original))
            hidden = True
    for module, names in modules.items():
        hide_in_module(module, *names)
    return hidden


def main():
    path, *names = sys.argv[1:]
    expected = train(bare)
    ms.__version__ = "99.0.0"
    taken = False
    if names:
        taken = hide(names[0])
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(message)s")
    from probe import PrecisionDebugger

    debugger = PrecisionDebugger(dump_path=path, level="mix")

    @contextlib.contextmanager
    def recorded(net):
        debugger.start(net)
        yield
        debugger.stop()
        debugger.step()

    with_probe = train(recorded)
    kinds, errors = set(), ""
    for file in Path(path).rglob("dump.json"):
        for entry in json.loads(file.read_text())["data"]:
            kinds |= {
                entry.split(".")[0],
                *({"backward", "parameters_grad", "optimizer"} & set(entry.split("."))),
            }
    for file in Path(path).rglob("dump_error_info.log"):
        errors += file.read_text()
    same = len(expected) == len(with_probe) and all(map(np.array_equal, expected, with_probe))
    print(
        json.dumps({"same": bool(same), "taken": taken, "kinds": sorted(kinds), "errors": errors})
    )


if __name__ == "__main__":
    main()

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Records one training of a net, changed or not, in a child of a process that has imported MindSpore."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import pickle
import signal
import sys
import traceback
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tests.programs.mutants import trainings
from tests.programs.mutants.edits import Edit

HERE = Path(__file__).parent


class Net(NamedTuple):
    """A net of the benchmark.

    Attributes:
        module: the module with its source.
        make: the expression that makes it, with ``m`` for the module.
        data: "image" or "text".
        optimizer: "adam" or "momentum".
    """

    module: str
    make: str
    data: str = "image"
    optimizer: str = "momentum"


_OWN, _DECODERS = "tests.programs.mutants.nets", "tests.programs.mutants.decoders"
NETS = {
    "resnet": Net("mindcv.models.resnet", "m.ResNet(m.BasicBlock, [1, 1, 1, 1], num_classes=5)"),
    "mobilenet": Net(
        "mindcv.models.mobilenetv3", "m.MobileNetV3('small', alpha=0.35, num_classes=5)"
    ),
    "vit": Net(
        "mindcv.models.vit",
        "m.VisionTransformer(image_size=32, patch_size=8, embed_dim=24, depth=2, num_heads=3, num_classes=5)",
        "image",
        "adam",
    ),
    "swin": Net(
        "mindcv.models.swintransformer",
        "m.SwinTransformer(32, 2, 3, 5, 12, [2, 1], [2, 4], window_size=4, drop_path_rate=0.0)",
        "image",
        "adam",
    ),
    "convnext": Net(
        "mindcv.models.convnext", "m.ConvNeXt(3, 5, [1, 1, 1, 1], [8, 12, 16, 24])", "image", "adam"
    ),
    "mixer": Net(
        "mindcv.models.mlpmixer",
        "m.MLPMixer(2, 8, 16, 16, 8, 24, num_classes=5)",
    ),
    "gpt": Net(_OWN, "m.Gpt()", "text", "adam"),
    "bert": Net(_OWN, "m.Bert()", "text", "adam"),
    "lstm": Net(_OWN, "m.Lstm()", "text", "adam"),
    "dcgan": Net(_OWN, "m.Dcgan()", "pair"),
    "llama": Net(_DECODERS, "m.Decoder()", "text", "adam"),
    "experts": Net(_DECODERS, "m.Decoder(experts=4, layers=1)", "text", "own"),
}


def data_of(kind):
    """Return two batches of numpy arrays."""
    rng = np.random.RandomState(11)
    made = []
    for _ in range(2):
        if kind == "text":
            x = rng.randint(0, 40, (4, 8)).astype(np.int32)  # with 0, the padding of the decoders
        else:
            x = rng.randn(
                4, 8 if kind == "pair" else 3, *((16, 16) if kind == "pair" else (32, 32))
            ).astype(np.float32)
        made.append((x, rng.permutation(5)[:4].astype(np.int32)))
    return made


def source_of(module):
    """Return the path of a module's source, without importing it."""
    return Path(importlib.util.find_spec(module).origin)


def _load(module, folder, edit):
    """Import a module from a copy of its source with a change, in whose frames the copy is named."""
    path = source_of(module)
    source = path.read_text()
    copy = Path(folder) / path.name
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_text(edit.apply(source) if edit else source)
    importlib.import_module(module.rpartition(".")[0])
    loaded = importlib.util.module_from_spec(importlib.util.spec_from_file_location(module, copy))
    sys.modules[module] = loaded
    loaded.__dict__.setdefault("ms", importlib.import_module("mindspore"))
    loaded.__dict__.setdefault("ops", importlib.import_module("mindspore").ops)
    loaded.__spec__.loader.exec_module(loaded)
    loaded.__dict__.setdefault("ms", importlib.import_module("mindspore"))
    loaded.__dict__.setdefault("ops", importlib.import_module("mindspore").ops)
    return loaded, str(copy)


def _trace(files, ran):
    """Note the lines of some files that run."""

    def local(frame, event, argument):
        if event == "line":
            ran[frame.f_code.co_filename].add(frame.f_lineno)
        return local

    def calls(frame, event, argument):
        return local if frame.f_code.co_filename in files else None

    sys.settrace(calls)


def _train(name, change, folder, task):
    import mindspore as ms

    from probe import PrecisionDebugger

    ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
    ms.set_device("CPU")
    net_of = NETS[name]
    edit = change if is_edit(change) else None
    in_loop = edit is not None and edit[0] == "loop"
    own = edit[1] if edit is not None else None
    module, path = _load(net_of.module, f"{folder}.source", None if in_loop else own)
    loop, loop_path = _load(
        "tests.programs.mutants.loop", f"{folder}.source", own if in_loop else None
    )
    ran = {path: set(), loop_path: set()}
    if change is None:
        _trace(ran, ran)
    ms.set_seed(3)
    np.random.seed(3)
    net = eval(net_of.make, {"m": module})
    training = change if isinstance(change, trainings.Change) else trainings.Change("", 0)
    truth = trainings.of_net(training, net)
    if truth is None:
        return {"skip": "the net has no such place"}
    if training.kind == "noise":
        rng = np.random.RandomState(training.seed)
        for parameter in net.trainable_params():
            value = parameter.asnumpy()
            parameter.set_data(
                ms.Tensor(value * (1 + 1e-7 * rng.randn(*value.shape)).astype(np.float32))
            )
    loop.make_optimizer = trainings.of_optimizer(training, loop.make_optimizer)
    between, touched = trainings.between(training)
    settings = {
        "task": task,
        "level": "mix",
        "dump_path": str(folder),
        task: {"summary_mode": "md5"},
    }
    config = Path(f"{folder}.json")
    config.write_text(json.dumps(settings))
    debugger = PrecisionDebugger(config_path=str(config))
    losses = loop.train(
        net, net_of.optimizer, trainings.of_data(training, data_of(net_of.data)), debugger, between
    )
    sys.settrace(None)
    end = [parameter.asnumpy().tobytes() for parameter in net.get_parameters()]
    return {
        "truth": touched[0] if touched else truth,
        "losses": losses,
        "end": hash(tuple(end)),
        "ran": {"net": sorted(ran[path]), "loop": sorted(ran[loop_path])},
    }


def record(name, change, folder, task="statistics", limit=60):
    """Record in a child; return what it found out, or {"skip": reason}.

    Args:
        name: the net.
        change: None, ("net" or "loop", Edit), or a ``trainings.Change``.
        folder: the dump.
        task: "statistics" or "tensor".
        limit: seconds.
    """
    folder = Path(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    answer = Path(f"{folder}.pickle")
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(limit)
            log = os.open(f"{folder}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(log, 1)
            os.dup2(log, 2)
            os.environ["PYTHONHASHSEED"] = "0"
            try:
                found = _train(name, change, folder, task)
            except Exception as error:
                traceback.print_exc()
                found = {"skip": f"{type(error).__name__}: {' '.join(str(error).split())[:100]}"}
            answer.write_bytes(pickle.dumps(found))
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    if status or not answer.exists():
        return {"skip": f"it ended with {status}"}
    found = pickle.loads(answer.read_bytes())
    answer.unlink()
    return found


def without_crc(source, target):
    """Copy a dump of summary_mode md5 without its checksums: it is the dump of statistics."""
    import re
    import shutil

    checksum = re.compile(r',\s*"md5": "[0-9a-f]*"')
    for path in Path(source).rglob("*.json"):
        copy = Path(target) / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if path.name == "dump.json":
            copy.write_text(checksum.sub("", path.read_text()))
        else:
            shutil.copy(path, copy)


def is_edit(change):
    """Return whether a change is one of a source."""
    return isinstance(change, tuple) and len(change) == 2 and isinstance(change[1], Edit)

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""ops.TensorDump in graphs on CPU, where MindSpore has no kernel for it.

A graph passes each tensor to a channel. A thread takes it out, and MindSpore's own code of the host writes the file:
its name, its id and its content are MindSpore's.
"""

from __future__ import annotations

import queue
import threading

import mindspore as ms
import ml_dtypes
import numpy as np
from mindspore import Tensor, ops
from mindspore.ops import PrimitiveWithInfer

from probe.capture.graph.templates import DumpOperators, gradient_link


class Channel:
    """The way from the device to the host: files are written later, one after the other.

    Attributes:
        is_open: cleared, it holds everything back.
        drops: path -> whether this tensor gets lost.
        written: the number of tensors that came out.
    """

    def __init__(self):
        self.is_open = threading.Event()
        self.is_open.set()
        self.drops = lambda path: False
        self.written = 0
        self._queue = queue.Queue()
        self._dump = ops.TensorDump()
        threading.Thread(target=self._run, daemon=True).start()

    def put(self, path, tensor):
        self._queue.put((path, tensor))

    def flush(self):
        """Wait until everything has come out."""
        self._queue.join()

    def _run(self):
        while True:
            path, tensor = self._queue.get()
            self.is_open.wait()
            if not self.drops(path):
                self._dump(path, tensor)
            self.written += 1
            self._queue.task_done()


class _Number(PrimitiveWithInfer):
    """(path, tensor) -> a number for them, while MindSpore compiles."""

    def __init__(self, known):
        super().__init__("Number")
        self.set_const_prim(True)
        self.add_prim_attr("forbid_reuse_result", True)
        self.known = known

    def __infer__(self, path, x):
        self.known.append((path["value"], str(x["dtype"].element_type()), tuple(x["shape"])))
        return {"dtype": None, "shape": None, "value": len(self.known) - 1}


def operators(channel):
    """Return the two operators."""
    known = []
    number, single, int32, brain = _Number(known), ms.float32, ms.int32, ms.bfloat16
    cast, reshape, zeros_like = ops.cast, ops.reshape, ops.zeros_like

    def put(place, array):
        path, dtype, shape = known[int(place[0])]
        values = np.array(array).reshape(shape)
        if dtype == "BFloat16":
            values = values.astype(ml_dtypes.bfloat16)
        channel.put(path, Tensor(values))
        return np.zeros(1, np.int32)

    send = ops.Custom(put, lambda *_: (1,), lambda *_: ms.int32, func_type="pyfunc")
    send.add_prim_attr("side_effect_io", True)

    def prepare(x):
        given = x
        if x.dtype == brain:
            given = cast(given, single)
        if len(x.shape) == 0:
            given = reshape(given, (1,))
        return given

    def dump(path, x):
        send(Tensor([number(path, x)], int32), prepare(x))

    def watch(path):
        def bprop(x, other, out, dout):
            send(Tensor([number(path, dout)], int32), prepare(dout))
            return dout, zeros_like(other)

        return gradient_link(path, bprop)

    return DumpOperators(dump, watch)

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Model.train with callbacks, Model.eval, and Model.fit with a validation."""

import mindspore as ms
from common import Net, dataset, tell
from mindspore import nn

#| from probe import MsprobeStep, PrecisionDebugger
#| debugger = PrecisionDebugger(level="mix", dump_path="dump")
ms.set_seed(1)
net = Net()
model = ms.Model(
    net, nn.CrossEntropyLoss(), nn.Adam(net.trainable_params(), 1e-2), metrics={"accuracy"}
)
watch = [ms.LossMonitor(1)]
#| watch.insert(0, MsprobeStep(debugger))
model.train(1, dataset(2), callbacks=watch, dataset_sink_mode=False)
print(model.eval(dataset(2)))
sink = {"dataset_sink_mode": True}
#| sink["callbacks"] = MsprobeStep(debugger)
model.train(1, dataset(2), **sink)
fit = {"callbacks": ms.LossMonitor(1)}
#| fit = {"callbacks": [MsprobeStep(debugger), ms.LossMonitor(1)]}
model.fit(2, dataset(1), dataset(1), **fit)
print(model.predict(ms.ops.ones((2, 4))).shape)
tell(net)

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""TrainerMon: msprobe's monitor of a training, with its settings file and its csv files."""

from __future__ import annotations

import atexit
import os
import time
import uuid
from typing import TYPE_CHECKING, Any

from probe.config.settings import PathLike
from probe.errors import UsageError, raised_at_caller
from probe.monitor.msprobe.config import ConfigSource
from probe.process.rank import RankResolver

if TYPE_CHECKING:
    from probe.monitor.msprobe.training import Training

#: the variable of the environment that names the folder, and the folder where it is not set
_OUTPUT, _DEFAULT = "MONITOR_OUTPUT_DIR", "./monitor_output"
#: the clock of the folders' names, in seconds from UTC
_CLOCK = 8 * 3600


class TrainerMon:
    """Writes numbers of the steps of a training to csv files, as msprobe's monitor does.

    Task "monitor" of PrecisionDebugger is probe's own: it costs less, and tells by itself which step to look at.

    Args:
        config_file_path: the settings file, with the keys of msprobe's monitor.
        process_group: accepted, without effect.
        params_have_main_grad: accepted, without effect: an optimizer's gradients are those that it is called with.

    Raises:
        SettingsError: when the file cannot be read, or a value in it is wrong.

    Example::

        monitor = TrainerMon("monitor.json")
        monitor.set_monitor(model, optimizer)
    """

    @raised_at_caller
    def __init__(
        self, config_file_path: PathLike, process_group: Any = None, params_have_main_grad: bool = True
    ) -> None:
        self._source = ConfigSource(config_file_path)
        self._base = os.path.abspath(os.environ.get(_OUTPUT) or _DEFAULT)
        began = time.strftime("%b%d_%H-%M-%S", time.gmtime(time.time() + _CLOCK))
        self._names = began, uuid.uuid4().hex[:8]
        self._training: Training | None = None

    @raised_at_caller
    def set_monitor(
        self,
        model: Any,
        optimizer: Any,
        grad_acc_steps: int = 1,
        tp_group: Any = None,
        dp_group: Any = None,
        start_iteration: int = 0,
    ) -> None:
        """Watch a training from now on. A step ends with the call of the optimizer.

        Args:
            model: a Cell, or a list of Cells.
            optimizer: an optimizer of MindSpore, or an object that holds one.
            grad_acc_steps: the number of backwards of a step.
            tp_group: the tensor-parallel group. Only its first rank writes grad_reduced of parameters that all hold.
            dp_group: the data-parallel group. Only its first rank writes grad_reduced.
            start_iteration: the number of the first step.

        Raises:
            UsageError: when an argument is wrong, or this object watches a training already.
        """
        from probe.monitor.msprobe.parts import watched
        from probe.monitor.msprobe.training import Training  # imports MindSpore

        parts = watched(model, optimizer, grad_acc_steps, tp_group, dp_group)
        if type(start_iteration) is not int or start_iteration < 0:
            raise UsageError(f"set_monitor(): start_iteration is {start_iteration!r}. Allowed: a whole number from 0")
        if self._training is not None:
            raise UsageError("set_monitor(): this TrainerMon watches a training already: make another one")
        rank = RankResolver().rank() or 0
        began, own = self._names
        folder = os.path.join(self._base, f"{began}-rank{rank}-{own}")
        self._training = Training(self._source, parts, rank, folder, start_iteration)
        atexit.register(self.close)

    def close(self) -> None:
        """Watch no more, and write everything. It may be called twice; the end of the process does it too."""
        if self._training is not None:
            self._training.close()

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""probe: accuracy data of a MindSpore training in PyNative mode, call by call, in msprobe's format.

>>> from probe import PrecisionDebugger, MsprobeStep
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from probe.callbacks import MsprobeInitStep, MsprobeStep
    from probe.config.own_statistics import register_statistic
    from probe.debugger import PrecisionDebugger
    from probe.errors import (
        AlarmError,
        DifferenceError,
        NonFiniteError,
        ProbeError,
        SettingsError,
        UsageError,
    )
    from probe.monitor.msprobe.trainer_mon import TrainerMon
    from probe.reading.compare.answer.comparison import compare
    from probe.reading.dumps.load import load
    from probe.reading.dumps.run import open
    from probe.reading.one_run.health.run_check import check
    from probe.reading.one_run.nan import first_nan
    from probe.reading.one_run.rank_checks import check_ranks
    from probe.reading.report.report import report
    from probe.replaying.replay import replay
    from probe.seeding import seed_all

__all__ = [
    "AlarmError", "DifferenceError", "MsprobeInitStep", "MsprobeStep", "NonFiniteError", "PrecisionDebugger",
    "ProbeError", "SettingsError", "TrainerMon", "UsageError", "__version__", "check", "check_ranks", "compare",
    "first_nan", "load", "open", "register_statistic", "replay", "report", "seed_all",
]  # fmt: skip
__version__ = "0.1.0"

#: the modules of the names above
_HOMES = {
    "probe.callbacks": "MsprobeInitStep MsprobeStep",
    "probe.config.own_statistics": "register_statistic",
    "probe.debugger": "PrecisionDebugger",
    "probe.errors": "AlarmError DifferenceError NonFiniteError ProbeError SettingsError UsageError",
    "probe.monitor.msprobe.trainer_mon": "TrainerMon",
    "probe.reading.compare.answer.comparison": "compare",
    "probe.reading.dumps.load": "load",
    "probe.reading.dumps.run": "open",
    "probe.reading.one_run.health.run_check": "check",
    "probe.reading.one_run.nan": "first_nan",
    "probe.reading.one_run.rank_checks": "check_ranks",
    "probe.reading.report.report": "report",
    "probe.replaying.replay": "replay",
    "probe.seeding": "seed_all",
}


def __getattr__(name: str) -> Any:
    """Import a name at its first use: ``import probe`` alone costs nothing."""
    home = next((home for home, names in _HOMES.items() if name in names.split()), None)
    if home is None:
        raise AttributeError(f"module 'probe' has no attribute {name!r}")
    import importlib

    value = globals()[name] = getattr(importlib.import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

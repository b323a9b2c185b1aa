# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""probe: accuracy data of a MindSpore training in PyNative mode, call by call, in msprobe's format.

>>> from probe import PrecisionDebugger, MsprobeStep
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from probe.callbacks import MsprobeInitStep, MsprobeStep
    from probe.debugger import PrecisionDebugger
    from probe.errors import AlarmError, DifferenceError, NonFiniteError, ProbeError, SettingsError, UsageError
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
    "AlarmError",
    "DifferenceError",
    "MsprobeInitStep",
    "MsprobeStep",
    "NonFiniteError",
    "PrecisionDebugger",
    "ProbeError",
    "SettingsError",
    "TrainerMon",
    "UsageError",
    "__version__",
    "check",
    "check_ranks",
    "compare",
    "first_nan",
    "load",
    "open",
    "replay",
    "report",
    "seed_all",
]
__version__ = "0.1.0"

_LAZY_IMPORTS = {
    "AlarmError": "probe.errors",
    "DifferenceError": "probe.errors",
    "MsprobeInitStep": "probe.callbacks",
    "MsprobeStep": "probe.callbacks",
    "NonFiniteError": "probe.errors",
    "PrecisionDebugger": "probe.debugger",
    "ProbeError": "probe.errors",
    "SettingsError": "probe.errors",
    "TrainerMon": "probe.monitor.msprobe.trainer_mon",
    "UsageError": "probe.errors",
    "check": "probe.reading.one_run.health.run_check",
    "check_ranks": "probe.reading.one_run.rank_checks",
    "compare": "probe.reading.compare.answer.comparison",
    "first_nan": "probe.reading.one_run.nan",
    "load": "probe.reading.dumps.load",
    "open": "probe.reading.dumps.run",
    "replay": "probe.replaying.replay",
    "report": "probe.reading.report.report",
    "seed_all": "probe.seeding",
}


def __getattr__(name: str) -> Any:
    """Import a name at its first use: ``import probe`` alone costs nothing."""
    if name not in _LAZY_IMPORTS:
        raise AttributeError(f"module 'probe' has no attribute {name!r}")
    import importlib

    value = globals()[name] = getattr(importlib.import_module(_LAZY_IMPORTS[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

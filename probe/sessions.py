# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The kinds of sessions: calls are recorded, numbers are monitored, or MindSpore dumps kernels."""

from __future__ import annotations

from probe.config.config_file import ConfigFile
from probe.config.settings import Settings
from probe.monitor.monitor_session import MonitorSession
from probe.session.kernel_session import KernelSession
from probe.session.session import Session


def new_session(settings: Settings, source: ConfigFile, before: Session | None) -> Session:
    """Return the session of these settings."""
    kind = KernelSession if settings.level == "L2" else MonitorSession if settings.task == "monitor" else Session
    return kind(settings, source, before)

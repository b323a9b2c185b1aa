# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The fixture of nearly all tests: debuggers that are closed after the test, and must not have failed."""

from __future__ import annotations

import mindspore as ms
import pytest

from tests.support.dumps import Debug

ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
ms.set_device("CPU")


@pytest.fixture
def debug(tmp_path):
    from probe import PrecisionDebugger

    yield Debug(tmp_path)
    session = PrecisionDebugger._living and PrecisionDebugger._living()
    if session is not None:
        session.close()
        errors = list(tmp_path.rglob("dump_error_info.log"))
        assert not errors, errors[0].read_text()

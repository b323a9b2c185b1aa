# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Home folders and environment variables in paths."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from probe import PrecisionDebugger, SettingsError
from probe.config import loading
from probe.config.config_file import ConfigFile


@pytest.mark.parametrize("key", ["dump_path", "support_ops"])
def test_home_and_variables_in_paths_are_expanded(load, monkeypatch, tmp_path, key):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("RUN_NAME", "run~7")
    monkeypatch.setenv("LITERAL", "$RUN_NAME")
    for given, expected in [
        ("~", str(tmp_path)),
        ("~/dump", f"{tmp_path}/dump"),
        ("$HOME/${RUN_NAME}_a/$RUN_NAME", f"{tmp_path}/run~7_a/run~7"),
        ("/data/~/a$", "/data/~/a$"),
        ("/$LITERAL", "/$RUN_NAME"),
    ]:
        assert getattr(load({key: given}), key) == expected
    assert load({}, dump_path="~/argument").dump_path == f"{tmp_path}/argument"


def test_home_and_variables_in_config_path_are_expanded(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CONFIGS", str(tmp_path))
    (tmp_path / "config.json").write_text('{"task": "tensor"}')
    for given in ("~/config.json", "$CONFIGS/config.json", Path("~/config.json")):
        source = ConfigFile(given)
        assert source.load().task == "tensor"
        assert source.changed() is None
    (tmp_path / "config.json").write_text('{"task": "statistics"}')
    assert source.changed().task == "statistics"


@pytest.mark.parametrize("value", [None, ""])
@pytest.mark.parametrize("key", ["dump_path", "support_ops", "config_path"])
def test_an_undefined_variable_is_a_settings_error(load, monkeypatch, key, value):
    if value is None:
        monkeypatch.delenv("PROBE_SCRATCH", raising=False)
    else:
        monkeypatch.setenv("PROBE_SCRATCH", value)
    read = ConfigFile if key == "config_path" else lambda path: load({key: path})
    with pytest.raises(
        SettingsError, match=f"{key}: the environment variable 'PROBE_SCRATCH' is not set, or empty"
    ):
        read("$PROBE_SCRATCH/x")


def test_an_unknown_home_is_a_settings_error(error):
    assert "dump_path: the home folder '~no-such-user-here' is unknown" in error(
        {"dump_path": "~no-such-user-here/x"}
    )


def test_a_config_path_belongs_to_the_folder_of_its_debugger(monkeypatch, tmp_path):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    source = ConfigFile("config.json")
    monkeypatch.chdir(tmp_path / "elsewhere")
    (tmp_path / "config.json").write_text('{"task": "tensor"}')
    assert source.changed().task == "tensor"


@pytest.mark.skipif(
    not hasattr(os, "mkfifo"), reason="needs a system that lets a current folder be removed"
)
def test_a_current_folder_that_was_removed_is_a_settings_error(monkeypatch, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(SettingsError, match="dump_path: the current folder does not exist"):
        loading.load(dump_path="dump")
    assert loading.load(dump_path="/dump").dump_path == "/dump"


def test_a_folder_that_takes_no_files_is_told_when_the_debugger_is_made():
    with pytest.raises(
        SettingsError, match="dump_path: '/proc/x' cannot be written: /proc takes no files"
    ):
        PrecisionDebugger(dump_path="/proc/x")

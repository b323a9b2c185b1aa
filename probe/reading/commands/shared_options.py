# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
# ruff: noqa: RUF001 - Chinese has its own punctuation
"""Options that several commands have."""

from __future__ import annotations

import argparse

from probe.findings.sentence import LANGUAGES
from probe.findings.wording import Wording
from probe.reading.commands.command import Option

LANGUAGE = Option(
    "--lang",
    is_language=True,
    choices=LANGUAGES,
    help=Wording(
        "the language of the answer (default: the locale's)", "回答的语言（默认：locale 的语言）"
    ),
)
DUMP = Option(
    "path",
    metavar="DIR",
    help=Wording(
        "a dump_path, or a step or rank folder in it", "dump_path，或其中 step、rank 的目录"
    ),
)
#: a choice of steps and ranks
CHOICE = (
    Option(
        "--step",
        default="",
        metavar="STEPS",
        help=Wording("only these steps, as 0,4-6", "只看这些 step，例如 0,4-6"),
    ),
    Option(
        "--rank",
        default="",
        metavar="RANKS",
        help=Wording("only these ranks, as 0-7", "只看这些 rank，例如 0-7"),
    ),
)
JOBS = Option(
    "--jobs",
    type=int,
    default=0,
    metavar="N",
    help=Wording(
        "how many processes work (default: one for each core)", "工作进程数（默认：每个核一个）"
    ),
)
#: the processes that work
WORKERS = (
    JOBS,
    Option(
        "--scheduler",
        default="",
        metavar="ADDRESS",
        help=Wording(
            "a Dask scheduler, as tcp://10.0.0.1:8786: its workers work",
            "Dask 调度器，例如 tcp://10.0.0.1:8786：由它的 worker 工作",
        ),
    ),
)
REGEX = Option(
    "--regex",
    default="",
    metavar="REGEX",
    help=Wording(
        "only those in whose name this regular expression is found", "只看名称匹配该正则表达式的"
    ),
)
CELL = Option(
    "--cell",
    default="",
    metavar="PATH",
    help=Wording(
        "only those in Cells whose path contains this", "只看所在 Cell 的路径包含该文本的"
    ),
)
#: a choice by name
NAMES = (
    Option(
        "--name",
        metavar="TEXT",
        help=Wording("only those whose name contains this", "只看名称包含该文本的"),
    ),
    REGEX,
    CELL,
)
#: an older spelling of --name
LIKE = Option("--like", default=argparse.SUPPRESS, dest="name")
CSV = Option(
    "--csv",
    nargs="?",
    const="-",
    metavar="FILE",
    help=Wording(
        "write all rows as csv (default: to standard output)",
        "把所有行写成 csv（默认：写到标准输出）",
    ),
)

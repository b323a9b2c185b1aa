# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
# ruff: noqa: RUF001 - Chinese has its own punctuation
"""The commands that read, with their options; each row names its function.

Commands of other rooms are rows of those rooms.
"""

from __future__ import annotations

from probe.findings.wording import Wording
from probe.naming import NARROWER
from probe.reading.commands.arguments import ROWS
from probe.reading.commands.command import Command, Exclusive, Option
from probe.reading.commands.findings import run_nan, run_ranks, run_trend
from probe.reading.commands.shared_options import (
    CELL,
    CHOICE,
    CSV,
    DUMP,
    LANGUAGE,
    LIKE,
    NAMES,
    REGEX,
    WORKERS,
)
from probe.reading.commands.show import run_check, run_compare, run_recover, run_report, run_show
from probe.reading.commands.watch import run_watch

_NARROWER = ", ".join(NARROWER)
_JSON_FINDINGS = Option(
    "--json", action="store_true", help=Wording("write the findings as JSON", "把发现写成 JSON")
)
_TOLERANCE = Option(
    "--tolerance",
    type=float,
    default=1.0,
    metavar="FACTOR",
    help=Wording("multiplies all tolerances", "所有容差乘以该数"),
)
_SHOW = Command(
    "show",
    run_show,
    help=Wording("the content of a dump", "dump 的内容"),
    description=Wording(
        "Show the content of a dump; with a question, the tensors that fit.",
        "显示 dump 的内容；带条件时显示符合条件的张量。",
    ),
    epilog=Wording(
        "Exit status: 0 shown, 1 a dump is broken, 2 wrong use, no dump, or none that can be read.",
        "退出码：0 已显示，1 有 dump 损坏，2 用法错误、没有 dump 或都无法读取。",
    ),
    options=(
        DUMP,
        *NAMES,
        *CHOICE,
        Option(
            "--nonfinite",
            action="store_true",
            help=Wording("tensors that hold NaN or Inf", "含 NaN 或 Inf 的张量"),
        ),
        Option(
            "--raised", action="store_true", help=Wording("calls that raised", "抛出异常的调用")
        ),
        Option(
            "--sort",
            default="",
            metavar="KEY",
            help=Wording(
                "greatest first: max, min, mean, norm, nan_count, inf_count",
                "从大到小排序：max、min、mean、norm、nan_count、inf_count",
            ),
        ),
        Option(
            "--fits",
            default="",
            choices=NARROWER,
            metavar="DTYPE",
            help=Wording(
                f"calls whose numbers would become Inf or zero in {_NARROWER}; worst first",
                f"数值在 {_NARROWER} 中会变为 Inf 或零的调用；最差的在前",
            ),
        ),
        Option(
            "--dtypes",
            action="store_true",
            help=Wording(
                "calls and casts by dtype; where half enters and leaves",
                "按 dtype 统计的调用和类型转换；半精度进入和离开之处",
            ),
        ),
        Option(
            "--stack",
            action="store_true",
            help=Wording(
                "with the lines of code that each call came from", "附上每个调用来自的代码行"
            ),
        ),
        Option(
            "--rows",
            type=int,
            default=-1,
            metavar="N",
            help=Wording(
                "how many tensors to list (0: all; default: 40 on a terminal, else all)",
                "列出多少个张量（0：全部；默认：终端上 40，否则全部）",
            ),
        ),
        Option("--format", default="text", choices=("text", "csv", "json")),
        Exclusive(
            (
                CSV,
                Option(
                    "--json",
                    action="store_const",
                    const="json",
                    dest="format",
                    help=Wording("write all rows as JSON", "把所有行写成 JSON"),
                ),
            )
        ),
        LANGUAGE,
    ),
)
_CHECK = Command(
    "check",
    run_check,
    help=Wording(
        "what is wrong in one run? are two runs, or two checkpoints, the same experiment?",
        "一次运行有什么问题？两次运行或两个检查点是否是同一实验？",
    ),
    description=Wording(
        (
            "Look at one run alone: untrained parameters, modes, losses, numbers. Or compare "
            "parameters, batches, Cells, optimizers, seeds, versions and the command of two "
            "runs, or the weights of two checkpoints."
        ),
        (
            "单独查看一次运行：未训练的参数、模式、损失、数值。或比较两次运行的参数、批数据、"
            "Cell、优化器、种子、版本和命令，或两个检查点的权重。"
        ),
    ),
    epilog=Wording(
        (
            "Exit status: 0 no fault, or the same; 1 a fault, or differences; 2 wrong use, a "
            "file that cannot be read, or a part that cannot be known."
        ),
        "退出码：0 没有故障，或相同；1 有故障，或有差异；2 用法错误、有文件无法读取，或有部分无法得知。",
    ),
    options=(
        Option(
            "paths",
            nargs="+",
            metavar="PATH",
            help=Wording(
                "[GOLDEN] TARGET: a dump_path, a run.json, or a checkpoint (.ckpt, .safetensors, .npz, .pt, .bin)",
                "[GOLDEN] TARGET：dump_path、run.json 或检查点（.ckpt、.safetensors、.npz、.pt、.bin）",
            ),
        ),
        Option(
            "--json",
            action="store_true",
            help=Wording("write the result as JSON", "把结果写成 JSON"),
        ),
        Option(
            "--rows",
            type=int,
            default=12,
            metavar="N",
            help=Wording(
                "how many findings of one run to list (0: all)",
                "列出一次运行的多少条发现（0：全部）",
            ),
        ),
        *WORKERS,
        LANGUAGE,
    ),
)
_COMPARE = Command(
    "compare",
    run_compare,
    help=Wording("where two runs begin to differ", "两次运行从哪里开始不同"),
    description=Wording(
        (
            "Compare two runs, steps, ranks or dump.json files, and name where their "
            "differences begin. A is the golden one, B is yours."
        ),
        "比较两次运行、两个 step、两个 rank 或两个 dump.json，指出差异从哪里开始。A 是标杆，B 是您的运行。",
    ),
    epilog=Wording(
        (
            "Exit status: 0 no difference beyond tolerance, 1 differences, 2 wrong use, "
            "nothing to compare, or a part cannot be known."
        ),
        "退出码：0 没有超出容差的差异，1 有差异，2 用法错误、没有可比较的内容，或有部分无法得知。",
    ),
    options=(
        Option(
            "a",
            nargs="?",
            metavar="GOLDEN",
            help=Wording(
                "A: a dump_path, or a step or rank folder in it",
                "A：dump_path，或其中 step、rank 的目录",
            ),
        ),
        Option("b", nargs="?", metavar="TARGET", help=Wording("B, likewise", "B，同上")),
        Option(
            "--golden_path",
            short="-gp",
            metavar="GOLDEN",
            help=Wording("the same as GOLDEN", "与 GOLDEN 相同"),
        ),
        Option(
            "--target_path",
            short="-tp",
            metavar="TARGET",
            help=Wording("the same as TARGET", "与 TARGET 相同"),
        ),
        *CHOICE,
        Option(
            "--layout-a",
            default="",
            metavar="LAYOUT",
            help=Wording(
                "the parallel layout of GOLDEN, as tp=8,pp=2: keys tp, pp, dp, vpp, order (default: its header's)",
                "GOLDEN 的并行布局，例如 tp=8,pp=2：键为 tp、pp、dp、vpp、order（默认：其文件头中的）",
            ),
        ),
        Option(
            "--layout-b",
            default="",
            metavar="LAYOUT",
            help=Wording(
                "the parallel layout of TARGET, as tp=8,pp=2: keys tp, pp, dp, vpp, order (default: its header's)",
                "TARGET 的并行布局，例如 tp=8,pp=2：键为 tp、pp、dp、vpp、order（默认：其文件头中的）",
            ),
        ),
        Option(
            "--rule",
            action="append",
            nargs=2,
            metavar=("REGEX", "CONDITION"),
            help=Wording(
                "the condition for tensors with such a name, as softmax 'rel_l2 <= 0.02'",
                "名称匹配的张量的条件，例如 softmax 'rel_l2 <= 0.02'",
            ),
        ),
        Option(
            "--noise",
            metavar="GOLDEN2",
            help=Wording(
                (
                    "a second golden run: three times their difference is allowed; one of probe run "
                    "--perturb: the noise of the net is the tolerance"
                ),
                "第二次标杆运行：允许两者之差的三倍；`probe run --perturb` 的运行：以网络的噪声为容差",
            ),
        ),
        _TOLERANCE,
        Option(
            "--distance",
            default="",
            metavar="MODULE:FUNCTION",
            help=Wording(
                "your own distance of two arrays; a rule may name it, as 'distance <= 0.1'",
                "您自己的两数组距离函数；规则可以引用它，例如 'distance <= 0.1'",
            ),
        ),
        Option(
            "--map",
            metavar="FILE",
            help=Wording(
                "yaml or JSON with names in GOLDEN: names in TARGET",
                "yaml 或 JSON：GOLDEN 中的名称对应 TARGET 中的名称",
            ),
        ),
        Option(
            "--arrays",
            default="all",
            choices=("all", "differs", "none"),
            help=Wording("which arrays are read", "读取哪些数组"),
        ),
        *WORKERS,
        LANGUAGE,
        CSV,
        Option(
            "--jsonl",
            metavar="FILE",
            help=Wording("write a line of JSON for each tensor", "为每个张量写一行 JSON"),
        ),
        Option(
            "--json",
            nargs="?",
            const="-",
            metavar="FILE",
            help=Wording(
                "write the summary with the origins as JSON (default: to standard output)",
                "把摘要和起源写成 JSON（默认：写到标准输出）",
            ),
        ),
        Option(
            "--xlsx",
            metavar="FILE",
            help=Wording("write a workbook (needs XlsxWriter)", "写出工作簿（需要 XlsxWriter）"),
        ),
        Option(
            "--msprobe-csv",
            metavar="FILE",
            help=Wording("write a table with the columns of msprobe", "写出 msprobe 列格式的表"),
        ),
    ),
)
_REPORT = Command(
    "report",
    run_report,
    help=Wording("one page to look at, of one run or of two", "一次或两次运行的网页报告"),
    description=Wording(
        (
            "Write one HTML file that opens in a browser without server and network. With "
            "two runs it shows where they begin to differ; A is the golden one, B is yours. "
            "With one run it shows NaN/Inf, norms, ranks, and the series and alarms of the "
            "monitor."
        ),
        (
            "写出一个 HTML 文件，用浏览器打开，无需服务器和网络。"
            "给两次运行时显示它们从哪里开始不同；A 是标杆，B 是您的运行。给一次运行时显示 "
            "NaN/Inf、范数、各 rank，以及监控的序列和告警。"
        ),
    ),
    epilog=Wording(
        (
            "Exit status: 0 nothing found, 1 something found, 2 wrong use, nothing to show, "
            "or a part cannot be known. The headline says the same."
        ),
        "退出码：0 没有发现，1 有发现，2 用法错误、没有可显示的内容，或有部分无法得知。页面标题与此一致。",
    ),
    options=(
        Option(
            "paths",
            nargs="+",
            metavar="DIR",
            help=Wording(
                "[GOLDEN] DIR: a dump_path, or a step or rank folder in it",
                "[GOLDEN] DIR：dump_path，或其中 step、rank 的目录",
            ),
        ),
        Option(
            "--output",
            short="-o",
            default="report.html",
            metavar="FILE",
            help=Wording("the page", "网页文件"),
        ),
        *CHOICE,
        Option(
            "--no-code",
            action="store_true",
            help=Wording(
                "leave out source lines and the folders of files", "不含源代码行和文件目录"
            ),
        ),
        Option(
            "--all",
            action="store_true",
            help=Wording(
                "keep every row, above 300,000 too", "保留所有行，超过 300,000 行时也保留"
            ),
        ),
        Option(
            "--lang",
            default="",
            choices=("en", "zh"),
            help=Wording("the language (default: the browser's)", "语言（默认：浏览器的语言）"),
        ),
        _TOLERANCE,
        Exclusive(
            (
                Option(
                    "--follow",
                    action="store_true",
                    help=Wording(
                        "go on, and renew the page while the training runs, until Ctrl-C",
                        "持续运行，在训练期间更新页面，直到 Ctrl-C",
                    ),
                ),
                Option(
                    "--json",
                    action="store_true",
                    help=Wording("say in JSON what was written", "用 JSON 说明写出了什么"),
                ),
            )
        ),
        *WORKERS,
    ),
)
_NAN = Command(
    "nan",
    run_nan,
    help=Wording("where NaN or Inf comes from", "NaN 或 Inf 来自哪里"),
    description=Wording("Name the call that makes NaN or Inf.", "指出产生 NaN 或 Inf 的调用。"),
    epilog=Wording(
        "Exit status: 0 nothing found, 1 something found, 2 wrong use, no dump, or one that cannot be read.",
        "退出码：0 没有发现，1 有发现，2 用法错误、没有 dump 或无法读取。",
    ),
    options=(
        DUMP,
        *WORKERS,
        LANGUAGE,
        _JSON_FINDINGS,
    ),
)
_RANKS = Command(
    "ranks",
    run_ranks,
    help=Wording("where ranks disagree", "各 rank 在哪里不一致"),
    description=Wording(
        "Check values that must be equal on all ranks.", "检查在所有 rank 上必须相等的值。"
    ),
    epilog=Wording(
        "Exit status: 0 nothing found, 1 something found, 2 wrong use, no dump, or one that cannot be read.",
        "退出码：0 没有发现，1 有发现，2 用法错误、没有 dump 或无法读取。",
    ),
    options=(
        DUMP,
        *WORKERS,
        LANGUAGE,
        _JSON_FINDINGS,
    ),
)
_TREND = Command(
    "trend",
    run_trend,
    help=Wording("numbers over steps", "随 step 变化的数值"),
    description=Wording(
        "Show a statistic over the steps, and name odd series.",
        "显示一个统计量随 step 的变化，并指出异常的序列。",
    ),
    epilog=Wording(
        "Exit status: 0 nothing found, 1 something found, 2 wrong use, no dump, or one that cannot be read.",
        "退出码：0 没有发现，1 有发现，2 用法错误、没有 dump 或无法读取。",
    ),
    options=(
        DUMP,
        *WORKERS,
        LANGUAGE,
        Option(
            "--name",
            metavar="TEXT",
            help=Wording(
                "only tensors whose name contains this (default: parameters_grad, without --regex and --cell)",
                "只看名称包含该文本的张量（默认：没有 --regex 和 --cell 时为 parameters_grad）",
            ),
        ),
        REGEX,
        CELL,
        LIKE,
        _JSON_FINDINGS,
        Option(
            "--stat",
            default="norm",
            metavar="STATISTIC",
            help=Wording(
                "max, min, mean, norm, nan_count, inf_count, or another key of the records",
                "max、min、mean、norm、nan_count、inf_count，或记录的其他键",
            ),
        ),
        CSV,
        Option(
            "--rules",
            metavar="FILE",
            help=Wording(
                'JSON with other thresholds for series, as {"spike": 4}',
                '含其他阈值的 JSON，例如 {"spike": 4}',
            ),
        ),
        Option(
            "--rows",
            type=int,
            default=ROWS,
            metavar="N",
            help=Wording("how many series to list (0: all)", "列出多少个序列（0：全部）"),
        ),
    ),
)
_WATCH = Command(
    "watch",
    run_watch,
    help=Wording("how a training goes", "训练的进展"),
    description=Wording(
        'Show the series of task "monitor", and the rules that hold. The training may still run.',
        '显示任务 "monitor" 的序列和成立的规则。训练可以仍在运行。',
    ),
    epilog=Wording(
        "Exit status: 0 no rule holds, 1 one holds, 2 wrong use, no file of the monitor, or too few rows.",
        "退出码：0 没有规则成立，1 有规则成立，2 用法错误、没有监控文件，或行数太少。",
    ),
    options=(
        Option(
            "path",
            metavar="DIR",
            help=Wording("a dump_path, or the file of one rank", "dump_path，或一个 rank 的文件"),
        ),
        *NAMES,
        LIKE,
        Exclusive(
            (
                Option(
                    "--follow",
                    action="store_true",
                    help=Wording(
                        "go on, and print each new alarm, until Ctrl-C",
                        "持续运行并打印每个新告警，直到 Ctrl-C",
                    ),
                ),
                Option(
                    "--json",
                    action="store_true",
                    help=Wording(
                        "write series, alarms and findings as JSON", "把序列、告警和发现写成 JSON"
                    ),
                ),
            )
        ),
        CSV,
        Option(
            "--msprobe-csv",
            metavar="FOLDER",
            help=Wording(
                "write csv files with the columns of msprobe's monitor",
                "写出 msprobe 监控列格式的 csv 文件",
            ),
        ),
        Option(
            "--tensorboard",
            metavar="FOLDER",
            help=Wording("write event files for TensorBoard", "写出 TensorBoard 的事件文件"),
        ),
        Option(
            "--rules",
            metavar="FILE",
            help=Wording(
                'JSON with other thresholds, as {"spike": 8}',
                '含其他阈值的 JSON，例如 {"spike": 8}',
            ),
        ),
        Option(
            "--rows",
            type=int,
            default=ROWS,
            metavar="N",
            help=Wording("how many series to list (0: all)", "列出多少个序列（0：全部）"),
        ),
        LANGUAGE,
    ),
)
_RECOVER = Command(
    "recover",
    run_recover,
    help=Wording(
        "write the documents that a dead process could not", "写出已终止进程未能写出的文档"
    ),
    description=Wording(
        "Turn the journals that a dead process left into dump.json, stack.json and construct.json.",
        "把已终止进程留下的日志转为 dump.json、stack.json 和 construct.json。",
    ),
    epilog=Wording(
        "Exit status: 0 all is well, 1 something is lost, 2 wrong use, or no folder.",
        "退出码：0 一切正常，1 有内容丢失，2 用法错误，或没有该目录。",
    ),
    options=(
        DUMP,
        Option(
            "--json",
            action="store_true",
            help=Wording("write the result as JSON", "把结果写成 JSON"),
        ),
        LANGUAGE,
    ),
)
#: in the order of --help
COMMANDS = (
    _SHOW,
    _CHECK,
    _COMPARE,
    _REPORT,
    _NAN,
    _RANKS,
    _TREND,
    _WATCH,
    _RECOVER,
)

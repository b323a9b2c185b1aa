# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
# ruff: noqa: RUF001 - Chinese has its own punctuation
"""The settings: a row for each, with its default, its validator and its meaning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from probe.config import validators
from probe.config.validators import ALL_MODES, TASKS, ArrayCondition, DimSlice, StepSelection
from probe.findings.sentence import ENGLISH
from probe.findings.wording import Wording

#: tasks of level L2 alone, which have no settings of their own
KERNEL_TASKS = ("exception_dump", "overflow_check")
#: tasks that can record a share of the calls in each step
ROLLING_TASKS = ("statistics", "nan_check", "monitor")
#: tasks of msprobe that probe does not have
MSPROBE_TASKS = tuple("acc_check diff_check free_benchmark grad_probe run_ut".split())
#: the validator of each setting
Rows = Mapping[str, validators.Validator]


def _row(validator: validators.Validator, meaning: Wording, *tasks: str) -> dict[str, Any]:
    """Return the metadata of a setting under the names of tasks; without ``tasks``, of one at the top of the file."""
    return {"validator": validator, "meaning": meaning, "tasks": tasks}


@dataclass(frozen=True)
class Settings:
    """All settings of one debugger, checked and complete.

    A row names a setting, its default, its validator and its meaning. Allowed keys, error messages and the help of
    ``probe run`` come from the rows alone. ``dump_path`` is absolute here, and no ranks or steps mean all.
    """

    task: str = field(
        default="statistics",
        metadata=_row(
            validators.task(KERNEL_TASKS, MSPROBE_TASKS),
            Wording(
                (
                    '"statistics", "tensor" (arrays too), "structure" (names, stacks and the tree of Cells '
                    'only), or "nan_check" (the first call that makes NaN/Inf, and the calls before it), or '
                    '"monitor" (a few numbers of every step, and rules that start a dump).'
                ),
                (
                    '"statistics"、"tensor"（另存数组）、"structure"（只有名称、调用栈和 Cell 树），或 '
                    '"nan_check"（首个产生 NaN/Inf 的调用及其之前的调用），或 "monitor"（每步少量数字，'
                    "以及会开始 dump 的规则）。"
                ),
            ),
        ),
    )
    dump_path: str = field(
        default="./dump_path",
        metadata=_row(
            validators.dump_path,
            Wording("absolute folder of the dump.", "dump 的目录（绝对路径）。"),
        ),
    )
    rank: frozenset[int] = field(
        default=frozenset(),
        metadata=_row(
            validators.numbers,
            Wording("ranks that record; empty means all.", "要记录的 rank；空表示全部。"),
        ),
    )
    step: frozenset[int] | StepSelection = field(
        default=frozenset(),
        metadata=_row(
            validators.steps,
            Wording("steps that are recorded; empty means all.", "要记录的 step；空表示全部。"),
        ),
    )
    level: str = field(
        default="L1",
        metadata=_row(
            validators.choice("L0", "L1", "L2", "mix", "debug"),
            Wording(
                (
                    '"L0" (Cells), "L1" (APIs and Primitives), "mix" (both), "L2" (kernels, by MindSpore\'s '
                    'own dump), or "debug" (values that are given to save).'
                ),
                (
                    '"L0"（Cell）、"L1"（API 和 Primitive）、"mix"（两者）、"L2"（kernel，由 MindSpore '
                    '自己的 dump 采集），或 "debug"（传给 save 的值）。'
                ),
            ),
        ),
    )
    extra_info: bool = field(
        default=True,
        metadata=_row(
            validators.boolean,
            Wording(
                "whether stack.json and construct.json are written.",
                "是否写 stack.json 和 construct.json。",
            ),
        ),
    )
    support_ops: str | None = field(
        default=None,
        metadata=_row(
            validators.path,
            Wording(
                "a file that replaces the shipped list of APIs; without it that list.",
                "替换自带 API 列表的文件；不给则用自带列表。",
            ),
        ),
    )
    early_names: bool = field(
        default=True,
        metadata=_row(
            validators.boolean,
            Wording(
                "whether functions are watched by their code, so also through names that were taken before start.",
                "是否按函数代码监视，因此 start 之前取得的名称也有效。",
            ),
        ),
    )
    optimizer: str = field(
        default="scalars",
        metadata=_row(
            validators.choice("off", "scalars", "states"),
            Wording(
                (
                    '"scalars" (each update of an optimizer is an entry with its gradients and numbers), '
                    '"states" (its states and results too), or "off".'
                ),
                '"scalars"（优化器的每次更新是一个条目，含梯度和数值）、"states"（另含状态和结果），或 "off"。',
            ),
        ),
    )
    saved_tensors: bool | None = field(
        default=None,
        metadata=_row(
            validators.boolean,
            Wording(
                "whether the tensors that a forward keeps for its backward are guarded; without it by nan_check only.",
                "是否守护前向为反向保留的张量；不给则只有 nan_check 守护。",
            ),
        ),
    )
    storage: bool = field(
        default=False,
        metadata=_row(
            validators.boolean,
            Wording(
                "whether records have stride, storage offset and the number of the memory; statistics and tensor only.",
                "记录是否含 stride、存储偏移和内存编号；仅 statistics 和 tensor。",
            ),
        ),
    )
    unlisted: bool | None = field(
        default=None,
        metadata=_row(
            validators.boolean,
            Wording(
                "whether operations that no listed API covers are recorded; without it unless support_ops is given.",
                "是否记录列表中没有的操作；不给则在未指定 support_ops 时记录。",
            ),
        ),
    )
    overwrite: bool = field(
        default=False,
        metadata=_row(
            validators.boolean,
            Wording(
                "whether another run's dump in dump_path is replaced instead of refused.",
                "dump_path 中另一次运行的 dump 是被替换而不是被拒绝。",
            ),
        ),
    )
    synchronize: bool = field(
        default=False,
        metadata=_row(
            validators.boolean,
            Wording(
                "whether PyNative is made to run synchronously, which makes a dump of small operations cheaper.",
                "是否让 PyNative 同步执行；小操作的 dump 因此更便宜。",
            ),
        ),
    )
    measure: str = field(
        default="auto",
        metadata=_row(
            validators.choice("auto", "host", "device"),
            Wording(
                'where statistics are computed: on the "host", on the "device", or "auto": on the host for CPU only.',
                '统计量在哪里计算："host"、"device"，或 "auto"：仅 CPU 用 host。',
            ),
        ),
    )
    max_disk: int | None = field(
        default=None,
        metadata=_row(
            validators.size,
            Wording(
                "most bytes of arrays that this process may write; without it no limit.",
                "本进程最多写多少字节的数组；不给则不限。",
            ),
        ),
    )
    journal: str = field(
        default="batch",
        metadata=_row(
            validators.choice("batch", "each"),
            Wording(
                (
                    '"batch" (at most 64 entries, or those of 5 ms, are not yet on disk) or "each" (every '
                    "finished entry is)."
                ),
                '"batch"（最多 64 个条目或 5 毫秒内的条目尚未落盘）或 "each"（每个完成的条目都落盘）。',
            ),
        ),
    )
    link_equal: bool = field(
        default=True,
        metadata=_row(
            validators.boolean,
            Wording(
                "whether arrays of equal bytes in one step are hard links to one file.",
                "同一 step 中字节相同的数组是否硬链接为一个文件。",
            ),
        ),
    )
    async_dump: bool = field(
        default=False,
        metadata=_row(
            validators.boolean,
            Wording(
                "accepted; without effect where statistics are computed on the host.",
                "可以写；统计量在 host 上计算时不起作用。",
            ),
        ),
    )
    precision: str | None = field(
        default=None,
        metadata=_row(
            validators.choice("high", "low"),
            Wording(
                (
                    'on a device: "high" divides by the largest value before adding, so that finite data '
                    'never overflow; level "L2": MindSpore\'s own, "high" unless "low" is given.'
                ),
                (
                    '在设备上："high" 在求和前除以最大值，有限的数据不会溢出；级别 "L2"：MindSpore '
                    '自己的选项，除非给出 "low"，否则为 "high"。'
                ),
            ),
        ),
    )
    exact_dtypes: bool = field(
        default=False,
        metadata=_row(
            validators.boolean,
            Wording(
                "whether bfloat16 arrays are stored as bfloat16 instead of as float32.",
                "bfloat16 数组是否按 bfloat16 而不是 float32 保存。",
            ),
        ),
    )
    kernel_dump: Mapping[str, Any] | None = field(
        default=None,
        metadata=_row(
            validators.mapping,
            Wording(
                'level "L2": keys of MindSpore\'s dump configuration that are set directly.',
                '级别 "L2"：直接设置 MindSpore dump 配置中的键；可以为空。',
            ),
        ),
    )
    keep_arrays: bool = field(
        default=False,
        metadata=_row(
            validators.boolean,
            Wording(
                'level "L2", task "statistics": whether the arrays stay that MindSpore wrote to be measured.',
                '级别 "L2"、任务 "statistics"：是否保留 MindSpore 为统计而写的数组。',
            ),
        ),
    )
    snapshot: bool = field(
        default=True,
        metadata=_row(
            validators.boolean,
            Wording(
                "whether run.json and run.jsonl are written, which probe check compares.",
                "是否写 run.json 和 run.jsonl，供 `probe check` 比较。",
            ),
        ),
    )
    golden: str | None = field(
        default=None,
        metadata=_row(
            validators.path,
            Wording(
                (
                    "the dump of a golden run, beside which the training runs; nothing is written until a "
                    "step differs. In a file also an object with its path, on_difference and arrays."
                ),
                (
                    "训练时对照的标杆 dump；出现不同之前不写任何文件。不给则没有。文件中也可以是含路径、"
                    "on_difference 和数组数的对象。"
                ),
            ),
        ),
    )
    on_difference: str = field(
        default="record",
        metadata=_row(
            validators.choice("record", "raise", "stop"),
            Wording(
                (
                    'with golden: whether the step after the first that differs is recorded too ("record"), '
                    'or recording ends ("stop"), or the training ends with DifferenceError ("raise").'
                ),
                (
                    '与 golden 一起：首个不同的 step 之后再记录一步（"record"），或停止记录（"stop"），或以 '
                    'DifferenceError 结束训练（"raise"）。'
                ),
            ),
        ),
    )
    golden_arrays: int = field(
        default=8,
        metadata=_row(
            validators.count,
            Wording(
                "with golden: number of the last entries whose tensors are kept, to be written with a difference.",
                "与 golden 一起：保留最近多少个条目的张量，与差异一起写出。",
            ),
        ),
    )
    dump_enable: bool = field(
        default=True,
        metadata=_row(
            validators.boolean,
            Wording(
                "whether anything is recorded now; the settings file is read again after an edit.",
                "现在是否记录；配置文件修改后会重新读取。",
            ),
        ),
    )
    quiet: bool = field(
        default=False,
        metadata=_row(
            validators.boolean,
            Wording(
                "whether the line at the end of the process is left out, which says where the dump is.",
                "是否省略进程结束时说明 dump 位置的一行。",
            ),
        ),
    )

    scope: tuple[str, ...] = field(
        default=(),
        metadata=_row(
            validators.names,
            Wording(
                "no names, or the two full names that begin and end the recording.",
                "不给名称，或给出记录的首个和末个完整名称。",
            ),
            *TASKS,
        ),
    )
    list: tuple[str, ...] = field(
        default=(),
        metadata=_row(
            validators.patterns,
            Wording(
                'substrings of names, or "name-regex(…)"; empty means every name.',
                '名称的子串，或 "name-regex(…)"；空表示所有名称。',
            ),
            *TASKS,
        ),
    )
    exclude: tuple[str, ...] = field(
        default=(),
        metadata=_row(
            validators.patterns,
            Wording("like list, for calls that are not recorded.", "同 list，匹配的调用不记录。"),
            *TASKS,
        ),
    )
    tensor_list: tuple[str, ...] = field(
        default=(),
        metadata=_row(
            validators.patterns,
            Wording(
                'like list, for calls whose arrays are saved although the task is "statistics".',
                '同 list，任务为 "statistics" 时也保存其数组的调用。',
            ),
            *TASKS,
        ),
    )
    data_mode: frozenset[str] = field(
        default=ALL_MODES,
        metadata=_row(
            validators.modes,
            Wording(
                "subset of forward, backward, input, output: the keys that an entry has.",
                "forward、backward、input、output 的子集：条目含哪些键。",
            ),
            *TASKS,
        ),
    )
    summary_mode: str | tuple[str, ...] = field(
        default="statistics",
        metadata=_row(
            validators.summary,
            Wording(
                '"statistics", "md5" for a CRC-32 of the bytes in addition, or a choice of statistics.',
                '"statistics"、"md5"（另加字节的 CRC-32），或统计量的选择。',
            ),
            *TASKS,
        ),
    )
    when: ArrayCondition | None = field(
        default=None,
        metadata=_row(
            validators.condition,
            Wording(
                (
                    "condition on arrays: of those that task and tensor_list ask for, only these are "
                    "written; without it all."
                ),
                "对数组的条件：在任务和 tensor_list 要求的数组中只写这些；不给则全部写。",
            ),
            *TASKS,
        ),
    )
    sample_mode: int = field(
        default=0,
        metadata=_row(
            validators.sample_mode,
            Wording(
                "1 writes sample_num elements of each array, evenly spaced, in place of all.",
                "1：每个数组只写等间隔的 sample_num 个元素。",
            ),
            *TASKS,
        ),
    )
    sample_num: int = field(
        default=100,
        metadata=_row(validators.count, Wording("see sample_mode.", "见 sample_mode。"), *TASKS),
    )
    slice: tuple[DimSlice, ...] = field(
        default=(),
        metadata=_row(
            validators.pieces,
            Wording(
                "ranges of dimensions that are written; sampling comes after it.",
                "要写的各维范围；采样在其后。",
            ),
            *TASKS,
        ),
    )
    bench_path: str | None = field(
        default=None,
        metadata=_row(
            validators.optional_path,
            Wording("msprobe's name of golden.", "msprobe 对 golden 的名称。"),
            "tensor",
        ),
    )
    diff_nums: int = field(
        default=1,
        metadata=_row(
            validators.positive,
            Wording(
                "number of steps that differ from the golden run, after which nothing more is compared.",
                "多少步与标杆不同之后不再比较。",
            ),
            "tensor",
        ),
    )
    last_calls: int = field(
        default=10,
        metadata=_row(
            validators.count,
            Wording(
                'task "nan_check": number of calls before the finding that are written.',
                '任务 "nan_check"：写出发现之前的多少个调用。',
            ),
            "nan_check",
        ),
    )
    on_nan: str = field(
        default="continue",
        metadata=_row(
            validators.choice("continue", "raise"),
            Wording(
                'task "nan_check": whether the training then goes on ("continue") or ends ("raise").',
                '任务 "nan_check"：之后训练继续（"continue"）还是结束（"raise"）。',
            ),
            "nan_check",
        ),
    )
    max_hits: int = field(
        default=1,
        metadata=_row(
            validators.count,
            Wording(
                'task "nan_check": number of findings after which watching ends, at most one per step; 0: no limit.',
                '任务 "nan_check"：发现多少次后停止监视，每步最多一次；0：不限。',
            ),
            "nan_check",
        ),
    )
    interval: int = field(
        default=10,
        metadata=_row(
            validators.positive,
            Wording(
                'task "monitor": every so many steps parameters, updates and states are measured too.',
                '任务 "monitor"：每隔多少步还测量参数、更新和状态。',
            ),
            "monitor",
        ),
    )
    on_alarm: str = field(
        default="log",
        metadata=_row(
            validators.choice("log", "dump", "again", "raise"),
            Wording(
                (
                    'task "monitor", or with rolling: an alarm is logged ("log"), starts a dump too ("dump"), has '
                    'its step made again ("again"), or ends the training ("raise").'
                ),
                (
                    '任务 "monitor"，或与 rolling 一起：告警只写日志（"log"），或另外开始 dump（"dump"），'
                    '或重做该步（"again"），或结束训练（"raise"）。'
                ),
            ),
            *ROLLING_TASKS,
        ),
    )
    times: int = field(
        default=2,
        metadata=_row(
            validators.one_or_two,
            Wording(
                'task "monitor": how often a step is made again.',
                '任务 "monitor"：一步重做多少次。',
            ),
            "monitor",
        ),
    )
    alarm_steps: int = field(
        default=2,
        metadata=_row(
            validators.positive,
            Wording(
                'task "monitor", or with rolling: number of steps after an alarm that are dumped.',
                '任务 "monitor"，或与 rolling 一起：告警之后 dump 多少步。',
            ),
            *ROLLING_TASKS,
        ),
    )
    alarm_level: str = field(
        default="mix",
        metadata=_row(
            validators.choice("L0", "L1", "mix"),
            Wording(
                'task "monitor", or with rolling: the level of that dump.',
                '任务 "monitor"，或与 rolling 一起：这种 dump 的级别。',
            ),
            *ROLLING_TASKS,
        ),
    )
    max_alarms: int = field(
        default=3,
        metadata=_row(
            validators.count,
            Wording(
                (
                    'task "monitor", or with rolling: number of alarms that start a dump, or have their step made '
                    "again; 0: no limit."
                ),
                '任务 "monitor"，或与 rolling 一起：多少次告警会开始 dump 或重做该步；0：不限。',
            ),
            *ROLLING_TASKS,
        ),
    )
    keep_steps: int = field(
        default=0,
        metadata=_row(
            validators.count,
            Wording(
                'task "monitor": number of the last steps that are kept in memory, and written after an alarm.',
                '任务 "monitor"：内存中保留最近多少步，告警后写出。',
            ),
            "monitor",
        ),
    )
    rolling: int | None = field(
        default=None,
        metadata=_row(
            validators.rolling,
            Wording(
                "number of steps in which each call is recorded once: each step records a share of the calls.",
                "每个调用在多少个 step 中记录一次：每个 step 只记录一部分调用。",
            ),
            *ROLLING_TASKS,
        ),
    )
    budget: float | None = field(
        default=None,
        metadata=_row(
            validators.part,
            Wording(
                "in place of rolling: the part of a step's time that recording may cost, such as 0.02.",
                "代替 rolling：记录可占用的单步时间比例，例如 0.02。",
            ),
            *ROLLING_TASKS,
        ),
    )
    rolling_seed: int = field(
        default=0,
        metadata=_row(
            validators.count,
            Wording(
                "with rolling: another number is another choice of the calls of each step.",
                "与 rolling 一起：另一个数字即每个 step 另一种调用选择。",
            ),
            *ROLLING_TASKS,
        ),
    )
    mechanisms: bool = field(
        default=True,
        metadata=_row(
            validators.boolean,
            Wording(
                'task "monitor": whether attention, routers, embeddings and weights are measured every interval.',
                '任务 "monitor"：是否每隔 interval 步测量注意力、路由、嵌入和权重。',
            ),
            "monitor",
        ),
    )

    @property
    def is_rolling(self) -> bool:
        """Whether each step records a share of the calls."""
        return self.rolling is not None or self.budget is not None

    @property
    def checksums(self) -> bool:
        """Whether records carry a CRC-32."""
        return "md5" in (
            (self.summary_mode,) if isinstance(self.summary_mode, str) else self.summary_mode
        )

    @property
    def journaled(self) -> bool:
        """Whether entries are on disk before the step ends. Steps that may never be written are not."""
        return self.task != "nan_check" and not self.keep_steps

    @property
    def cells(self) -> bool:
        """Whether Cells are recorded."""
        return self.level in ("L0", "mix")

    @property
    def apis(self) -> bool:
        """Whether APIs, Primitives and jit calls are recorded."""
        return self.level in ("L1", "mix")

    @property
    def guards_saved_tensors(self) -> bool:
        """Whether the tensors that a forward keeps for its backward are guarded."""
        is_wanted = self.task == "nan_check" if self.saved_tensors is None else self.saved_tensors
        return is_wanted and (self.cells or self.apis)

    @property
    def operations(self) -> bool:
        """Whether operations outside of every listed API are recorded. A list of the user's own leaves them out."""
        return self.apis and (self.support_ops is None if self.unlisted is None else self.unlisted)


def meanings(language: str = ENGLISH) -> dict[str, str]:
    """Return the meaning of each setting in a language, for help texts."""
    return {row.name: row.metadata["meaning"].text(language) for row in fields(Settings)}


#: the settings at the top of the file, and those under each task's name, with their validators
TOP_ROWS: Rows = {
    row.name: row.metadata["validator"] for row in fields(Settings) if not row.metadata["tasks"]
}
TASK_ROWS: Mapping[str, Rows] = {
    task: {
        row.name: row.metadata["validator"]
        for row in fields(Settings)
        if task in row.metadata["tasks"]
    }
    for task in TASKS
}

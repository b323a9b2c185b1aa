# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
# ruff: noqa: RUF001 - Chinese has its own punctuation
"""The settings: one row per setting, msprobe's config.json (or YAML) in, one frozen object or one SettingsError out."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Union

from probe.config import file_reader, validators
from probe.config.messages import errors_about, nearest, printable, refuse
from probe.config.own_statistics import own_statistics
from probe.config.validators import (
    DATA_MODES,
    HASHES,
    RANGES,
    TASKS,
    ArrayCondition,
    DimSlice,
    StepSelection,
)
from probe.errors import SettingsError
from probe.findings.sentence import ENGLISH, NOTHING, Sentence, say
from probe.findings.wording import Wording
from probe.naming import is_full_name

_log = logging.getLogger("probe")

PathLike = Union[str, "os.PathLike[str]"]

#: tasks of level L2 alone, which have no settings of their own
KERNEL_TASKS = ("exception_dump", "overflow_check")
#: tasks of msprobe that probe does not have
_MSPROBE_TASKS = tuple("acc_check diff_check free_benchmark grad_probe run_ut".split())
#: keys of msprobe's settings files: accepted, without effect here
_FOREIGN = frozenset(_MSPROBE_TASKS + KERNEL_TASKS).union(
    "seed is_deterministic enable_dataloader acl_config backward_input file_format risk_level custom_op_namespaces "
    "load check_mode error_data_path white_list black_list fuzz_stage fuzz_device fuzz_level pert_mode handler_type "
    "if_preheat preheat_step max_sample pert_type overflow_nums param_list bounds nfs_path request_id diff_nums device "
    "op_debug_mode online_run_ut host port jit_level output_path bench_path".split()
)
#: the keys of the object "golden" -> their settings
_GOLDEN = {"path": "golden", "on_difference": "on_difference", "arrays": "golden_arrays"}
_Rows = Mapping[str, validators.Validator]


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
            validators.task(KERNEL_TASKS, _MSPROBE_TASKS),
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
        default=frozenset(DATA_MODES[1:]),
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
                    'task "monitor": an alarm is logged ("log"), starts a dump too ("dump"), has its step '
                    'made again ("again"), or ends the training ("raise").'
                ),
                (
                    '任务 "monitor"：告警只写日志（"log"），或另外开始 dump（"dump"），'
                    '或重做该步（"again"），或结束训练（"raise"）。'
                ),
            ),
            "monitor",
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
                'task "monitor": number of steps after an alarm that are dumped.',
                '任务 "monitor"：告警之后 dump 多少步。',
            ),
            "monitor",
        ),
    )
    alarm_level: str = field(
        default="mix",
        metadata=_row(
            validators.choice("L0", "L1", "mix"),
            Wording(
                'task "monitor": the level of that dump.', '任务 "monitor"：这种 dump 的级别。'
            ),
            "monitor",
        ),
    )
    max_alarms: int = field(
        default=3,
        metadata=_row(
            validators.count,
            Wording(
                'task "monitor": number of alarms that start a dump, or have their step made again; 0: no limit.',
                '任务 "monitor"：多少次告警会开始 dump 或重做该步；0：不限。',
            ),
            "monitor",
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
TOP_ROWS: _Rows = {
    row.name: row.metadata["validator"] for row in fields(Settings) if not row.metadata["tasks"]
}
TASK_ROWS: Mapping[str, _Rows] = {
    task: {
        row.name: row.metadata["validator"]
        for row in fields(Settings)
        if task in row.metadata["tasks"]
    }
    for task in TASKS
}


def load(config_path: PathLike | None = None, **arguments: Any) -> Settings:
    """Read a settings file, let the given arguments win over it, and check both.

    Args:
        config_path: a .json, .yaml or .yml file; None takes the defaults.
        **arguments: values for the keys at the top of the file, or under the task's name; None counts as not given.

    Returns:
        The complete settings.

    Raises:
        SettingsError: naming the file, the key, the value given, the allowed values and the nearest right spelling.
            For a file that cannot be parsed it names the line and the remedy.
    """
    given = {key: value for key, value in arguments.items() if value is not None}
    file = "" if config_path is None else validators.path("config_path", config_path)
    if file and not file.lower().endswith((".json", ".yaml", ".yml")):
        refuse("config_path", file, say("settings.suffix"))
    content = file_reader.read(file) if file else {}
    with errors_about(file):
        values = _section(
            _unfolded(content), TOP_ROWS, task=given.get("task") or content.get("task")
        )
        sections = {
            task: _section(content.get(task), rows, f"{task}.") for task, rows in TASK_ROWS.items()
        }
        _warn_of_foreign_keys(content, file)
    values.update(
        _section({key: value for key, value in given.items() if key in TOP_ROWS}, TOP_ROWS)
    )
    if "dump_path" not in values:
        values["dump_path"] = validators.dump_path("dump_path", Settings.dump_path)
    task = values.get("task", Settings.task)
    values.update(sections.get(task, {}))
    own = {key: value for key, value in given.items() if key not in TOP_ROWS}
    _warn_of_idle_filters({**sections, task: {**sections.get(task, {}), **own}}, task, file)
    values.update(_section(own, TASK_ROWS.get(task, {}), f"{task}."))
    with errors_about(f"{file} with the given {', '.join(given)}" if file and given else file):
        return _combined(Settings(**values))


def _section(given: Any, rows: _Rows, prefix: str = "", task: Any = None) -> dict[str, Any]:
    """Return the checked values of one section, whose keys have these validators.

    The prefix is "tensor." under a task's name, or empty at the top. The ``task`` of the file is for examples in
    messages.
    """
    if not isinstance(given, (Mapping, type(None))):
        refuse(prefix[:-1], given, say("settings.with_keys", keys=", ".join(rows)))
    values = {}
    for key, value in (given or {}).items():
        if key in rows:
            if value is not None:  # msprobe's users write null for the default
                values[key] = rows[key](prefix + key, value)
        elif key not in _FOREIGN and (prefix or key not in TASKS):
            _refuse_key(key, rows, prefix, task)
    return values


def _unfolded(content: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Return a settings file with the keys of the object "golden" as settings of their own."""
    if not isinstance(golden := content.get("golden"), Mapping):
        return content
    given = _section(golden, {key: TOP_ROWS[name] for key, name in _GOLDEN.items()}, "golden.")
    if "path" not in given:
        refuse(
            "golden",
            golden,
            say("settings.golden"),
        )
    return {**content, **{_GOLDEN[key]: value for key, value in given.items()}}


def _warn_of_foreign_keys(content: Mapping[Any, Any], file: str) -> None:
    sections = {"": content, **{f"{task}.": content.get(task) or {} for task in TASKS}}
    found = [
        (prefix, key)
        for prefix, section in sections.items()
        for key in section
        if key in _FOREIGN and key not in TASK_ROWS.get(prefix[:-1], ())
    ]
    names = [
        prefix + key for prefix, key in found if sections[prefix][key] not in (None, False, [], {})
    ]
    if names:
        _log.warning(
            "%s: these keys of msprobe have no effect in probe: %s",
            printable(file),
            ", ".join(sorted(names)),
        )


def _warn_of_idle_filters(sections: Mapping[str, Mapping[str, Any]], task: str, file: str) -> None:
    """Tell of names to record that stand under another task, while the task's own section has none."""
    found = {name: sections[name].get("list") or sections[name].get("scope") for name in sections}
    others = [name for name, names in found.items() if names and name != task]
    if others and not found.get(task):
        told = '%s: the task is "%s": list and scope under "%s" have no effect'
        _log.warning(told, printable(file), task, '", "'.join(others))


def _refuse_key(key: Any, rows: _Rows, prefix: str, task: Any) -> None:
    """Raise for a key that is unknown, or in the wrong place."""
    here = rows if prefix else {**rows, **TASK_ROWS}
    every = {**TOP_ROWS, **TASK_ROWS, **TASK_ROWS["nan_check"]}
    places = {name: _place(name, task) for name in every if name not in here}
    if key in places:
        raise SettingsError(
            say("settings.place", path=f"{prefix}{key}", key=repr(key), place=places[key])
        )
    guess = nearest(key, [*here, *places])
    hint = NOTHING
    if guess:
        place = places.get(guess, say("settings.here"))
        hint = say("settings.hint", word=repr(guess), place=place)
    path = repr(printable(f"{prefix}{key}"))
    raise SettingsError(say("settings.key", path=path, allowed=", ".join(here), hint=hint))


def _place(key: str, task: Any) -> Sentence:
    """Return where a setting belongs, for messages; the example has the task of the file."""
    tasks = [task for task, rows in TASK_ROWS.items() if key in rows]
    if not tasks:
        return say("settings.top")
    chosen = task if task in tasks else tasks[0]
    if len(tasks) > 1:
        return say("settings.under_task", task=chosen, key=key)
    return say("settings.under", task=chosen, key=key)


def _combined(settings: Settings) -> Settings:
    if settings.task == "structure" and settings.level == "L1":
        _log.warning('task "structure" needs the Cells: level "L1" becomes "mix"')
        settings = replace(settings, level="mix")
    _check_scope(settings)
    mode = settings.summary_mode
    key = f"{settings.task}.summary_mode"
    modes = {mode} if isinstance(mode, str) else set(mode)
    if settings.level == "L2" and not modes.isdisjoint((*RANGES, *own_statistics())):
        refuse(key, mode, say("settings.no_ranges"))
    if settings.level != "L2" and not modes.isdisjoint(HASHES):
        refuse(key, mode, say("settings.hash"))
    if settings.task == "nan_check" and len(settings.data_mode) != len(DATA_MODES) - 1:
        refuse(
            "nan_check.data_mode",
            sorted(settings.data_mode),
            say("settings.all_of_nan_check"),
        )
    if settings.async_dump and settings.checksums:
        refuse("async_dump", True, say("settings.no_async"))
    if settings.task == "monitor" and settings.level not in ("L0", "L1"):
        refuse("level", settings.level, say("settings.levels_of_monitor"))
    if settings.level in ("debug", "L2") and settings.task in TASKS[2:]:
        refuse("task", settings.task, say("settings.tasks_of_level", level=settings.level))
    if settings.bench_path and settings.level not in ("debug", "L2"):
        settings = replace(settings, golden=settings.golden or settings.bench_path)
    if settings.golden and (settings.task not in TASKS[:2] or settings.level in ("debug", "L2")):
        refuse(
            "golden",
            settings.golden,
            say("settings.golden_with"),
        )
    if settings.level != "L2" and settings.task in KERNEL_TASKS:
        refuse("level", settings.level, say("settings.level_of_task", task=settings.task))
    return settings


def _check_scope(settings: Settings) -> None:
    key = f"{settings.task}.scope"
    level = settings.level
    scope = () if level in ("debug", "L2") else settings.scope
    if len(scope) not in (0, 2):
        refuse(key, scope, say("settings.two_names"))
    for name in scope:
        if not is_full_name(name, level):
            refuse(key, name, say("settings.full_names", level=level))


class EditedFile:
    """Notices edits of a file, the first one at once unless it was read already. A path of None has none."""

    def __init__(self, path: str | None, is_read: bool) -> None:
        self.path = path
        self._seen = self._stamp() if is_read else None

    def is_edited(self) -> bool:
        """Return whether the file was edited since the last call."""
        stamp = self._stamp()
        seen = self._seen
        self._seen = stamp or seen
        return stamp not in (None, seen)

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            found = None if self.path is None else os.stat(self.path)
        except OSError:
            return None
        return None if found is None else (found.st_mtime_ns, found.st_size, found.st_ino)


class ConfigFile(EditedFile):
    """A settings file with the arguments that win over it, see ``load``; notices edits.

    A relative path belongs to the folder that is current now. Raise SettingsError when ``config_path`` is no path.
    """

    def __init__(self, config_path: PathLike | None, **arguments: Any) -> None:
        super().__init__(
            None if config_path is None else validators.path("config_path", config_path),
            is_read=True,
        )
        self._arguments = arguments
        self.header: dict[str, Any] = {}  # what the headers of the dump say besides

    def load(self) -> Settings:
        """Return the settings; see ``load``."""
        return load(self.path, **self._arguments)

    def changed(self) -> Settings | None:
        """Return the settings if the file was edited since the last call, else None.

        Raise SettingsError when the edited file is wrong; once per edit.
        """
        return self.load() if self.is_edited() else None

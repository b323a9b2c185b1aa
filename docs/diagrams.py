# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Makes the drawings in docs/pictures/, in English and Chinese, with the standard library alone.

    python docs/diagrams.py [--out FOLDER]

A test fails when a kept drawing differs from that of this program.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

MONO = "font-family='DejaVu Sans Mono,Consolas,Noto Sans Mono CJK SC,monospace' font-size='13'"
SANS = "font-family='DejaVu Sans,Arial,Noto Sans CJK SC,Microsoft YaHei,sans-serif' font-size='13'"
INK, PALE, BLUE, GREEN, ORANGE = "#1f2933", "#8a94a0", "#1769aa", "#2e7d32", "#c2570c"
WORDS = {
    "en": {
        "files": "The files of a dump: one entry, its stack, its Cell and its array",
        "same name": "the same name in all three files",
        "array": "data_name is the name of the array file",
        "entry": "one call: inputs and outputs",
        "stack": "lines of your code, innermost first",
        "cell": "the Cell around the call",
        "timeline": "start, stop and step on the time line",
        "recorded": "recorded",
        "unrecorded": "not recorded",
        "nothing": "nothing is installed",
        "forward": "forward",
        "backward": "backward",
        "optimizer": "optimizer",
        "install": "install hooks",
        "remove": "remove hooks, write documents",
        "end": "end of the step: number + 1, calls count from 0 again",
        "step0": "step 0 is in the setting step",
        "step1": "step 1 is not",
        "time": "time",
        "graph": "One call in the graph: its nodes, and the edges where its gradients are read",
        "call": "nodes of gate(x, w)",
        "user": "a user of the result",
        "arrival": "input: the gradient of the result",
        "to w": "output.1: contribution to w",
        "to x": "output.0: contribution to x, the sum of both edges",
        "parameter": "parameter",
        "legend": "The number is the order in which nodes were made. The backward runs from the greatest number down.",
    },
    "zh": {
        "files": "落盘文件：一个条目，它的调用栈、Cell 和数组",
        "same name": "三个文件中名称相同",
        "array": "data_name 就是数组的文件名",
        "entry": "一次调用：输入和输出",
        "stack": "你的代码行，最内层在前",
        "cell": "调用外层的 Cell",
        "timeline": "时间线：start、stop 和 step",
        "recorded": "采集",
        "unrecorded": "不采集",
        "nothing": "不安装任何 hook",
        "forward": "前向",
        "backward": "反向",
        "optimizer": "优化器",
        "install": "安装 hook",
        "remove": "移除 hook，写文档",
        "end": "结束当前 step：编号加一，调用重新从 0 计数",
        "step0": "step 0 在配置项 step 中",
        "step1": "step 1 不在",
        "time": "时间",
        "graph": "图中的一次调用：它的节点，以及读取梯度的边",
        "call": "gate(x, w) 的节点",
        "user": "结果的使用者",
        "arrival": "input：结果的梯度",
        "to w": "output.1：对 w 的贡献",
        "to x": "output.0：对 x 的贡献，两条边之和",
        "parameter": "参数",
        "legend": "数字是节点产生的先后顺序。反向从最大的数字开始执行。",
    },
}


class Drawing:
    """An SVG picture that grows by shapes.

    Args:
        width: its width in pixels.
        height: its height in pixels.
        title: its description for people who cannot see it.
    """

    def __init__(self, width: int, height: int, title: str) -> None:
        self._parts = [
            f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}' "
            f"height='{height}' role='img' aria-label={quoteattr(title)}>",
            f"<title>{escape(title)}</title>",
            "<defs>",
            *(
                f"<marker id='{colour[1:]}' viewBox='0 0 8 8' refX='7' refY='4' markerWidth='8' markerHeight='8' "
                f"orient='auto'><path d='M0 0L8 4L0 8z' fill='{colour}'/></marker>"
                for colour in (INK, BLUE, GREEN, ORANGE)
            ),
            "</defs>",
            f"<rect width='{width}' height='{height}' fill='#ffffff'/>",
        ]

    def box(self, x, y, width, height, colour=PALE, fill="#ffffff", dash="") -> None:
        """Add a rectangle."""
        dashed = f" stroke-dasharray='{dash}'" if dash else ""
        self._parts.append(
            f"<rect x='{x}' y='{y}' width='{width}' height='{height}' rx='6' fill='{fill}' stroke='{colour}'{dashed}/>"
        )

    def text(self, x, y, text, colour=INK, font=SANS, anchor="start", bold=False) -> None:
        """Add a line of text; parts between @ are blue and bold, parts between ^ orange and bold."""
        weight = " font-weight='bold'" if bold else ""
        spans = re.sub(
            r"@(.*?)@", rf"<tspan fill='{BLUE}' font-weight='bold'>\1</tspan>", escape(text)
        )
        spans = re.sub(
            r"\^(.*?)\^", rf"<tspan fill='{ORANGE}' font-weight='bold'>\1</tspan>", spans
        )
        self._parts.append(
            f"<text x='{x}' y='{y}' fill='{colour}' text-anchor='{anchor}' xml:space='preserve' {font}{weight}>"
            f"{spans}</text>"
        )

    def lines(self, x, y, lines) -> None:
        """Add lines of code."""
        for number, line in enumerate(lines):
            self.text(x, y + 20 * number, line, font=MONO)

    def arrow(self, path, colour=INK, dash="") -> None:
        """Add an arrow along a path."""
        dashed = f" stroke-dasharray='{dash}'" if dash else ""
        self._parts.append(
            f"<path d='{path}' fill='none' stroke='{colour}' stroke-width='1.6' "
            f"marker-end='url(#{colour[1:]})'{dashed}/>"
        )

    def __str__(self) -> str:
        return "\n".join([*self._parts, "</svg>", ""])


def files(words: dict[str, str]) -> Drawing:
    """Draw the folder tree with one entry, its stack, its Cell and its array."""
    name, it = "Functional.relu.0.forward", Drawing(1000, 452, words["files"])
    it.box(12, 12, 266, 428, fill="#f7f9fb")
    tree = [
        "dump_path/",
        "  step0/",
        "    rank0/",
        "      dump.json",
        "",
        "",
        "",
        "",
        "",
        "      stack.json",
    ]
    it.lines(
        24, 40, [*tree, "", "", "", "", "", "      construct.json", "", "      dump_tensor_data/"]
    )
    it.lines(24, 400, ["        ^….output.0.npy^"])
    for y, title, height in ((78, "entry", 124), (210, "stack", 84), (328, "cell", 64)):
        it.box(330, y, 626, height)
        it.text(944, y + 18, words[title], PALE, anchor="end")
    it.lines(
        342,
        98,
        [
            f'"@{name}@": {{',
            '  "input_args": [{"type": "mindspore.Tensor", "shape": [32, 32], …}],',
        ],
    )
    it.lines(342, 138, ['  "output": [{"Max": 1.76, "Min": 0.0, "Mean": 0.21, "Norm": 13.4,'])
    it.lines(
        342, 158, ['              "data_name": "^Functional.relu.0.forward.output.0.npy^"}]', "}"]
    )
    it.lines(
        342,
        234,
        [f'"0": [["@{name}@"],', '      ["File /home/me/train.py, line 23, in construct, \\n'],
    )
    it.lines(342, 274, ['           return self.out(ops.relu(self.hidden(x)))", …]]'])
    it.lines(342, 352, [f'"@{name}@":', '    "Cell.block.Block.forward.0"'])
    for a, b in ((96, 100), (216, 230), (336, 350)):
        it.arrow(f"M 190 {a} C 260 {a} 270 {b} 328 {b}")
    it.arrow("M 352 106 C 310 130 310 200 338 224", BLUE, "5 3")
    it.arrow("M 348 246 C 306 270 306 320 338 342", BLUE, "5 3")
    around = "M 888 154 L 968 154 Q 980 154 980 166 L 980 404 Q 980 416 968 416 L 290 416 Q 260 416 236 402"
    it.arrow(around, ORANGE, "5 3")
    it.text(330, 56, words["same name"], BLUE)
    it.text(420, 436, words["array"], ORANGE)
    return it


def timeline(words: dict[str, str]) -> Drawing:
    """Draw two steps with start, stop and step."""
    it = Drawing(1000, 250, words["timeline"])
    for x, width, key in ((20, 560, "step0"), (592, 330, "step1")):
        it.box(x, 14, width, 28, fill="#eef3f8")
        it.text(x + width / 2, 33, words[key], anchor="middle")
    blocks = ((60, 150, "forward", 1), (214, 150, "backward", 1), (404, 130, "optimizer", 0))
    more = ((612, 90, "forward", 0), (706, 90, "backward", 0), (800, 90, "optimizer", 0))
    for x, width, key, is_recorded in (*blocks, *more):
        it.box(
            x,
            92,
            width,
            44,
            GREEN if is_recorded else PALE,
            "#e6f4e7" if is_recorded else "#ffffff",
        )
        it.text(x + width / 2, 119, words[key], anchor="middle")
    it.text(212, 84, words["recorded"], GREEN, anchor="middle", bold=True)
    it.text(469, 84, words["unrecorded"], PALE, anchor="middle")
    it.text(751, 84, words["nothing"], PALE, anchor="middle")
    it.arrow("M 20 150 L 980 150")
    it.text(978, 172, words["time"], PALE, anchor="end")
    for x, call, key, y in ((52, "start(model)", "install", 206), (372, "stop()", "remove", 206)):
        it.arrow(f"M {x} {y - 18} L {x} 64", GREEN)
        it.text(x - 8, y, call, GREEN, MONO, bold=True)
        it.text(x - 8, y + 18, words[key])
    it.arrow("M 586 170 L 586 64", ORANGE)
    it.text(578, 188, "step()", ORANGE, MONO, bold=True)
    it.text(578, 206, words["end"])
    return it


def graph(words: dict[str, str]) -> Drawing:
    """Draw one call with three nodes, its user and its inputs, and the edges where gradients are read."""
    it = Drawing(820, 440, words["graph"])
    it.box(160, 96, 290, 206, BLUE, "#eef5fb", "6 4")
    it.text(172, 116, words["call"], BLUE)
    nodes = {
        "Sum 9": (300, 20),
        "Mul 8": (300, 128),
        "Tanh 7": (236, 190),
        "Mul 6": (236, 252),
        "Exp 5": (330, 352),
    }
    for name, (x, y) in nodes.items():
        it.box(x, y, 90, 36, INK, "#ffffff")
        it.text(x + 45, y + 23, name, font=MONO, anchor="middle", bold=True)
    it.box(140, 352, 90, 36, PALE)
    it.text(185, 375, "w", font=MONO, anchor="middle", bold=True)
    it.text(185, 404, words["parameter"], PALE, anchor="middle")
    it.text(400, 43, words["user"], PALE)
    it.text(430, 375, "x = ops.exp(t)", PALE, MONO)
    it.arrow("M 345 56 L 345 126", GREEN)
    it.text(356, 82, words["arrival"], GREEN)
    it.arrow("M 330 164 L 290 188")
    it.arrow("M 281 226 L 281 250")
    it.arrow("M 260 288 L 196 350", ORANGE)
    it.arrow("M 300 288 L 352 350", ORANGE)
    it.arrow("M 372 164 C 420 220 410 290 384 350", ORANGE)
    it.text(212, 326, words["to w"], ORANGE, anchor="end")
    it.text(424, 326, words["to x"], ORANGE)
    it.lines(
        510, 150, ["def gate(x, w):", "    a = ops.mul(x, w)   # 6", "    b = ops.tanh(a)     # 7"]
    )
    it.lines(510, 210, ["    return ops.mul(b, x)  # 8"])
    it.text(20, 430, words["legend"], PALE)
    return it


def main() -> None:
    """Write every drawing in both languages."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent / "pictures")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    for language, words in WORDS.items():
        for draw in (files, timeline, graph):
            (out / f"{draw.__name__}.{language}.svg").write_text(str(draw(words)), "utf-8")


if __name__ == "__main__":
    main()

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Changes of one place in a source file: each is a text for a range of columns of lines that run."""

from __future__ import annotations

import ast
from typing import NamedTuple


class Edit(NamedTuple):
    """One change of a source file.

    Attributes:
        kind: the class of the change.
        line: the first line of the statement that is changed.
        end: its last line.
        start: the offset of the text that is replaced.
        stop: its end.
        text: the new text.
        owner: the class whose method has the line, or "".
        method: the function that has the line.
        attribute: the attribute of the Cell that the statement sets or calls.
        harmless: whether the change is none for the numbers.
    """

    kind: str
    line: int
    end: int
    start: int
    stop: int
    text: str
    owner: str
    method: str
    attribute: str = ""
    harmless: bool = False

    def apply(self, source):
        """Return the source with this change."""
        return source[: self.start] + self.text + source[self.stop :]


_ACTIVATIONS = {
    "relu": "gelu",
    "gelu": "relu",
    "tanh": "sigmoid",
    "sigmoid": "tanh",
    "leaky_relu": "elu",
}
_TURNS = {"mean": "sum", "softmax": "log_softmax", "triu": "tril"}


class Finder(ast.NodeVisitor):
    """Finds the changes that the lines of a source allow.

    Args:
        source: the source.
        ran: the lines that ran.
    """

    def __init__(self, source, ran):
        self.source, self.ran = source, ran
        self.starts = [0]
        for line in source.split("\n"):
            self.starts.append(self.starts[-1] + len(line.encode()) + 1)
        self.edits, self._class, self._method, self._statement = [], "", "", None
        self.visit(ast.parse(source))

    def _offset(self, line, column):
        data = self.source.encode()[: self.starts[line - 1] + column]
        return len(data.decode())

    def span(self, node):
        return self._offset(node.lineno, node.col_offset), self._offset(
            node.end_lineno, node.end_col_offset
        )

    def text(self, node):
        start, stop = self.span(node)
        return self.source[start:stop]

    def add(self, kind, node, text, harmless=False, stop=None):
        start, end = self.span(node)
        statement = self._statement
        last = (stop or statement).end_lineno
        end = self.span(stop)[1] if stop is not None else end
        if self.source[start:end] != text:
            self.edits.append(
                Edit(
                    kind,
                    statement.lineno,
                    last,
                    start,
                    end,
                    text,
                    self._class,
                    self._method,
                    self._attribute(statement),
                    harmless,
                )
            )

    def _attribute(self, statement):
        for node in ast.walk(statement):
            is_own = (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id == "self"
            )
            if is_own and (self._method != "__init__" or isinstance(node.ctx, ast.Store)):
                return node.attr
        return ""

    # -- walk -------------------------------------------------------------------------------------------------------

    def visit_ClassDef(self, node):
        before, self._class = self._class, node.name
        self.generic_visit(node)
        self._class = before

    def visit_FunctionDef(self, node):
        before, self._method = self._method, node.name
        self._block(node.body)
        self._method = before

    def _block(self, body):
        for place, statement in enumerate(body):
            if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
                self.visit(statement)
                continue
            inner = [
                getattr(statement, name)
                for name in ("body", "orelse")
                if isinstance(getattr(statement, name, None), list)
            ]
            if inner:
                for block in inner:
                    self._block(block)
                continue
            if statement.lineno in self.ran:
                self._statement = statement
                self._visit_statement(statement, body[place + 1] if place + 1 < len(body) else None)

    def _visit_statement(self, statement, following):
        in_init = self._method == "__init__" or self._method.startswith(("make_", "_make"))
        for node in ast.walk(statement):
            if isinstance(node, ast.Call):
                self._call(node, in_init)
            elif isinstance(node, ast.BinOp) and not in_init:
                self._binary(node)
            elif isinstance(node, ast.Subscript) and not in_init:
                self._subscript(node)
        if not in_init:
            self._assignment(statement, following)
            if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):
                left, right = self.text(statement.target), self.text(statement.value)
                self.add("residual left out", statement, f"{left} = {left}")
                self.add(
                    "stop_gradient", statement, f"{left} = {left} + ops.stop_gradient({right})"
                )
                self.add("minus for plus", statement, f"{left} = {left} - {right}")
                self.add(
                    "operands exchanged", statement, f"{left} = {right} + {left}", harmless=True
                )

    def _call(self, node, in_init):
        name = (
            node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        )
        for keyword in node.keywords:
            value = keyword.value
            if isinstance(value, ast.Constant) and keyword.arg:
                self._keyword(keyword.arg, value)
        if in_init:
            return
        if name in _ACTIVATIONS and isinstance(node.func, ast.Attribute) and not node.keywords:
            start = node.func
            owner = self.text(start.value)
            if owner in ("ops", "F"):
                rest = self.text(node)[len(self.text(start)) :]
                arguments = "(" + self.text(node.args[0]) + ")" if name == "leaky_relu" else rest
                self.add("activation", node, f"{owner}.{_ACTIVATIONS[name]}{arguments}")
        if name in _TURNS and isinstance(node.func, ast.Attribute):
            self.add("other call", node.func, f"{self.text(node.func.value)}.{_TURNS[name]}")
        if name in ("transpose", "permute"):
            self._transpose(node)
        if name in ("softmax", "mean", "concat", "sum"):
            self._axis(node)
        if (
            name == "concat"
            and node.args
            and isinstance(node.args[0], ast.Tuple)
            and len(node.args[0].elts) == 2
        ):
            a, b = map(self.text, node.args[0].elts)
            self.add("order of a list", node.args[0], f"({b}, {a})")
        if (
            isinstance(node.func, ast.Attribute)
            and self.text(node.func.value) == "self"
            and len(node.args) == 1
        ):
            self.add("stop_gradient", node, f"ops.stop_gradient({self.text(node)})")
            self.add("call left out", node, self.text(node.args[0]))
            self.add("cast", node, f"ops.cast(ops.cast({self.text(node)}, ms.float16), ms.float32)")
            self.add("factor", node, f"(1.1 * {self.text(node)})")
            self.add("identity", node, f"(1.0 * {self.text(node)})", harmless=True)
            self.add(
                "cast to its dtype", node, f"ops.cast({self.text(node)}, ms.float32)", harmless=True
            )
            self.add(
                "unused call",
                node,
                f"({self.text(node)}, ops.ones((2, 3), ms.float32))[0]",
                harmless=True,
            )

    def _keyword(self, name, value):
        number = value.value
        if name in ("eps", "epsilon"):
            self.add("epsilon", value, "1e-2" if self._method == "__init__" else "1e-3")
        elif isinstance(number, bool):
            return
        elif name == "axis":
            self.add("axis", value, "0" if number else "1")
        elif name == "approximate":
            self.add("keyword text", value, '"tanh"' if number == "none" else '"none"')
        elif isinstance(number, float) and name not in ("dropout", "drop", "p"):
            kind = "optimizer" if self._method == "make_optimizer" else f"keyword {name}"
            self.add(kind, value, repr(number * 1.5) if number else "0.05")

    def _transpose(self, node):
        places = (
            node.args
            if len(node.args) > 1
            and all(isinstance(a, (ast.Constant, ast.UnaryOp)) for a in node.args)
            else None
        )
        if places is None:
            places = next((a.elts for a in node.args if isinstance(a, ast.Tuple)), None)
        if places and len(places) > 2:
            for i in (1, len(places) - 2):
                a, b = places[i], places[i + 1] if i + 1 < len(places) else places[i - 1]
                first, second = (a, b) if a.col_offset < b.col_offset else (b, a)
                start, stop = self.span(first)[0], self.span(second)[1]
                middle = self.source[self.span(first)[1] : self.span(second)[0]]
                self._raw("transpose", start, stop, self.text(second) + middle + self.text(first))

    def _raw(self, kind, start, stop, text):
        statement = self._statement
        self.edits.append(
            Edit(
                kind,
                statement.lineno,
                statement.end_lineno,
                start,
                stop,
                text,
                self._class,
                self._method,
                self._attribute(statement),
            )
        )

    def _axis(self, node):
        if len(node.args) > 1 and isinstance(node.args[-1], (ast.Constant, ast.UnaryOp)):
            self.add("axis", node.args[-1], "1" if self.text(node.args[-1]) != "1" else "0")

    def _binary(self, node):
        left, right = self.text(node.left), self.text(node.right)
        if (
            isinstance(node.op, ast.Add)
            and isinstance(node.left, (ast.Name, ast.Call))
            and isinstance(node.right, (ast.Name, ast.Call))
        ):
            self.add("residual left out", node, left)
            self.add("residual left out", node, right)
            self.add("minus for plus", node, f"{left} - {right}")
            self.add("operands exchanged", node, f"{right} + {left}", harmless=True)
            self.add("other spelling", node, f"ops.add({left}, {right})", harmless=True)
            self.add("factor", node, f"{left} + 0.9 * {right}")
            self.add("stop_gradient", node, f"{left} + ops.stop_gradient({right})")
        if isinstance(node.op, ast.Mult):
            for side in (node.left, node.right):
                if (isinstance(side, ast.Constant) and isinstance(side.value, float)) or (
                    isinstance(side, ast.Attribute) and "scale" in side.attr
                ):
                    self.add("scale", side, f"({self.text(side)} * 1.25)")
                elif isinstance(side, ast.UnaryOp):
                    self.add("mask", side, "-1.0")
        if isinstance(node.op, ast.Sub):
            self.add("plus for minus", node, f"{left} + {right}")

    def _subscript(self, node):
        if not isinstance(node.ctx, ast.Load):
            return
        text = self.text(node.slice)
        if text == "-1":
            self.add("element", node.slice, "0")
        elif text == "0" and "shape" not in self.text(node.value):
            self.add("element", node.slice, "-1")
        elif text in (":, -1", ":, 0"):
            self.add(
                "element",
                node,
                f"{self.text(node.value)}[{':, 0' if text.endswith('-1') else ':, -1'}]",
            )

    def _assignment(self, statement, following):
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return
        target = statement.targets[0]
        if (
            isinstance(target, ast.Tuple)
            and len(target.elts) >= 2
            and isinstance(statement.value, ast.Call)
        ):
            names = list(map(self.text, target.elts))
            self.add("names exchanged", target, ", ".join([names[1], names[0], *names[2:]]))
        if (
            isinstance(following, ast.Assign)
            and following.lineno in self.ran
            and isinstance(target, ast.Name)
        ):
            other = following.targets[0]
            if not isinstance(other, ast.Name):
                return
            used = {node.id for node in ast.walk(following.value) if isinstance(node, ast.Name)}
            mine = {node.id for node in ast.walk(statement.value) if isinstance(node, ast.Name)}
            if target.id not in used and other.id not in mine and target.id != other.id:
                between = self.source[self.span(statement)[1] : self.span(following)[0]]
                text = self.text(following) + between + self.text(statement)
                self.add("lines exchanged", statement, text, harmless=True, stop=following)
                if "self." in self.text(statement.value) and isinstance(statement.value, ast.Call):
                    first = f"{target.id} = {self.text(following.value)}"
                    text = f"{first}{between}{other.id} = {self.text(statement.value)}"
                    self.add("values exchanged", statement, text, stop=following)


def find(source, ran):
    """Return all changes of a source, in order."""
    return Finder(source, ran).edits

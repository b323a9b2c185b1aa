# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Writes a stand-alone program that makes one call again: for a bug report. It needs MindSpore and numpy alone."""

from __future__ import annotations

import json
import os
import pprint
from pathlib import Path

import numpy as np

from probe.errors import UsageError
from probe.findings.sentence import table
from probe.reading.dumps.dump import Call
from probe.reading.dumps.tables import create
from probe.replaying.calling import tensors_of
from probe.replaying.described import CallDescription, CannotReplayError
from probe.replaying.describing import describe
from probe.replaying.functions import OPERATORS, find
from probe.replaying.worker import load

#: the modules whose text a script holds, in this order
_MODULES = ("judging", "described", "calling", "references", "making", "evaluating")
_LICENSE = "# Copyright 2026 the probe developers\n# SPDX-License-Identifier: Apache-2.0\n"

_HEAD = '''{license}"""One recorded call, made again: {name}.

It needs MindSpore and numpy, and the arrays in {folder}. It prints the greatest errors of the recorded values and of
this machine, and a verdict. `probe replay --script` wrote it.
"""

from __future__ import annotations

import json
import os
import sys

import mindspore
import mindspore.mint.nn.functional
import mindspore.numpy
import mindspore.ops.auto_generate
import numpy as np

#: the function that was called
FUNCTION = {code}
#: its arguments and recorded results
CALL = json.loads({call})
ARRAYS = os.path.join(os.path.dirname(os.path.abspath(__file__)), {folder_text})
#: kind of operations -> their names
OPERATORS = json.loads({operators})
#: the forms of remarks and reasons
FORMS = {forms}
NOTHING = ""


def say(key, /, **facts):
    """Return a remark or a reason."""
    return FORMS[key].format(**facts)


def clauses(*parts):
    """Return remarks as one text."""
    return "; ".join(filter(None, parts))
'''

_TAIL = '''

def load(leaf):
    """Return the values of a tensor."""
    return np.load(os.path.join(ARRAYS, leaf["array"])) if leaf["array"] else np.array(leaf["value"])


def main():
    """Make the call again, and print what differs."""
    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    mindspore.runtime.launch_blocking()
    call = CallDescription(**CALL)
    evaluation = Evaluation(Maker(FUNCTION, reference_of(call), call, load, {dtype}))
    try:
        result = evaluation.judge()
    except CannotReplayError as error:
        print(f"not replayable: {{error}}")
        return 2
    for place, recorded, golden, here in evaluation.arrays:
        print(place, "recorded", recorded, "golden", golden, "here", here, "difference", recorded - golden, sep="\\n")
    for item in result.outputs:
        print(f"{{item.place}}: recorded {{item.off:.1e}} off, here {{item.here:.1e}}: {{item.verdict}}",
              f"({{item.note}})" if item.note else "")
    print(f"golden: {{result.golden}}")
    print(f"verdict: {{result.verdict}}")
    return int(result.verdict != "ok")


if __name__ == "__main__":
    sys.exit(main())
'''


def write_script(call: Call, path: str, dtype: str = "") -> list[str]:
    """Write the program of one call, and its arrays beside it; return the paths.

    The dtype "" stands for the recorded ones. Raise UsageError when the call cannot be made again, or a file cannot be
    written.
    """
    try:
        description = describe(call)
        found = find(description)
        description = description._replace(args=description.args[: found.inputs])
        folder = f"{Path(path).stem}_arrays"
        place = os.path.join(os.path.dirname(os.path.abspath(path)), folder)
        os.makedirs(place, 0o750, exist_ok=True)
        _save_arrays(description, place)
        with create(path) as file:
            file.write(_text(call.name, found.code, description, folder, dtype))
    except CannotReplayError as error:
        raise UsageError(f"{call.name} cannot be replayed: {error}") from error
    except OSError as error:
        raise UsageError(f"the script cannot be written: {error}") from error
    return [path, place]


def _save_arrays(description: CallDescription, place: str) -> None:
    """Save the arrays of a call, and put their names into its description."""
    leaves = tensors_of(description)
    leaves += [leaf for leaf in (*(description.sens or ()), *description.expected) if leaf and leaf["array"]]
    for number, leaf in enumerate(leaves):
        array = load(leaf)
        leaf["array"] = f"{number}.npy"
        np.save(os.path.join(place, leaf["array"]), array, allow_pickle=False)


def _text(name: str, code: str, description: CallDescription, folder: str, dtype: str) -> str:
    """Return the program. Names and values of the dump stand in literals of Python alone."""
    shown = "".join(letter if letter.isalnum() or letter in "._:-" else "_" for letter in name if letter.isascii())
    here = Path(__file__).parent
    body = "".join(_without_head((here / f"{module}.py").read_text("utf-8")) for module in _MODULES)
    forms = {key: english for key, (english, _) in table().items() if f'"{key}"' in body}
    head = _HEAD.format(
        license=_LICENSE, name=shown, folder=ascii(folder)[1:-1].replace('"', "_"), code=code,
        call=ascii(json.dumps(description._asdict())), folder_text=ascii(folder),
        forms=pprint.pformat(forms, width=118),
        operators=ascii(json.dumps({kind: sorted(names) for kind, names in OPERATORS.items() if f'"{kind}"' in body})),
    )  # fmt: skip
    return head + body + _TAIL.format(dtype=ascii(dtype))


def _without_head(text: str) -> str:
    """Return the text of a module without its license, its docstring and the imports of its neighbours."""
    text = text.removeprefix(_LICENSE)
    body = text.partition('"""')[2].partition('"""')[2].replace("from __future__ import annotations\n", "")
    lines = body.splitlines()
    return "\n".join(line for line in lines if not line.startswith("from probe.")).strip("\n").join(("\n\n", "\n"))

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Builds the wheel, installs it in an empty environment elsewhere and records the README's four lines there.

Then ``probe doctor`` proves there that it works. With the argument ``faults`` faults are planted in the installed
package too, on CPU and on the simulated Ascend of tests/ascend: each must be reported by its check alone.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from tests.support.paths import ROOT

PROGRAM = """
import mindspore as ms, numpy as np
from mindspore import nn
ms.set_context(mode=ms.PYNATIVE_MODE); ms.set_device("CPU")
model = nn.SequentialCell(nn.Dense(4, 3), nn.ReLU())
train = ms.value_and_grad(lambda x: model(x).sum(), None, model.trainable_params())
data = [ms.Tensor(np.ones((2, 4), np.float32))] * 2

from probe import PrecisionDebugger
import probe; print(probe.__file__)
debugger = PrecisionDebugger(config_path="config.json")
for x in data:
    debugger.start(model); train(x); debugger.stop(); debugger.step()
"""


def run(*command: object, cwd: Path) -> str:
    """Run a command and return what it printed."""
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{command[0]} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def plant_faults(python: Path, work: Path) -> None:
    """Run the tests of tests/doctor/test_faults.py, all of them, on the installed package."""
    place = work / "without the source"
    shutil.copytree(
        ROOT / "tests", place / "tests", ignore=shutil.ignore_patterns("built", "__pycache__")
    )
    shutil.copy(ROOT / "pyproject.toml", place)
    run(python, "-m", "pip", "install", "-q", "pytest", cwd=place)
    where = run(python, "-c", "import probe; print(probe.__file__)", cwd=place)
    assert str(work / "env") in where, where
    for device in ("CPU", "Ascend"):
        options = ["-v", "-p", "no:cacheprovider", "--device", device]
        print(
            f"faults on {device}:",
            run(python, "-m", "pytest", *options, "tests/doctor/test_faults.py", cwd=place),
        )


def main() -> None:
    """Fail unless the installed wheel records."""
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        run(sys.executable, "-m", "build", "--wheel", "--outdir", work / "dist", ROOT, cwd=work)
        (wheel,) = (work / "dist").glob("*.whl")
        inside = zipfile.ZipFile(wheel).namelist()
        assert {"probe/support_ops.yaml", "probe/py.typed"} <= set(inside), inside
        assert not [file for file in inside if file.startswith("tests")], inside
        pages = {
            str(path.relative_to(ROOT))
            for path in (ROOT / "probe/reading/report").glob("*/*.*")
            if "__" not in str(path)
        }
        assert len(pages) > 15 and pages <= set(inside), pages - set(inside)
        run(sys.executable, "-m", "venv", work / "env", cwd=work)
        python = work / "env/bin/python"
        run(python, "-m", "pip", "install", "-q", wheel, "mindspore==2.10.0", cwd=work)
        (work / "config.json").write_text(
            json.dumps({"task": "statistics", "dump_path": "dump", "level": "mix"})
        )
        where = run(python, "-c", PROGRAM, cwd=work)
        assert str(work / "env") in where, where
        for step in (0, 1):
            data = json.loads((work / f"dump/step{step}/rank/dump.json").read_text())["data"]
            for kind in (
                "Cell.0.Dense.forward.0",
                "Cell.0.Dense.parameters_grad.0",
                "Tensor.sum.0.backward",
            ):
                assert kind in data, data.keys()
        checks = run(work / "env/bin/probe", "doctor", cwd=work).splitlines()
        assert len(checks) == 15 and not [
            line for line in checks if line.startswith(("failed", "not run"))
        ], checks
        print("\n".join(checks))
        print(
            f"{wheel.name}: installed in an empty environment, recorded {len(data)} entries a step"
        )
        if "faults" in sys.argv[1:]:
            plant_faults(python, work)


if __name__ == "__main__":
    main()

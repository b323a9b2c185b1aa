# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The snapshot of a run: run.json and run.jsonl in the folder of its first step."""

from __future__ import annotations

import argparse
import collections
import dataclasses
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import types
import zlib

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn, ops

import probe
from probe.__main__ import main
from probe.reading.report.report import Wishes, make_content
from probe.snapshot.secrets import CUT, to_json, without_secrets, words_without_secrets
from probe.snapshot.snapshot import Surroundings
from tests.support import processes
from tests.support.chinese import english_left
from tests.support.paths import environment

pytestmark = pytest.mark.medium

LEVELS = ("L0", "L1", "mix")


class Net(nn.Cell):
    def __init__(self, width=6):
        super().__init__()
        self.scale = Parameter(Tensor(np.ones(4, np.float32)), name="scale")
        self.hidden, self.out = nn.Dense(4, width), nn.Dense(width, 3)

    def construct(self, x, factor=1):
        return self.out(ops.relu(self.hidden(x * self.scale))) * factor


def train(
    debugger, steps=3, seed=1, data=7, width=6, rate=0.1, kind=nn.SGD, factor=1, level_model=None
):
    """Train a small net under a debugger; return its parameters, as texts of bytes."""
    ms.set_seed(seed)
    np.random.seed(seed)
    net = Net(width)
    optimizer = kind(net.trainable_params(), rate)
    forward = ms.value_and_grad(lambda x: net(x, factor=factor).sum(), None, net.trainable_params())
    rng = np.random.RandomState(data)
    for _ in range(steps):
        x = Tensor(rng.randn(2, 4).astype(np.float32))
        debugger.start(net)
        _, gradients = forward(x)
        optimizer(gradients)
        debugger.stop()
        debugger.step()
    return [parameter.asnumpy().tobytes() for parameter in net.get_parameters()]


def read(folder):
    """Return the snapshot below a folder: run.json, and the lines of run.jsonl."""
    [file] = folder.rglob("run.json")
    return json.loads(file.read_text()), [
        json.loads(line) for line in file.with_suffix(".jsonl").read_text().splitlines()
    ]


@pytest.mark.parametrize("level", LEVELS)
def test_a_run_has_one_snapshot_in_the_folder_of_its_first_step(debug, level):
    train(debug(level=level, step=[1, 2]), steps=4)
    assert [
        str(path.relative_to(debug.dump_path)) for path in debug.dump_path.rglob("run.json")
    ] == ["step1/rank/run.json"]
    run, lines = read(debug.dump_path)
    assert run["first_step"] == 1
    assert run["versions"]["mindspore"] == ms.__version__ == run["packages"]["mindspore"]
    assert run["cells"] == [["", "Net"], ["hidden", "Dense"], ["out", "Dense"]]
    assert run["cell_values"]["hidden"]["has_bias"] is True
    assert [line["step"] for line in lines if "inputs" in line] == [1, 2]
    assert [line["optimizer"] for line in lines if "optimizer" in line] == ["Cell.optimizer.SGD"]


def test_parameters_and_inputs_have_the_checksums_of_their_bytes(debug):
    ms.set_seed(1)
    expected = {parameter.name: parameter.asnumpy().copy() for parameter in Net().get_parameters()}
    train(debug(level="mix"), steps=1, factor=2)
    run, lines = read(debug.dump_path)
    assert list(run["parameters"]) == list(expected)
    for name, array in expected.items():
        described = run["parameters"][name]
        assert described["cell"] == name.rpartition(".")[0]
        assert described["values"]["crc"] == f"{zlib.crc32(array.tobytes()):08x}"
        assert described["values"]["sum"] == int(
            array.view(np.uint32).astype(np.uint64).sum() % 2**32
        )
        assert (described["values"]["shape"], described["trainable"]) == (list(array.shape), True)
    [inputs] = [line["inputs"] for line in lines if "inputs" in line]
    batch = np.random.RandomState(7).randn(2, 4).astype(np.float32)
    assert inputs["0"]["crc"] == f"{zlib.crc32(batch.tobytes()):08x}"
    assert inputs["factor"] == 2


def test_a_step_has_the_cells_that_are_not_in_training_mode_if_they_are_others_than_before(debug):
    net, debugger = Net(), debug(level="mix")
    for training in (True, False, False, True):
        net.set_train(training)
        net.hidden.set_train(False)
        debugger.start(net)
        net(Tensor(np.ones((2, 4), np.float32)))
        debugger.stop()
        debugger.step()
    _, lines = read(debug.dump_path)
    assert [line.get("evaluating") for line in lines if "inputs" in line] == [
        ["hidden"],
        ["", "hidden", "out"],
        None,
        ["hidden"],
    ]


def test_statistics_stand_for_checksums_where_tensors_are_measured_on_the_device(debug):
    train(debug(level="mix", measure="device"), steps=2)
    run, lines = read(debug.dump_path)
    weight = run["parameters"]["hidden.weight"]["values"]
    assert weight["Norm"] > 0
    assert "crc" not in weight
    assert [line["inputs"]["0"]["Max"] > 0 for line in lines if "inputs" in line] == [True, True]
    assert probe.check(debug.dump_path, debug.dump_path).ok


OPTIMIZERS = {
    "Adam": nn.Adam,
    "schedule": lambda parameters, rate: nn.Momentum(
        parameters, nn.ExponentialDecayLR(rate, 0.5, 2), 0.9
    ),
    "groups": lambda parameters, rate: nn.Adam(
        [{"params": parameters[:1], "lr": 0.5}, {"params": parameters[1:]}], rate, weight_decay=0.01
    ),
    "experimental": lambda parameters, rate: ms.experimental.optim.AdamW(parameters, lr=rate),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("mode", ["scalars", "off"])
def test_the_numbers_of_the_optimizer_are_noted_at_its_first_update(debug, name, mode):
    train(debug(level="mix", optimizer=mode), kind=OPTIMIZERS[name])
    _, lines = read(debug.dump_path)
    [numbers] = [line["numbers"] for line in lines if "optimizer" in line]
    groups = numbers.get("groups", [numbers])
    assert sorted(group["learning_rate"] for group in groups) == (
        [0.1, 0.5] if name == "groups" else [0.1]
    )
    assert sum(len(group["parameters"]) for group in groups) == 5


def test_without_the_setting_nothing_is_written_and_no_model_is_watched(debug):
    train(debug(level="L1", snapshot=False))
    assert not list(debug.dump_path.rglob("run.json*"))


def test_nan_check_writes_nothing_before_its_finding(debug):
    train(debug(task="nan_check"))
    assert not debug.dump_path.exists()


@pytest.mark.parametrize("level", LEVELS)
def test_the_same_training_twice_agrees_and_another_one_does_not(tmp_path, debug, level):
    bare = train(
        type("Nothing", (), dict.fromkeys(("start", "stop", "step"), staticmethod(lambda *_: None)))
    )
    for name, changed in {"a": {}, "b": {}, "c": {"rate": 0.2}}.items():
        assert (train(debug(level=level, dump_path=str(tmp_path / name)), **changed) == bare) is (
            not changed
        )
    assert probe.check(tmp_path / "a", tmp_path / "b").ok
    assert probe.check(tmp_path / "a", tmp_path / "c").lines() == [
        "optimizer SGD: learning_rate 0.1 / 0.2"
    ]


#: difference in a real training, words of the first line
REAL = [
    (
        {"seed": 2},
        "parameters: all 4 differ: another seed (1 / 2); first hidden.weight in Cell hidden (Dense)",
    ),
    (
        {"data": 8},
        "data: step 0, input 0 (Float32 2x4) differs; 3 of 3 steps differ; equal: factor",
    ),
    (
        {"width": 5},
        "shapes of parameters: hidden.weight 6x4 / 5x4, hidden.bias 6 / 5, out.weight 3x6 / 3x5",
    ),
    ({"kind": nn.Adam}, "optimizer: SGD / Adam"),
    ({"factor": 2}, "data: step 0, input factor: 1 / 2; 3 of 3 steps differ; equal: 0"),
]


@pytest.mark.parametrize(("change", "words"), REAL)
def test_a_difference_of_two_trainings_is_named_first(tmp_path, debug, change, words):
    train(debug(level="mix", dump_path=str(tmp_path / "a")))
    train(debug(level="mix", dump_path=str(tmp_path / "b")), **change)
    assert probe.check(tmp_path / "a", tmp_path / "b").lines()[0] == words


def test_a_training_that_differs_in_all_is_checked_and_shown_in_chinese(tmp_path, debug, capsys):
    a, b = str(tmp_path / "a"), str(tmp_path / "b")
    train(debug(level="mix", dump_path=a))
    train(debug(level="mix", dump_path=b), seed=2, data=8, width=5, kind=nn.Adam, factor=2)
    assert main(["check", a, b, "--lang", "zh"]) == 1
    said = capsys.readouterr().out
    assert len(said.splitlines()) > 6
    assert english_left(said, a, b, "Cell out", "Cell hidden") == []
    for command in (["check", b], ["show", b], ["show", b, "--stack"]):
        assert main([*command, "--lang", "zh"]) == 0
        frames = "(?m)^      .*$"  # lines of code
        assert (
            english_left(
                re.sub(frames, "", capsys.readouterr().out), " ".join(sys.argv), "Max  Min"
            )
            == []
        )


def test_a_comparison_and_a_report_begin_with_the_check(tmp_path, debug, capsys):
    for name, seed in (("a", 1), ("b", 2)):
        train(debug(level="mix", dump_path=str(tmp_path / name)), seed=seed)
    assert main(["compare", str(tmp_path / "a"), str(tmp_path / "b")]) == 1
    assert (
        "the runs differ: parameters: all 4 differ: another seed (1 / 2)" in capsys.readouterr().out
    )
    content = make_content(str(tmp_path / "b"), str(tmp_path / "a"), Wishes())
    assert "parameters: all 4 differ: another seed (1 / 2)" in content.description["remarks"][0]


@pytest.mark.parametrize("settings", [{"task": "tensor"}, {"summary_mode": "md5"}])
def test_a_checkpoint_is_compared_with_a_dump_without_a_snapshot(tmp_path, debug, settings):
    ms.set_seed(1)
    net = Net()
    ms.save_checkpoint(net, str(tmp_path / "same.ckpt"))
    net.hidden.weight[0, 0] = 9.0
    ms.save_checkpoint(net, str(tmp_path / "other.ckpt"))
    train(debug(level="mix", snapshot=False, **settings), steps=1)
    assert probe.check(tmp_path / "same.ckpt", debug.dump_path).ok
    [line] = probe.check(tmp_path / "other.ckpt", debug.dump_path).lines()
    assert line.startswith("hidden.weight: ")


# -- notes and secrets ------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Config:
    depth: int = 3
    api_key: str = "abcdef"


Point = collections.namedtuple("Point", "x y")


def test_notes_of_every_kind_are_json(debug):
    debugger = debug(level="mix")
    debugger.note(
        learning_rate=np.float32(0.5),
        config=argparse.Namespace(epochs=3, out=pathlib.Path("x"), token="abc"),
    )
    train(debugger, steps=1)
    debugger.note(
        model=Config(),
        point=Point(1, 2),
        names={"b", "a"},
        dtype=ms.float16,
        kind=nn.Dense,
        nothing=None,
    )
    _, lines = read(debug.dump_path)
    notes = {name: value for line in lines for name, value in line.get("note", {}).items()}
    assert notes == {
        "learning_rate": 0.5,
        "config": {"epochs": 3, "out": "x", "token": CUT},
        "model": {"depth": 3, "api_key": CUT},
        "point": {"x": 1, "y": 2},
        "names": ["a", "b"],
        "dtype": "Float16",
        "kind": "Dense",
        "nothing": None,
    }


def test_notes_are_cut_at_a_megabyte_and_an_empty_note_is_refused(debug):
    debugger = debug(level="mix")
    debugger.note(
        small=1,
        large=["words of a text " * 30] * 1000,
        larger={str(n): ["words of a text " * 30] * 200 for n in range(14)},
        after=2,
    )
    with pytest.raises(probe.UsageError, match="by name"):
        debugger.note()
    train(debugger, steps=1)
    _, lines = read(debug.dump_path)
    notes = {name: value for line in lines for name, value in line.get("note", {}).items()}
    assert (notes["small"], notes["after"], len(notes["large"])) == (1, 2, 1000)
    assert notes["larger"].startswith("cut: ")
    assert sum(len(json.dumps(line)) for line in lines) < 1_100_000


def test_a_second_debugger_keeps_the_notes_for_its_own_folder(tmp_path, debug):
    debug(level="mix", dump_path=str(tmp_path / "a")).note(epochs=3)
    for name in "ab":
        train(debug(level="mix", dump_path=str(tmp_path / name)), steps=1)
        assert {"note": {"epochs": 3}} in read(tmp_path / name)[1]


def test_a_cycle_and_an_object_whose_text_fails_harm_nothing(debug):
    cycle = {}
    cycle["self"] = cycle
    debugger = debug(level="mix")
    debugger.note(cycle=cycle)
    train(debugger, steps=1)
    assert "note" in read(debug.dump_path)[1][0]


#: name of a variable or note, its secret value, the part of the value that must never be written
SECRETS = [
    ("HCCL_TOKEN", "abcdefg", "abcdefg"),
    ("MS_API_KEY", "zzz111", "zzz111"),
    ("MS_SECRET", "hush-hush", "hush"),
    ("ASCEND_PASSWORD", "letmein", "letmein"),
    ("MS_DB_PASSWD", "letmein2", "letmein2"),
    ("MS_CREDENTIALS", "user,open7", "open7"),
    ("MS_PASSPHRASE", "correct horse", "horse"),
    ("ATB_access_key_id", "AK12345", "AK12345"),
    ("MS_REDIS", "redis://me:swordfish@host:6379/0", "swordfish"),
    ("MS_PROXY", "http://bob:pa55@proxy.lan:8080", "pa55"),
    ("MS_DSN", "postgresql+psycopg://u:p4ss!x@db/x", "p4ss"),
    ("MS_EMPTY_USER", "https://:hunter2@host", "hunter2"),
    ("MS_QUERY", "https://h/x?token=qwerty&a=1", "qwerty"),
    ("MS_SIGNED", "https://h/x?a=1&sig=Zm9vYmFy", "Zm9vYmFy"),
    ("MS_SIGNED2", "https://h?X-Amz-Security-Token=q1", "q1"),
    ("MS_GITHUB", "ghp_16C7e42F292c6912E7710c838347Ae178B4a", "16C7e42F"),
    ("MS_GITHUB2", "github_pat_11ABCDE0000_abcdefghijklmnop", "11ABCDE"),
    ("MS_GITLAB", "glpat-xYz123abc456DEF78", "xYz123"),
    ("MS_OPENAI", "sk-proj-abcdefghijklmnopqrstuvwx", "abcdefghij"),
    ("MS_HF", "hf_AbCdEfGhIjKlMnOpQrStUv", "AbCdEf"),
    ("MS_AWS", "AKIAIOSFODNN7EXAMPLE", "IOSFODNN"),
    ("MS_AWS2", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "K7MDENG"),
    ("MS_GOOGLE", "AIzaSyA1234567890abcdefghijklmnopqrstu", "SyA12345"),
    ("MS_SLACK", "xoxb-123456789012-abcdefghijkl", "123456789012"),
    ("MS_JWT", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcDEF123", "hbGciOi"),
    ("MS_NPM", "npm_abcdefghijklmnopqrst", "abcdefghij"),
    ("MS_PYPI", "pypi-AgEIcHlwaS5vcmcCJGFiY2Q", "AgEIcHlw"),
    ("MS_HEX", "9f86d081884c7d659a2feaa0c55ad015", "9f86d081"),
    ("MS_HEX2", "9F86D081884C7D659A2FEAA0C55AD015A3BF4F1B", "9F86D081"),
    ("MS_BASE36", "k3j9x0q8z7w6v5u4t3s2r1p0o9n8m7l6", "k3j9x0"),
    ("MS_MIXED", "Ab3dEf6hIj9lMn2pQr5tUv8x", "Ab3dEf"),
    ("MS_HEADER", "Authorization: Bearer abc.def.ghi", "abc.def"),
    ("MS_BASIC", "Authorization: Basic dXNlcjpwYXNz", "dXNlcjpw"),
    ("MS_INLINE", "x=1;password=opensesame;y=2", "opensesame"),
    ("MS_JSON", '{"api_key": "k-1-2-3", "n": 1}', "k-1-2-3"),
    ("MS_YAML", "secret: shh-quiet", "shh"),
    ("MS_PEM", "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END", "MIIEow"),
    ("MS_SENDGRID", "SG.abcdefghij.klmnopqrst", "klmno"),
    ("MS_STRIPE", "sk_live_abcdefghijklmnop", "live_abc"),
    ("MS_DOCKER", "dckr_pat_abcdefghijklmn", "abcdefgh"),
    ("MS_DO", "dop_v1_abcdefghijklmnopqrst", "abcdefgh"),
]


def test_no_secret_of_the_environment_the_notes_and_the_command_reaches_a_file(debug, monkeypatch):
    assert len(SECRETS) >= 40
    for name, value, _ in SECRETS:
        monkeypatch.setenv(name, value)
    options = [word for name, value, _ in SECRETS for word in (f"--{name.lower()}", value)]
    monkeypatch.setattr(
        sys, "argv", ["train.py", *options, *(f"--{name}={value}" for name, value, _ in SECRETS)]
    )
    debugger = debug(level="mix")
    debugger.note(
        **{name.lower(): value for name, value, _ in SECRETS},
        nested={"deep": dict([it[:2] for it in SECRETS])},
    )
    train(debugger, steps=1)
    for file in debug.dump_path.rglob("run.json*"):
        text = file.read_text()
        assert [part for _, _, part in SECRETS if part in text] == []


PLAIN = [
    "train.py",
    "/home/me/data/Imagenet2012/train-00001-of-01024.tfrecord",
    "Qwen2.5-7B-Instruct-lora-run3",
    "bert-base-uncased",
    "1e-4",
    "2026-11-23T03:27:31",
    "http://proxy.lan:8080/x",
    "a,b,c",
    "LlamaForCausalLM",
    "fp16",
    "10.0.0.1:8118",
    "O2",
    "",
    "/usr/local/Ascend/ascend-toolkit/latest/opp/built-in/op_impl/ai_core/tbe",
    "tokenizer=llama",
    "max_device_memory=30GB",
]


@pytest.mark.parametrize("text", PLAIN)
def test_texts_that_are_no_secrets_stay(text):
    assert without_secrets(text) == text


#: words of a command that are secrets, and the part that must never be written
SECRET_WORDS = [
    (["--token", "-abcdefgh"], "abcdefgh"),
    (["--token", "-x"], "-x"),
    (["--pwd", "letmein"], "letmein"),
    (["--db-pwd=letmein"], "letmein"),
    (["--auth", "me:letmein"], "letmein"),
    (["--auth", "1234"], "1234"),
    (["--cred", "letmein"], "letmein"),
    (["--creds=letmein"], "letmein"),
    (["--cookie", "session-1"], "session-1"),
    (["--sas", "letmein"], "letmein"),
    (["--jwt", "letmein"], "letmein"),
    (["DB_PASS=letmein"], "letmein"),
    (["a.pass=letmein"], "letmein"),
    (["--pass", "1234"], "1234"),
    (["--api-key", "1234"], "1234"),
    (["--password=-letmein"], "letmein"),
    (["https://h/x?a=1&X-Amz-Signature=0a1b"], "0a1b"),
    (["https://h/x?signature=0a1b"], "0a1b"),
    (["https://abcdef@host/x"], "abcdef"),
    (["http://abcdef@host"], "abcdef"),
]


@pytest.mark.parametrize(("words", "part"), SECRET_WORDS)
def test_options_that_name_a_secret_lose_their_value(words, part):
    cut = words_without_secrets(["train.py", *words, "--lr", "0.1"])
    assert cut[0] == "train.py" and cut[-2:] == ["--lr", "0.1"] and len(cut) == len(words) + 3
    assert part not in "\n".join(cut)
    assert CUT in "\n".join(cut)


PLAIN_WORDS = [
    ["--passes", "3"], ["--num_passes=3"], ["--bypass", "x"], ["--author", "x"], ["--authors=a,b"],
    ["--tokenizer", "path"],
    ["--max_tokens", "100"], ["--max-tokens=4096"], ["--num_key_value_heads", "8"], ["--compass", "n"], ["--sasl", "x"],
    ["--credit", "5"], ["--cookiecutter", "t"], ["--use-auth-token", "--lr"], ["--use_auth_token=True"],
    ["--auth", "none"],
    ["--signature", "f(x)"], ["ssh://git@github.com/a/b.git"], ["me@host:/data"], ["-p", "8080"], ["--path", "x"],
    ["--max-tokens", "-1"], ["--key_padding", "1e-4"], ["--skip-tokens", "-v"],
]  # fmt: skip


@pytest.mark.parametrize("words", PLAIN_WORDS)
def test_harmless_options_keep_their_values(words):
    assert words_without_secrets(["train.py", *words]) == ["train.py", *words]


@pytest.mark.parametrize(
    "part", ["1,", "a", "aB3", ":", "://a:", "key", "-", "a b=", "sk-", "\0--key"]
)
def test_long_texts_are_searched_once(part):
    assert without_secrets(part * 100_000)  # with a search for each place it would take hours


def test_numbers_of_tokens_and_keys_stay():
    values = {
        "max_tokens": 4096,
        "num_key_value_heads": 8,
        "tokenizer": "llama",
        "key_dims": [64, 64],
    }
    assert to_json(values) == values
    assert to_json({"password": 1234, "secret": [1, 2]}) == {"password": CUT, "secret": [CUT, CUT]}
    assert words_without_secrets(["a.py", "--max-tokens", "--lr", "1"]) == [
        "a.py",
        "--max-tokens",
        "--lr",
        "1",
    ]


# -- the process ------------------------------------------------------------------------------------------------------


def test_the_commit_and_the_files_of_the_code_are_noted(tmp_path, monkeypatch):
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    script = tmp_path / "code" / "train.py"
    script.parent.mkdir()
    script.write_text("x = 1\n")
    monkeypatch.setattr(sys, "argv", [str(script)])
    monkeypatch.setitem(sys.modules, "__main__", types.ModuleType("__main__"))
    sys.modules["__main__"].__file__ = str(script)
    files = {"train.py": f"{zlib.crc32(script.read_bytes()):08x}"}
    assert Surroundings().now()["code"] == {"commit": None, "files": files}
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
        subprocess.run([*git, *words], check=True)
    commit = subprocess.run(
        [*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    ).stdout.strip()
    assert Surroundings().now()["code"] == {"commit": commit, "files": files}
    subprocess.run([*git, "pack-refs", "--all"], check=True)
    assert Surroundings().now()["code"]["commit"] == commit
    subprocess.run(
        [*git, "worktree", "add", "-q", "--detach", str(tmp_path / "second")], check=True
    )
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "second" / "code" / "train.py")])
    assert Surroundings().now()["code"]["commit"] == commit
    script.write_text("x = 2\n")
    monkeypatch.setattr(sys, "argv", [str(script)])
    assert Surroundings().now()["code"]["files"] != files


KILLED = """
import os, sys, signal
import mindspore as ms, numpy as np
from mindspore import nn, Tensor
from probe import PrecisionDebugger
ms.set_context(mode=ms.PYNATIVE_MODE)
net = nn.SequentialCell(nn.Dense(4, 3))
debugger = PrecisionDebugger(level="mix", dump_path=sys.argv[1])
debugger.note(epochs=3)
for step in range(3):
    debugger.start(net)
    net(Tensor(np.full((2, 4), step, np.float32)))
    if step == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    debugger.step()
"""


@pytest.mark.slow
def test_a_killed_process_leaves_its_snapshot(tmp_path):
    done = processes.run(
        [sys.executable, "-c", KILLED, str(tmp_path / "dump")],
        env=environment(),
        capture_output=True,
    )
    assert done.returncode == -signal.SIGKILL
    run, lines = read(tmp_path / "dump")
    assert list(run["parameters"]) == ["0.weight", "0.bias"]
    assert [line.get("step") for line in lines] == [None, 0, 1, 2]
    assert probe.check(tmp_path / "dump", tmp_path / "dump").ok


def test_a_failing_snapshot_is_said_and_the_training_goes_on(debug, monkeypatch, caplog):
    def fail(*_):
        raise ValueError("no packages")

    monkeypatch.setattr("probe.snapshot.snapshot.Surroundings", fail)
    debugger = debug(level="mix")
    train(debugger, steps=2)
    assert "writing run.json failed" in caplog.text
    assert len(debug.dump(1).data) > 3
    for path in debug.dump_path.rglob("dump_error_info.log"):
        os.remove(path)


def test_overwriting_replaces_the_snapshot_of_the_other_run(debug):
    train(debug(level="mix"), seed=1)
    debugger = probe.PrecisionDebugger(level="mix", dump_path=str(debug.dump_path))
    debugger.close()
    train(debug(level="mix", overwrite=True), seed=2, steps=1)
    runs = [json.loads(path.read_text()) for path in debug.dump_path.rglob("run.json")]
    assert [run["seed"] for run in runs] == [2]

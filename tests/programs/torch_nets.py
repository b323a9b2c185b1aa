# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Trains small random models of transformers, peft and diffusers on MindSpore, bare and with probe, and compares all.

    python -m tests.programs.torch_nets [--models llama,bert] [--settings L0,mix]

Each model trains in a process of its own. A line of JSON for each model and setting says whether losses, gradients and
parameters have equal bits, and which calls of modules and gradients of parameters have no entry. ``make torch-nets``
runs all; the exit status is 1 if anything differs.
"""

from __future__ import annotations

import argparse
import collections
import json
import subprocess
import sys
import tempfile
from pathlib import Path

#: setting -> what its config.json says
SETTINGS = {
    "L0": {"level": "L0"},
    "L1": {"level": "L1"},
    "mix": {"level": "mix"},
    "tensor": {"level": "mix", "task": "tensor"},
    "md5": {"level": "mix", "task": "statistics", "statistics": {"summary_mode": "md5"}},
    "nan_check": {"level": "mix", "task": "nan_check"},
    "monitor": {"level": "L1", "task": "monitor"},
    "structure": {"level": "mix", "task": "structure"},
}
#: setting -> the document whose entries are looked at
DUMPS = {
    **dict.fromkeys(("L0", "mix", "tensor", "md5"), "dump.json"),
    "structure": "construct.json",
}
_SMALL = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
_DECODER = {**_SMALL, "intermediate_size": 64, "num_key_value_heads": 2, "use_cache": False}
_LENGTH = 12
STEPS = 2
RATE = 0.1


def _tokens():
    """Return a batch of tokens. None of them is that of the padding, whose row PyTorch does not train."""
    import torch

    return torch.arange(1, 1 + 2 * _LENGTH).reshape(2, _LENGTH)


def _decoder(kind, **further):
    """Return a decoder of transformers, and its batch."""
    import transformers

    config = getattr(transformers, f"{kind}Config")(
        **{**_DECODER, **further}, attn_implementation="eager"
    )
    ids = _tokens()
    model = getattr(transformers, f"{kind}ForCausalLM")(config)
    return model, {"input_ids": ids, "labels": ids}


def _gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    quiet = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)
    config = GPT2Config(vocab_size=64, n_positions=32, n_embd=32, n_layer=2, n_head=4, **quiet)
    config.use_cache = False
    config._attn_implementation = "eager"
    ids = _tokens()
    return GPT2LMHeadModel(config), {"input_ids": ids, "labels": ids}


def _bert():
    from transformers import BertConfig, BertForMaskedLM

    quiet = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    config = BertConfig(**_SMALL, intermediate_size=64, attn_implementation="eager", **quiet)
    ids = _tokens()
    return BertForMaskedLM(config), {"input_ids": ids, "labels": ids}


def _t5():
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(
        vocab_size=64, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, dropout_rate=0.0,
        use_cache=False, decoder_start_token_id=0,
    )  # fmt: skip
    ids = _tokens()
    return T5ForConditionalGeneration(config), {"input_ids": ids, "labels": ids}


def _vit():
    import numpy as np
    import torch
    from transformers import ViTConfig, ViTForImageClassification

    sizes = {key: value for key, value in _SMALL.items() if key != "vocab_size"}
    quiet = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    config = ViTConfig(
        **sizes, intermediate_size=64, image_size=16, patch_size=8, num_labels=3, **quiet
    )
    config._attn_implementation = "eager"
    pixels = torch.tensor(
        np.sin(np.arange(2 * 3 * 16 * 16)).reshape(2, 3, 16, 16).astype("float32")
    )
    return ViTForImageClassification(config), {
        "pixel_values": pixels,
        "labels": torch.tensor([0, 2]),
    }


def _lora():
    from peft import LoraConfig, get_peft_model

    model, batch = _decoder("Llama")
    config = LoraConfig(r=4, lora_alpha=8, lora_dropout=0.0, target_modules=["q_proj", "v_proj"])
    return get_peft_model(model, config), batch


def _unet():
    import numpy as np
    import torch
    from diffusers import UNet2DModel

    model = UNet2DModel(
        sample_size=8, in_channels=1, out_channels=1, layers_per_block=1, block_out_channels=(8, 16),
        down_block_types=("DownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "UpBlock2D"),
        norm_num_groups=4,
    )  # fmt: skip
    noise = torch.tensor(np.sin(np.arange(2 * 64)).reshape(2, 1, 8, 8).astype("float32"))
    return model, {"sample": noise, "timestep": torch.tensor([3, 7])}


def _cnn():
    import numpy as np
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(1, 4, 3, padding=1)
            self.norm = nn.BatchNorm2d(4)
            self.drop = nn.Dropout(0.0)
            self.rows = nn.LSTM(16, 8, batch_first=True)
            self.out = nn.Linear(8, 3)
            self.loss_fn = nn.CrossEntropyLoss()
            nn.init.ones_(self.norm.weight)

        def forward(self, x, labels):
            x = torch.relu(self.norm(self.conv(x)))
            x = nn.functional.max_pool2d(x, 2).reshape(2, 4, 16)
            found, _ = self.rows(self.drop(x))
            output = self.out(found[:, -1])
            return type("Output", (), {"loss": self.loss_fn(output, labels)})()

    x = torch.tensor(np.sin(np.arange(2 * 64)).reshape(2, 1, 8, 8).astype("float32"))
    return Net(), {"x": x, "labels": torch.tensor([0, 2])}


MODELS = {
    "cnn": _cnn,
    "llama": lambda: _decoder("Llama"),
    "qwen2": lambda: _decoder("Qwen2"),
    "mixtral": lambda: _decoder("Mixtral", num_local_experts=4, num_experts_per_tok=2),
    "gpt2": _gpt2,
    "bert": _bert,
    "t5": _t5,
    "vit": _vit,
    "lora": _lora,
    "unet": _unet,
}


class Training:
    """A model that trains by gradient descent from the same weights each time."""

    def __init__(self, name):
        from mindtorch import autograd

        self.model, self.batch = MODELS[name]()
        self.model.train()
        self.trained = {n: p for n, p in self.model.named_parameters() if p.requires_grad}
        self.before = {n: p.numpy().copy() for n, p in self.model.named_parameters()}
        self.gradient = autograd.value_and_grad(self._loss, list(self.trained.values()))

    def _loss(self):
        output = self.model(**self.batch)
        found = getattr(output, "loss", None)
        return (output.sample * output.sample).mean() if found is None else found

    def run(self, debugger=None):
        """Return the bytes of losses, gradients and parameters, and the calls of modules in the last step."""
        import torch

        found = []
        for name, parameter in self.model.named_parameters():
            parameter.data = torch.tensor(self.before[name])
        for _ in range(STEPS):
            if debugger is not None:
                debugger.start(self.model)
            found.append(self.gradient().numpy().tobytes())
            for parameter in self.trained.values():
                if parameter.grad is not None:
                    found.append(parameter.grad.numpy().tobytes())
                    parameter.data = parameter.data - RATE * parameter.grad
                    parameter.grad = None
            if debugger is not None:
                debugger.stop()
                debugger.step()
        found += [p.numpy().tobytes() for p in self.model.parameters()]
        return found

    def functions_called(self):
        """Return how often each listed function was called from outside of another, by the profiler of Python."""
        from probe.capture.support_ops import load_supported_apis

        keys = {}
        for api in load_supported_apis(None):
            value = vars(api.owner).get(api.name)
            code = getattr(getattr(value, "__func__", value), "__code__", None)
            if code is not None:
                keys.setdefault(code, api.key)
        counts = collections.Counter()
        inside = []

        def look(frame, event, argument):
            if event == "call" and frame.f_code in keys:
                if not inside:
                    counts[keys[frame.f_code]] += 1
                inside.append(frame)
            elif event == "return" and inside and inside[-1] is frame:
                inside.pop()

        sys.setprofile(look)
        try:
            self.gradient()
        finally:
            sys.setprofile(None)
        for parameter in self.trained.values():
            parameter.grad = None
        return counts

    def modules_called(self):
        """Return the names that the calls of modules have in a dump, by hooks of torch, and the gradients."""
        paths = {id(module): path for path, module in self.model.named_modules()}
        counts = {}
        called = []

        def note(module, args, output):
            path = paths[id(module)]
            if path:
                key = f"Module.{path}.{type(module).__name__}"
                counts[key] = counts.get(key, -1) + 1
                called.append(f"{key}.forward.{counts[key]}")

        handles = [module.register_forward_hook(note) for module in self.model.modules()]
        self.gradient()
        for handle in handles:
            handle.remove()
        gradients = {name for name, p in self.trained.items() if p.grad is not None}
        for parameter in self.trained.values():
            parameter.grad = None
        return called, gradients


def lost_entries(setting, step, called, gradients, functions):
    """Return the calls of modules and functions, and the gradients, that have no entry in a step."""
    document = step / DUMPS[setting]
    if not document.exists():
        return ["all"]
    found = json.loads(document.read_text(encoding="utf-8"))
    entries = found.get("data", found)  # the tree has names alone
    lost = [one for one in called if one not in entries]
    if setting != "structure":
        known = set()
        for entry, held in entries.items():
            if "parameters_grad" in entry:
                path = entry.split(".", 1)[1].rsplit(".", 3)[0]
                known.update(f"{path}.{parameter}" for parameter in held)
        lost += sorted(gradients - known)
    if setting != "L0":
        seen = collections.Counter(
            one.rpartition(".")[0].rpartition(".")[0] for one in entries if one.endswith(".forward")
        )
        lost += [f"{key} x{count}" for key, count in (functions - seen).items()]
    return lost


def look(name, settings, folder):
    """Train one model in each setting; print a line for each; return whether all is right."""
    from probe import PrecisionDebugger

    training = Training(name)
    bare = training.run()
    is_repeatable = training.run() == bare
    called, gradients = training.modules_called()
    functions = training.functions_called()
    is_right = True
    for setting in settings:
        place = folder / f"{name}-{setting}"
        place.mkdir(parents=True)
        config = place / "config.json"
        dump = {"dump_path": str(place / "dump"), **SETTINGS[setting]}
        config.write_text(json.dumps(dump), encoding="utf-8")
        is_equal = training.run(PrecisionDebugger(config_path=str(config))) == bare
        step = place / f"dump/step{STEPS - 1}/rank"
        lost = []
        if setting in DUMPS:
            lost = lost_entries(setting, step, called, gradients, functions)
        errors = [str(path) for path in place.rglob("dump_error_info.log")]
        row = {
            "model": name, "setting": setting, "equal": is_equal, "repeatable": is_repeatable,
            "modules": len(called), "gradients": len(gradients),
            "functions": sum(functions.values()), "lost": lost[:5], "errors": errors,
        }  # fmt: skip
        print(json.dumps(row), flush=True)
        is_right &= (is_equal or not is_repeatable) and not lost and not errors
    return is_right


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--settings", default=",".join(SETTINGS))
    parser.add_argument("--alone", action="store_true", help="in this process")
    arguments = parser.parse_args()
    settings = arguments.settings.split(",")
    if arguments.alone:
        import mindnlp  # noqa: F401  # torch is mindtorch from here on

        with tempfile.TemporaryDirectory() as folder:
            return 0 if look(arguments.models, settings, Path(folder)) else 1
    failed = []
    for name in arguments.models.split(","):
        words = [sys.executable, "-m", "tests.programs.torch_nets", "--alone"]
        done = subprocess.run(
            [*words, "--models", name, "--settings", arguments.settings], check=False
        )
        failed += [name] if done.returncode else []
    print(json.dumps({"models": len(arguments.models.split(",")), "failed": failed}))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

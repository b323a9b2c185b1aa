# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The words of PyTorch and MindSpore for the same thing, as their public documents have them.

Both sides are brought to one word: that of MindSpore where it has one. A word that no table has stands for itself.
"""

from __future__ import annotations

from typing import Any

PYTORCH, MINDSPORE = "pytorch", "mindspore"
#: class of torch.nn, or of mindspore.mint.nn -> class of mindspore.nn
_CLASSES = {
    "Linear": "Dense",
    "Sequential": "SequentialCell",
    "ModuleList": "CellList",
    "ModuleDict": "CellDict",
    "ConvTranspose1d": "Conv1dTranspose",
    "ConvTranspose2d": "Conv2dTranspose",
    "ConvTranspose3d": "Conv3dTranspose",
    "Hardswish": "HSwish",
    "Hardsigmoid": "HSigmoid",
    "Hardtanh": "Hardtanh",
    "Hardshrink": "HShrink",
    "Softshrink": "SoftShrink",
    "Softsign": "Softsign",
    "KLDivLoss": "KLDivLoss",
    "NLLLoss": "NLLLoss",
    "BCEWithLogitsLoss": "BCEWithLogitsLoss",
    "LSTMCell": "LSTMCell",
    "UpsamplingNearest2d": "Upsample",
    "UpsamplingBilinear2d": "Upsample",
}
#: parameter of torch -> parameter of mindspore.nn, tried where the other side has no parameter of that name
_PARAMETERS = {
    "weight": ("gamma", "embedding_table", "w"),
    "bias": ("beta",),
    "running_mean": ("moving_mean",),
    "running_var": ("moving_variance",),
}
#: words of torch for a call -> one word; methods and functions alike, without underscores at the ends
_TORCH_CALLS = {
    "linear": "dense",
    "bmm": "matmul",
    "mm": "matmul",
    "addmm": "addmm",
    "mul": "mul",
    "multiply": "mul",
    "subtract": "sub",
    "div": "div",
    "divide": "div",
    "truediv": "div",
    "true_divide": "div",
    "view": "reshape",
    "view_as": "reshape",
    "flatten": "reshape",
    "unflatten": "reshape",
    "permute": "transpose",
    "swapaxes": "transpose",
    "swapdims": "transpose",
    "t": "transpose",
    "cat": "concat",
    "concatenate": "concat",
    "unsqueeze": "expand_dims",
    "expand": "broadcast_to",
    "expand_as": "broadcast_to",
    "to": "cast",
    "type": "cast",
    "float": "cast",
    "half": "cast",
    "bfloat16": "cast",
    "long": "cast",
    "int": "cast",
    "clamp": "clip",
    "gather": "gather_elements",
    "index_select": "index_select",
    "conv1d": "conv",
    "conv2d": "conv",
    "conv3d": "conv",
    "max_pool2d": "maxpool",
    "avg_pool2d": "avgpool",
    "where": "where",
    "getitem": "getitem",
}
#: words of MindSpore for a call -> the same words; names of functions, methods and Primitives in small letters
_MINDSPORE_CALLS = {
    "linear": "dense",
    "batchmatmul": "matmul",
    "batchmatmulext": "matmul",
    "matmulext": "matmul",
    "bmm": "matmul",
    "mm": "matmul",
    "layernorm": "layer_norm",
    "layernormext": "layer_norm",
    "layernormv3": "layer_norm",
    "groupnorm": "group_norm",
    "batchnorm": "batch_norm",
    "batchnormext": "batch_norm",
    "gelu_ext": "gelu",
    "geluext": "gelu",
    "embedding": "embedding",
    "gather": "embedding",
    "gatherelements": "gather_elements",
    "gatherd": "gather_elements",
    "gather_d": "gather_elements",
    "logsoftmax": "log_softmax",
    "nllloss": "nll_loss",
    "mseloss": "mse_loss",
    "sparsesoftmaxcrossentropywithlogits": "cross_entropy",
    "softmaxcrossentropywithlogits": "cross_entropy",
    "onehot": "one_hot",
    "tensoradd": "add",
    "addext": "add",
    "subext": "sub",
    "multiply": "mul",
    "subtract": "sub",
    "realdiv": "div",
    "truediv": "div",
    "divide": "div",
    "true_divide": "div",
    "reducesum": "sum",
    "sumext": "sum",
    "reducemean": "mean",
    "meanext": "mean",
    "reducemax": "max",
    "reducemin": "min",
    "view": "reshape",
    "view_as": "reshape",
    "flatten": "reshape",
    "permute": "transpose",
    "swapaxes": "transpose",
    "t": "transpose",
    "cat": "concat",
    "unsqueeze": "expand_dims",
    "expanddims": "expand_dims",
    "broadcastto": "broadcast_to",
    "expand": "broadcast_to",
    "expand_as": "broadcast_to",
    "to": "cast",
    "type": "cast",
    "astype": "cast",
    "float": "cast",
    "half": "cast",
    "bfloat16": "cast",
    "long": "cast",
    "int": "cast",
    "clamp": "clip",
    "clipbyvalue": "clip",
    "clip_by_value": "clip",
    "conv1d": "conv",
    "conv2d": "conv",
    "conv3d": "conv",
    "maxpool": "maxpool",
    "max_pool2d": "maxpool",
    "avgpool": "avgpool",
    "avg_pool2d": "avgpool",
    "select": "where",
    "stridedslice": "getitem",
    "reluv2": "relu",
    "swish": "silu",
    "maskedfill": "masked_fill",
}
#: Python's words for operators in place and from the right -> the operator
_OPERATORS = {
    "iadd": "add", "isub": "sub", "imul": "mul", "itruediv": "div", "imatmul": "matmul",
    "radd": "add", "rmul": "mul", "rtruediv": "rdiv",
}  # fmt: skip
_DTYPES = {"torch.bool": "Bool", "torch.half": "Float16", "torch.float": "Float32", "torch.double": "Float64"}
_KINDS = {"float": "Float", "bfloat": "BFloat", "int": "Int", "uint": "UInt", "complex": "Complex"}


def are_two(a: dict[str, Any], b: dict[str, Any]) -> bool:
    """Return whether two headers are of PyTorch and of MindSpore."""
    return {a.get("framework"), b.get("framework")} == {PYTORCH, MINDSPORE}


def class_word(name: str) -> str:
    """Return one word for a class that both frameworks have.

    >>> class_word("Linear"), class_word("Dense"), class_word("Block")
    ('Dense', 'Dense', 'Block')
    """
    return _CLASSES.get(name, name)


def call_word(word: str, framework: str) -> str:
    """Return one word for a call that both frameworks have.

    >>> call_word("linear", "pytorch"), call_word("layernorm", "mindspore"), call_word("iadd", "pytorch")
    ('dense', 'layer_norm', 'add')
    """
    word = _OPERATORS.get(word, word)
    return (_TORCH_CALLS if framework == PYTORCH else _MINDSPORE_CALLS).get(word, word)


def parameter_word(name: str, others: set[str]) -> str:
    """Return the name that a parameter of torch has on the other side.

    Args:
        name: the parameter of torch.
        others: the parameters of the same Cell on the other side.

    >>> parameter_word("weight", {"gamma", "beta"}), parameter_word("weight", {"weight", "bias"})
    ('gamma', 'weight')
    """
    if name in others:
        return name
    return next((word for word in _PARAMETERS.get(name, ()) if word in others), name)


def dtype_word(dtype: Any) -> Any:
    """Return a dtype of torch as MindSpore spells it; anything else as it is.

    >>> dtype_word("torch.bfloat16"), dtype_word("torch.uint8"), dtype_word("torch.float"), dtype_word("Float32")
    ('BFloat16', 'UInt8', 'Float32', 'Float32')
    """
    if type(dtype) is not str or not dtype.startswith("torch."):
        return dtype
    word = dtype.partition(".")[2]
    kind = word.rstrip("0123456789")
    return _DTYPES.get(dtype) or (_KINDS[kind] + word[len(kind) :] if kind in _KINDS else dtype)

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Tensors that torch has saved.

``python -m tests.reading.dumps.torch.samples`` writes them anew, in a Python with torch.

Each is described by numpy too, so that a test without torch knows the numbers.
"""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np

FOLDER = Path(__file__).parent / "samples"


def expected():
    """Return file -> array."""
    rows = np.arange(12).reshape(3, 4)
    return {
        "float32": rows.astype(np.float32) / 8,
        "float64": rows / 8,
        "float16": rows.astype(np.float16) / 8,
        "bfloat16": (rows / 8).astype(ml_dtypes.bfloat16),
        "float8_e4m3fn": (rows / 8).astype(ml_dtypes.float8_e4m3fn),
        "float8_e5m2": (rows / 8).astype(ml_dtypes.float8_e5m2),
        "int64": rows - 5,
        "int32": (rows - 5).astype(np.int32),
        "int16": (rows - 5).astype(np.int16),
        "int8": (rows - 5).astype(np.int8),
        "uint8": rows.astype(np.uint8),
        "uint16": rows.astype(np.uint16),
        "bool": rows % 2 == 0,
        "complex64": (rows + 1j * rows).astype(np.complex64),
        "transposed": rows.astype(np.float32).T,
        "slice": rows.astype(np.float32)[1:, ::2],
        "expanded": np.broadcast_to(np.arange(3, dtype=np.float32)[:, None], (3, 4)),
        "scalar": np.array(2.5, np.float32),
        "empty": np.zeros((0, 3), np.float32),
        "parameter": rows.astype(np.float32),
        "pickle_protocol_4": rows.astype(np.float32),
    }


def main():
    """Write the samples."""
    import torch

    FOLDER.mkdir(exist_ok=True)
    rows = torch.arange(12).reshape(3, 4)
    made = {
        name: (rows / 8).to(getattr(torch, name))
        for name in ("float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
    }
    made.update(
        {name: (rows - 5).to(getattr(torch, name)) for name in ("int64", "int32", "int16", "int8")}
    )
    made.update({name: rows.to(getattr(torch, name)) for name in ("uint8", "uint16")})
    whole = rows.to(torch.float32)
    made.update(
        bool=rows % 2 == 0,
        complex64=torch.complex(whole, whole),
        transposed=whole.t(),
        slice=whole[1:, ::2],
        expanded=torch.arange(3.0)[:, None].expand(3, 4),
        scalar=torch.tensor(2.5),
        empty=torch.zeros(0, 3),
        parameter=torch.nn.Parameter(whole),
    )
    for name, tensor in made.items():
        torch.save(tensor, FOLDER / f"{name}.pt")
    torch.save(whole, FOLDER / "pickle_protocol_4.pt", pickle_protocol=4)
    torch.save(whole, FOLDER / "before_1_6.pt", _use_new_zipfile_serialization=False)


if __name__ == "__main__":
    main()

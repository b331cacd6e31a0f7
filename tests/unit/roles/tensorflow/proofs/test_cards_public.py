"""Names of public GPUs in nvidia-smi and CUDA, as TensorFlow's proofs read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostwright.audit.hardware.gpu import Gpu
from hostwright.prove.model import Expected
from hostwright.standard.roles.cuda.proofs.frameworks import models
from hostwright.standard.roles.cuda.proofs.programs.common import nvidia_smi
from tests.unit.roles.tensorflow.proofs.measuring import measured


@pytest.mark.parametrize(
    ("text", "status", "rows"),
    [
        pytest.param(
            "00000000:00:04.0, GPU-1\nWARNING: infoROM is corrupted at gpu 0000:00:04.0\n",
            14,
            [["00000000:00:04.0", "GPU-1"]],
            id="microsoft/pai#3756",
        ),
        pytest.param(
            "0000000F:01:00.0, GPU-1\n", 0, [["0000000F:01:00.0", "GPU-1"]], id="hashicorp/nomad-device-nvidia#87"
        ),
        pytest.param(
            "00000000:0B:00.0, GPU-1\nUnable to determine the device handle for GPU 0000:0C:00.0: Unknown Error\n",
            15,
            [["00000000:0B:00.0", "GPU-1"]],
            id="NVIDIA/open-gpu-kernel-modules#387",
        ),
        pytest.param(
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n", 9, [], id="status 9"
        ),
    ],
)
def test_rows_of_cards_count_whatever_the_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, status: int, rows: list[list[str]]
) -> None:
    (tmp_path / "told").write_text(text)
    (tmp_path / "nvidia-smi").write_text(f'#!/bin/sh\ncat "{tmp_path}/told"\nexit {status}\n')
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert nvidia_smi("pci.bus_id,uuid") == rows


@pytest.mark.parametrize(
    ("driver", "cuda", "named"),
    [
        pytest.param("NVIDIA H100 NVL", "NVIDIA H100 NVL MIG 3g.47gb", [], id="cms-sw/cmssw#51574"),
        pytest.param("NVIDIA A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB MIG 1g.20gb", [], id="influxdata/telegraf#5812"),
        pytest.param("Tesla V100-SXM2-16GB", "Tesla V100-SXM2-32GB",
                     ["CUDA and the driver report different names for this card"], id="another card"),
    ],
)  # fmt: skip
def test_a_part_of_a_card_has_the_cards_name(driver: str, cuda: str, named: list[str]) -> None:
    card = Gpu(0, "0000:61:00.0", "GPU-1", driver)
    rows = measured({("gpu", f"GPU-1 ({cuda})"): cuda})
    assert [each.sentence for each in models(rows, Expected("gpu01", cards=(card,), models=(driver,)))] == named

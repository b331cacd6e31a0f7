"""NVIDIA's own nvcc 13.5 from its wheels: every CUDA program of the proofs, for each architecture that it knows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hostwright.common.quoting import sh_file
from hostwright.prove.reading import read
from hostwright.standard.roles.base.proofs.sources import source
from hostwright.standard.roles.cuda import proofs as of_cuda
from hostwright.standard.roles.cuda.compilers import OLDER_GCC
from hostwright.standard.roles.nccl import proofs as of_nccl

#: the compiler, what its programs link, and NCCL, each as PyPI has it
WHEELS = (
    "nvidia-cuda-nvcc==13.5.37", "nvidia-cuda-crt==13.5.37", "nvidia-nvvm==13.5.37", "nvidia-cuda-runtime==13.5.37",
    "nvidia-cuda-cccl==13.3.5.0.6", "nvidia-nccl-cu13==2.32.3",
)  # fmt: skip
SOURCES = {
    "bandwidth": source(of_cuda.__file__, "bandwidth.cu"),
    "memory": source(of_cuda.__file__, "memory.cu"),
    "burnin": source(of_cuda.__file__, "burnin.cu"),
    "allreduce": source(of_nccl.__file__, "allreduce.cu", of_cuda.__file__),
}
#: T4, A100, A10, L40S, H100, B200, B300, RTX PRO 6000
CARDS = {f"compute_{number}" for number in (75, 80, 86, 89, 90, 100, 103, 120)}


@pytest.fixture(scope="module")
def nvidia(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of NVIDIA's wheels in an environment of their own."""
    place = tmp_path_factory.mktemp("nvcc")
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    subprocess.run([place / "bin/pip", "install", "-q", "--no-deps", "--only-binary", ":all:", *WHEELS], check=True)
    (found,) = place.glob("lib/python3*/site-packages/nvidia")
    return found


def test_it_knows_the_architectures_of_all_cards(nvidia: Path) -> None:
    done = subprocess.run([nvidia / "cu13/bin/nvcc", "--list-gpu-arch"], check=True, capture_output=True, text=True)
    assert set(done.stdout.split()) >= CARDS


@pytest.mark.parametrize("name", SOURCES)
def test_every_program_is_compiled_for_every_architecture(nvidia: Path, name: str, tmp_path: Path) -> None:
    (tmp_path / f"{name}.cu").write_text(SOURCES[name])
    command = [nvidia / "cu13/bin/nvcc", "-std=c++14", "-O2", "-arch=all", "-I", nvidia / "nccl/include", "-c"]
    done = subprocess.run(
        [*command, f"{name}.cu"], cwd=tmp_path, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("name", sorted(SOURCES.keys() - {"allreduce"}))
def test_without_a_gpu_they_say_so(nvidia: Path, name: str, tmp_path: Path) -> None:
    """Built as a host's own nvcc builds them. NCCL's wheel has no library to link by the name that the proof takes."""
    (tmp_path / f"{name}.cu").write_text(SOURCES[name])
    values = {"toolkit": nvidia / "cu13", "compiler": "", "libraries": ""}
    script = OLDER_GCC + sh_file(of_cuda.__file__, "compile.sh", **values)
    subprocess.run(["sh", "-c", script, "compile", f"{name}.cu", name], cwd=tmp_path, check=True)
    (tmp_path / "arguments.json").write_text(json.dumps({"bytes": 1 << 25, "reserve": 0, "pci_devices": "/none"}))
    done = subprocess.run(
        [tmp_path / name, "arguments.json"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    printed = read(done.stdout)
    assert printed.ended
    assert {(one.value, one.device) for one in printed.measurements} == {(None, "no GPU")}

"""NVIDIA's own CUDA libraries and compiler (the full profile) on a host: they compile, link and load."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hostwright.common.quoting import sh, words
from hostwright.fleet import Fleet
from hostwright.prove.host import proofs_of
from hostwright.prove.model import Program
from hostwright.prove.reading import Printed, read
from hostwright.standard.roles.tensorflow.section import TensorflowSection
from lab import fleet as lab_fleet
from lab.config import HostOptions, Machine
from lab.records import find_machine
from tests.lab.conftest import FrontDoor, on
from tests.lab.ownlab import own_lab

pytestmark = pytest.mark.long
PYTHON = "/opt/tensorflow-2.9/bin/python"
GPUS = f"{PYTHON} -c 'import tensorflow as tf; print(len(tf.config.list_physical_devices(\"GPU\")))' 2>/dev/null"
PROGRAM = """
#include <cstdio>
#include <cublas_v2.h>
#include <cuda_runtime.h>
__global__ void add(int *x) { *x += 1; }
int main() {
  int blas = 0;
  cublasGetProperty(MAJOR_VERSION, &blas);
  printf("%d %s %d\\n", CUDART_VERSION, cudaGetErrorName(cudaErrorSystemNotReady), blas);
}
"""


@pytest.fixture(scope="module")
def host() -> Iterator[Machine]:
    """A provisioned host in a separate lab."""
    options = HostOptions(profile="full")
    with own_lab("testfull") as lab:
        lab_fleet.supply(lab, options)
        lab_fleet.up(lab, ["full01"], options=options)
        invoke = FrontDoor(lab)
        every = (["mirror", "--stack", "lab"], ["provision", "--hosts", "full01"], ["verify", "--hosts", "full01"])
        for words in every:
            done = invoke(*words)
            assert done.returncode == 0, f"{words}: {done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        yield find_machine(lab, "full01")


def test_nvcc_compiles_a_program_that_links_cudart_and_cublas(host: Machine):
    source = f"mkdir -p /tmp/nvcc && cd /tmp/nvcc && cat >a.cu <<'END'\n{PROGRAM}\nEND\n"
    assert on(host, f"{source} nvcc -o a a.cu -lcublas --cudart shared && ./a").split() == [
        "11020",
        "cudaErrorSystemNotReady",
        "11",
    ]
    assert "libcudart.so.11.0 => /usr/local/cuda-11.2/" in on(host, "ldd /tmp/nvcc/a")


def test_a_gpu_is_listed_only_when_every_library_is_in_place(host: Machine):
    """TensorFlow opens each library at run time; without one it continues without the GPU and exits with 0."""
    target = Fleet.load(host.lab.inventory.parent).targets("full01")[0]
    assert len(target.stack.section(TensorflowSection).libraries) == 9
    assert on(host, GPUS).strip() == "1"
    for soname in target.stack.section(TensorflowSection).libraries:
        path = on(host, f"ldconfig -p | sed -n 's|^\\s*{soname} .*x86-64.*=> ||p' | head -n 1").strip()
        real = on(host, f"readlink -f {path}").strip()  # ldconfig would create a link again
        on(host, f"mv {real} /root/away; ldconfig")
        assert on(host, GPUS).strip() == "0", f"a GPU is listed without {soname}"
        on(host, f"mv /root/away {real}; ldconfig")
    assert on(host, GPUS).strip() == "1"


def built_and_run(host: Machine, program: Program) -> Printed:
    """Compile a proof's program on the host as the engine does, run it, and return its output."""
    folder = f"/root/proofs/{program.file}"
    paths = {"{source}": f"{folder}/source.{program.file.rpartition('.')[2]}", "{program}": f"{folder}/program"}
    build = words(tuple(paths.get(word, word) for word in program.compiler))
    script = sh("mkdir -p %s; cd %s; printf %%s %s >%s; ", folder, folder, program.source, paths["{source}"])
    # hides the emulated card on the lab host's bus
    script += sh("printf %%s %s >arguments.json; ", '{"bytes":33554432,"reserve":0,"pci_devices":"/none"}')
    return read(on(host, f"{script}{build} >&2; {paths['{program}']} arguments.json"))


def test_nvcc_compiles_every_program_of_the_proofs_and_without_a_gpu_they_say_so(host: Machine):
    target = Fleet.load(host.lab.inventory.parent).targets("full01")[0]
    programs = [proof.program for proof in proofs_of(target) if proof.layer == "cuda" and proof.program.compiler]
    assert [program.file for program in programs] == ["bandwidth.cu", "memory.cu", "burnin.cu"]
    for program in programs:
        printed = built_and_run(host, program)
        assert printed.ended, program.file
        assert {(one.value, one.device) for one in printed.measurements} == {(None, "no GPU")}, program.file


def test_the_hosts_own_compiler_builds_the_proofs_of_the_host_itself(host: Machine):
    target = Fleet.load(host.lab.inventory.parent).targets("full01")[0]
    for program in [proof.program for proof in proofs_of(target) if proof.layer == "base" and proof.program.compiler]:
        printed = built_and_run(host, program)
        assert printed.ended, program.file
        assert printed.not_run or len(printed.measurements) >= 3, program.file

"""The all-reduce of the proof, whole, on emulated cards with an emulated NCCL; its log is as public reports have it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from hostwright.plan.roles.role import RoleContext
from hostwright.prove.model import Expected, Proof
from hostwright.prove.reading import Printed, read
from hostwright.standard.roles.cuda import Cuda, cuda
from hostwright.standard.roles.nccl import Nccl, nccl
from tests.unit.roles.nccl.proofs.published import LOGS
from tests.unit.support.stacks import load_stack

HERE = Path(__file__).parent
CUDA = HERE.parents[1] / "cuda/proofs/emulated"
STACK = load_stack("tensorflow-2.9-nccl-tensorrt")
EXPECTED = Expected("gpu01", cards_on_bus=2)
LABEL = 'all GPUs (2 x Emulated "E100")'

Run = Callable[..., Printed]


def allreduce() -> Proof:
    part = nccl.part("proofs")
    assert part is not None
    (proof,) = part.proofs(Nccl(), RoleContext(STACK, roles=((cuda, Cuda()), (nccl, Nccl()))))
    assert isinstance(proof, Proof)
    return proof


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("allreduce")
    (folder / "allreduce.cpp").write_text(allreduce().program.source)
    headers = ["-I", str(HERE / "emulated"), "-I", str(CUDA)]
    command = ["g++", "-std=c++20", "-O1", "-pthread", *headers, "-o", "allreduce", "allreduce.cpp"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "allreduce"


@pytest.fixture
def run(program: Path, tmp_path: Path) -> Run:
    """Run it on two cards, with what is otherwise in the environment."""

    def call(status: int = 0, **environment: str) -> Printed:
        bus = tmp_path / "devices"
        bus.mkdir(exist_ok=True)
        arguments = {"bytes": 1 << 20, "rounds": 3, "pci_devices": str(bus)}
        (tmp_path / "arguments.json").write_text(json.dumps(arguments, separators=(",", ":")))
        done = subprocess.run(
            [str(program), "arguments.json"],
            cwd=tmp_path,
            env={"CARDS": "2"} | environment,
            stdout=subprocess.PIPE,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == status, done.stdout
        return read(done.stdout)

    return call


def test_it_is_compiled_with_nccl_and_needs_a_gpu() -> None:
    proof = allreduce()
    assert (proof.key, proof.level, proof.needs_gpu) == ("nccl.allreduce", "full", True)
    assert "libraries=-lnccl\n" in proof.program.compiler[2]
    assert '#include "' not in proof.program.source


def test_two_cards_add_up_rightly_and_the_bandwidth_is_of_all_of_them(run: Run) -> None:
    printed = run()
    assert (printed.ended, printed.errors, printed.broken) == (True, (), "")
    assert [one.number for one in printed.measurements.named("wrong sums")] == [0, 0]
    (speed,) = printed.measurements.named("all-reduce")
    assert speed.device == LABEL
    assert speed.number and (speed.unit, speed.better) == ("GB/s", "more")
    assert allreduce().judge(printed.measurements, EXPECTED) == ()


def test_a_wrong_sum_is_found_on_its_card(run: Run) -> None:
    printed = run(OFF="1")
    (finding,) = allreduce().judge(printed.measurements, EXPECTED)
    assert (finding.sentence, finding.severity) == ("NCCL's sums over the cards are wrong: 1 times", "failed")
    assert finding.device == printed.measurements.named("wrong sums")[1].device


def test_one_card_has_no_bandwidth_and_a_missing_one_is_found(run: Run) -> None:
    printed = run(CARDS="1")
    assert {one.name for one in printed.measurements} == {"cards", "wrong sums"}
    assert [one.sentence for one in allreduce().judge(printed.measurements, EXPECTED)] == ["CUDA finds 1 of 2 cards"]


def test_without_a_card_it_says_so(run: Run) -> None:
    (one,) = run(CARDS="0").measurements
    assert (one.name, one.value, one.device) == ("all-reduce", None, "no GPU")


def test_cards_that_nccl_cannot_join_fail(run: Run) -> None:
    assert run(1, BROKEN="1").errors == ("ncclCommInitAll: unhandled system error",)


DIRECT, BY_MEMORY = "Channel 00/0 : 0[1000] -> 1[9000] via P2P/direct pointer\n", "host memory"
RING = "h:1:2 [0] NCCL INFO Pattern 4, crossNic 0, nChannels 12, {}, type {}, sameChannels 1\n"


@pytest.mark.parametrize(
    ("log", "way"),
    [
        # 2.8 and 2.19 on A100 and H100 with NVLink (NVIDIA/nccl#1197)
        (RING.format("speed 20/20", "NVL/PIX") + "Channel 00 : 0[7000] -> 1[f000] via P2P/direct pointer\n", "NVLink"),
        (RING.format("bw 20.0/20.0", "NVL/PIX") + "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read\n", "NVLink"),
        # two cards below one host bridge, and two that reach each other through it alone
        (RING.format("bw 6.0/6.0", "PHB/PIX") + DIRECT, "PCIe"),
        (RING.format("bw 6.0/6.0", "PHB/PIX") + "Channel 00 : 0[1000] -> 1[9000] via SHM/direct/direct\n", BY_MEMORY),
        (RING.format("speed 9/9", "SYS/PIX") + "Channel 00 : 0[1000] -> 1[9000] via direct shared memory\n", BY_MEMORY),
        (RING.format("bw 3.0/3.0", "SYS/SYS") + "Channel 00/0 : 1[1] -> 0[0] [send] via NET/Socket/0\n", "network"),
        ("h:1:2 [0] NCCL INFO Could not find: No such file\n", "not told"),
        *LOGS,
    ],
)  # fmt: skip
def test_the_way_is_what_nccl_logs(run: Run, log: str, way: str) -> None:
    printed = run(SAYS=log)
    assert [one.value for one in printed.measurements.named("way")] == [way]
    notes = [one.severity for one in allreduce().judge(printed.measurements, EXPECTED)]
    assert notes == (["note"] if way in {"host memory", "network"} else [])

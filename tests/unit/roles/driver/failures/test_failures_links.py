"""The rules of how cards are joined to the host and to each other."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from hostwright.audit.hardware.gpu import Gpu, GpuLink, GpuProcess
from hostwright.audit.hardware.known import NOTHING_KNOWN, KnownCard, KnownHardware, known_card
from hostwright.plan.host.hostfacts import AVX, MEMORY, OS_RELEASE, PCI, PYTHONS, UNAME
from hostwright.plan.model import Answer, Facts
from hostwright.standard.roles.driver.failures.cards.links import ACS
from hostwright.standard.roles.driver.states.gpu_use import AllGpusPresent
from tests.unit.support.gpu_contexts import A100, T4, all_seen, audit_context, cards, line, only, seen, unread
from tests.unit.support.shell import program

CARD_ROW = "0x10de 0x030200 0x1eb8"
#: what tells whether the driver supports a card
HOST = {
    OS_RELEASE: Answer(0, 'ID=ubuntu\nVERSION_ID="20.04"\n'),
    UNAME: Answer(0, "5.4.0-150-generic x86_64\n"),
    AVX: Answer(0, ""),
    PYTHONS: Answer(0, "/usr/bin/python3 3.8\n"),
    MEMORY: Answer(0, "67108864\n"),
}
DEAD = tuple(GpuLink(number, number not in {3, 7}) for number in range(12))
BUSY = replace(T4, performance="P0", slowdowns=(), processes=(GpuProcess(7, "python3", "C"),))


def test_fewer_lanes_are_told() -> None:
    bad = replace(T4, pcie_width=4, pcie_replays=12)
    assert only(audit_context(bad), "pcie-width") == "card 0 (0000:3b:00.0): PCIe x4 of x16, 12 replays"
    assert all_seen(audit_context(replace(T4, pcie_width=0))) == {}
    assert all_seen(audit_context(replace(T4, pcie_width=None))) == {}


def test_an_older_generation_is_told_of_a_card_that_works() -> None:
    assert (
        only(audit_context(BUSY), "pcie-generation") == "card 0 (0000:3b:00.0): PCIe generation 1 of 3 in P0 under load"
    )


@pytest.mark.parametrize(
    "idle",
    [
        replace(BUSY, performance="P8"),
        replace(BUSY, performance=""),
        replace(BUSY, slowdowns=("gpu_idle",)),
        replace(BUSY, processes=()),
        replace(BUSY, processes=(GpuProcess(7, "Xorg", "G"),)),
        replace(BUSY, pcie_generation=3),
        replace(BUSY, pcie_generation_max=None),
    ],
)
def test_an_idle_card_may_save_power(idle: Gpu) -> None:
    assert all_seen(audit_context(idle)) == {}


def test_beside_nvswitches_every_link_counts() -> None:
    good, bad = cards(A100)
    host = audit_context(good, replace(bad, links=DEAD), switches=6)
    assert only(host, "nvlink-down") == "card 1 (0000:3c:00.0): 2 of 12 NVLinks inactive: 3, 7"
    none = tuple(replace(one, active=False) for one in DEAD)
    assert "12 of 12" in only(audit_context(good, replace(bad, links=none), switches=6), "nvlink-down")
    assert all_seen(audit_context(good, bad, switches=6)) == {}


def test_without_nvswitches_only_half_a_bridge_is_a_failure() -> None:
    bare = replace(A100, links=tuple(GpuLink(number, False) for number in range(12)))
    assert all_seen(audit_context(bare)) == {}
    half = replace(A100, links=DEAD)
    assert only(audit_context(half), "nvlink-partial") == "card 0 (0000:3b:00.0): 2 of 12 NVLinks inactive: 3, 7"


@pytest.mark.parametrize("model", ["NVIDIA H100 PCIe", "NVIDIA H100 NVL"])
def test_an_h100_card_has_more_links_than_its_bridges_take(model: str) -> None:
    bridged = tuple(GpuLink(number, number not in {4, 5, 10, 11, 16, 17}) for number in range(18))
    card = replace(A100, model=model)
    assert all_seen(audit_context(replace(card, links=bridged))) == {}
    assert all_seen(audit_context(replace(card, links=bridged[:17]))) == {}
    less = tuple(replace(link, active=link.active and link.number < 12) for link in bridged)
    assert "10 of 18" in only(audit_context(replace(card, links=less)), "nvlink-partial")
    assert "6 of 18" in only(
        audit_context(replace(A100, model="NVIDIA H100 80GB HBM3", links=bridged)), "nvlink-partial"
    )
    assert "6 of 18" in only(audit_context(replace(card, links=bridged), switches=4), "nvlink-down")


@pytest.mark.parametrize("switches", [0, 6])
def test_in_mig_mode_nothing_uses_nvlinks(switches: int) -> None:
    split = replace(A100, mig=True, mig_instances=7)
    assert all_seen(audit_context(A100, replace(split, links=DEAD), switches=switches)) == {}


def test_a_card_that_the_driver_does_not_bring_up_is_told() -> None:
    told = only(audit_context(*cards(T4), on_bus=3), "gpu-missing")
    assert told.startswith("3 NVIDIA GPUs on the PCI bus, 2 in nvidia-smi; it lists card 0 (0000:3b:00.0), card 1")
    assert (
        only(audit_context(on_bus=1), "gpu-missing") == "1 NVIDIA GPUs on the PCI bus, 0 in nvidia-smi; it lists none"
    )
    assert unread("gpu-missing", audit_context(smi=Answer(9, ""), on_bus=2))


def test_a_card_that_is_not_brought_up_is_told_by_its_slot_and_what_was_there() -> None:
    """lyulyul/shine-cluster#172: it answers ff to every read, and lspci has it at 3d:00.0."""
    bus = "".join(f"gpu /sys/devices/pci0000:3a/0000:3a:00.0/0000:{slot}:00.0\n" for slot in ("3b", "3d"))
    host = audit_context(T4, on_bus=2, answers={ACS: Answer(0, f"{bus}virtual\n")})
    first = "2 NVIDIA GPUs on the PCI bus, 1 in nvidia-smi without 0000:3d:00.0; it lists card 0 (0000:3b:00.0)"
    assert only(host, "gpu-missing") == first
    known = replace(host, known=KnownHardware(None, (GONE,), 2))
    assert seen("gpu-missing", known)[1:] == ["not in nvidia-smi: 0000:3d:00.0: Tesla T4, serial 133, GPU-2"]


def test_missing_card_explained_by_another_rule_is_not_repeated() -> None:
    failed = line("NVRM: GPU 0000:3d:00.0: RmInitAdapter failed! (0x26:0xffff:1290)")
    assert all_seen(audit_context(*cards(T4), log=[failed], on_bus=3)) == {}
    told = only(audit_context(*cards(T4), log=[failed], on_bus=4), "gpu-missing")
    assert told.startswith("4 NVIDIA GPUs on the PCI bus, 2 in nvidia-smi, 1 could not be started; it lists card 0")
    newer = {PCI: Answer(0, f"{CARD_ROW}\n" * 2 + "0x10de 0x030200 0x2331\n"), **HOST}
    assert all_seen(audit_context(*cards(T4), answers=newer)) == {}


def test_host_without_a_card_that_wants_the_driver_is_reported() -> None:
    assert only(audit_context(smi=Answer(127, ""), on_bus=0), "no-gpu") == "0 NVIDIA GPUs on the PCI bus"
    assert all_seen(audit_context(smi=Answer(127, ""), on_bus=0, roles=("base",))) == {}


@pytest.mark.parametrize(
    "answer",
    [
        Answer(1, ""),
        Answer(0, "0x10de what 0x1eb8\n"),
        Answer(0, "0x10de 0x030200 0x1eb8\nwhat\n"),
        Answer(0, "0x10de 0x030200 0x1eb8\n", truncated=True),
    ],
)
def test_a_bus_that_cannot_be_read_is_no_finding(answer: Answer) -> None:
    host = audit_context(A100, answers={PCI: answer})
    for name in ("no-gpu", "gpu-missing", "nvlink-down", "nvlink-partial"):
        assert unread(name, host)


def test_a_silent_nvidia_smi_is_no_finding() -> None:
    host = audit_context(smi=Answer(124, ""), switches=6)
    for name in ("pcie-width", "pcie-generation", "nvlink-down", "nvlink-partial", "gpu-missing"):
        assert unread(name, host)


PATHS = (
    "gpu /sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0\n"
    "gpu /sys/devices/pci0000:3a/0000:3a:02.0/0000:3c:00.0\n"
)  # fmt: skip


def test_a_bridge_above_a_card_that_checks_the_source_is_told() -> None:
    answer = Answer(0, f"{PATHS}acs 0000:3a:02.0\nacs 0000:00:01.0\n")
    told = only(audit_context(*cards(T4), answers={ACS: answer}), "acs-on")
    assert told == "0000:3a:02.0: ACSCtl: SrcValid+, above an NVIDIA GPU"


@pytest.mark.parametrize(
    "text",
    ["virtual\n", PATHS, f"{PATHS}acs 0000:00:01.0\n", f"{PATHS[:54]}acs 0000:3a:00.0\n", "garbage\x00\nacs\ngpu\n"],
)
def test_acs_elsewhere_or_above_one_card_alone_is_no_finding(text: str) -> None:
    assert all_seen(audit_context(*cards(T4), answers={ACS: Answer(0, text)})) == {}


def test_acs_cannot_be_told_without_lspci() -> None:
    assert unread("acs-on", audit_context(T4, answers={ACS: Answer(1, PATHS)}))
    assert unread("acs-on", replace(audit_context(T4), facts=Facts({})))


LSPCI = r"""cat <<'X'
0000:3a:00.0 PCI bridge: Intel Corporation Sky Lake-E PCI Express Root Port A
	Capabilities: [110 v1] Access Control Services
		ACSCap:	SrcValid+ TransBlk+
		ACSCtl:	SrcValid- TransBlk-

0000:3a:02.0 PCI bridge: Intel Corporation Sky Lake-E PCI Express Root Port C
		ACSCap:	SrcValid+ TransBlk+
		ACSCtl:	SrcValid+ TransBlk- ReqRedir+
X"""


class Machine:
    """A host whose PCI bus stands in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        program(folder / "bin", "systemd-detect-virt", "exit 1")
        program(folder / "bin", "lspci", LSPCI)
        (folder / "cpuinfo").write_text("flags : fpu avx\n")
        (folder / "bus").mkdir()

    def card(self, bridge: str, address: str, kind: str = "0x030200") -> None:
        path = self.folder / "pci0000:3a" / bridge / address
        path.mkdir(parents=True)
        (path / "vendor").write_text("0x10de\n")
        (path / "class").write_text(f"{kind}\n")
        (self.folder / "bus" / address).symlink_to(path)

    def ask(self) -> Answer:
        script = ACS.script.replace("/proc/cpuinfo", f"{self.folder}/cpuinfo")
        script = script.replace("/sys/bus/pci/devices", f"{self.folder}/bus")
        env = {"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", "LC_ALL": "C"}
        done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=False, env=env)
        return Answer(done.returncode, done.stdout)

    def seen(self) -> list[str]:
        return seen("acs-on", audit_context(*cards(T4), answers={ACS: self.ask()}))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_the_probe_finds_the_bridge(machine: Machine) -> None:
    machine.card("0000:3a:00.0", "0000:3b:00.0")
    machine.card("0000:3a:02.0", "0000:3c:00.0")
    assert machine.seen() == ["0000:3a:02.0: ACSCtl: SrcValid+, above an NVIDIA GPU"]


def test_the_probe_asks_lspci_only_for_two_cards(machine: Machine) -> None:
    program(machine.folder / "bin", "lspci", "exit 1")
    assert machine.ask() == Answer(0, "")
    machine.card("0000:3a:00.0", "0000:3b:00.0")
    machine.card("0000:3a:00.0", "0000:3b:00.1", kind="0x040300")
    assert machine.ask().ok
    machine.card("0000:3a:02.0", "0000:3c:00.0")
    assert machine.ask().status == 1


def test_the_probe_leaves_virtual_machines_alone(machine: Machine) -> None:
    machine.card("0000:3a:00.0", "0000:3b:00.0")
    machine.card("0000:3a:02.0", "0000:3c:00.0")
    (machine.folder / "cpuinfo").write_text("flags : fpu hypervisor avx\n")
    assert machine.ask().text.splitlines()[2:] == ["virtual"]
    (machine.folder / "cpuinfo").write_text("flags : fpu\n")
    program(machine.folder / "bin", "systemd-detect-virt", "exit 0")
    assert machine.ask().text.splitlines()[2:] == ["virtual"]
    assert machine.seen() == []


GONE = KnownCard("0000:3d:00.0", "Tesla T4", "133", "GPU-2")
FOUR = KnownHardware(4, (GONE,), 4)


def test_fewer_cards_than_the_inventory_says_are_told_with_the_missing_one() -> None:
    one = replace(audit_context(T4), known=FOUR)
    assert seen("gpus-fewer", one) == [
        "1 of the 4 GPUs of the inventory (hostwright_gpus) are on the PCI bus",
        "gone since an earlier audit: card at 0000:3d:00.0: Tesla T4, serial 133, GPU-2",
    ]
    slots = replace(audit_context(T4, answers={ACS: Answer(0, "gpu /sys/devices/0000:3b:00.0\n")}), known=FOUR)
    assert seen("gpus-fewer", slots)[1] == "on the bus: 0000:3b:00.0"
    assert seen("gpus-fewer-than-before", one) == []
    assert all_seen(replace(audit_context(T4), known=KnownHardware(1, (GONE,), 4))) == {}  # taken out for good


def test_fewer_cards_than_before_are_told_where_the_inventory_does_not_say() -> None:
    one = replace(audit_context(T4), known=replace(FOUR, gpus=None))
    assert seen("gpus-fewer-than-before", one)[0] == "1 NVIDIA GPUs on the PCI bus, 4 before"
    assert seen("gpus-fewer", one) == []


def test_a_card_that_another_one_has_replaced_is_told_with_both_numbers() -> None:
    here = replace(audit_context(T4), known=NOTHING_KNOWN)
    now = known_card(T4)
    old = replace(now, serial="132222222222", uuid="GPU-0")
    replaced = replace(here, known=KnownHardware(None, (now, old), 1))
    (line,) = seen("gpu-replaced", replaced)
    assert line == "card at 0000:3b:00.0: serial 132222222222, GPU-0 → GPU-1"
    assert seen("gpu-replaced", here) == []
    assert seen("gpu-replaced", replace(here, known=KnownHardware(None, (now, GONE), 2))) == []
    moved = replace(here, known=KnownHardware(None, (replace(now, bus="0000:af:00.0"), old), 2))
    assert seen("gpu-replaced", moved) == seen("gpu-replaced", replaced)


def test_a_host_without_any_card_names_those_that_it_had() -> None:
    none = replace(audit_context(on_bus=0), known=FOUR)
    assert seen("no-gpu", none)[1:] == [
        "gone since an earlier audit: card at 0000:3d:00.0: Tesla T4, serial 133, GPU-2"
    ]
    assert seen("gpus-fewer", none) == []


def test_missing_cards_are_counted_where_the_others_cannot_be_read() -> None:
    broken = replace(audit_context(smi=Answer(9, ""), on_bus=3), known=FOUR)
    assert len(seen("gpus-fewer", broken)) == 1


def test_a_plan_notes_missing_cards_and_plans_nothing() -> None:
    state = AllGpusPresent(4)
    facts = Facts({PCI: Answer(0, f"{CARD_ROW}\n" * 3)})
    assert state.plan(facts) is None
    assert state.notes(facts)[0].startswith("3 of 4 GPUs of the inventory (hostwright_gpus)")
    assert AllGpusPresent(3).notes(facts) == ()

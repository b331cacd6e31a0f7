"""Faulty links of cards to the host or to each other, and hosts with missing links."""

from __future__ import annotations

from dataclasses import replace

from hostwright.audit.hardware.known import KnownCard, KnownHardware
from hostwright.standard.roles.driver.failures.cards.links import ACS
from tests.lab.audit.made_up_cards import A100_MIG, NO_REPORT, REPORT
from tests.lab.audit.made_up_case import Line, log, made_up, says, together
from tests.lab.audit.made_up_smi import (
    A100_PCIE,
    H100,
    T4,
    V100,
    fails,
    hgx,
    nvlinks,
    on_bus,
    own,
    put,
    sample,
    times,
    two_cards,
    whole,
    works,
)

LINK = "pci/pci_gpu_link_info"
WIDTH = f"{LINK}/link_widths/current_link_width"
GENERATION = f"{LINK}/pcie_gen/current_link_gen"
TWO_PATHS = (
    "gpu /sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0\n"
    "gpu /sys/devices/pci0000:3a/0000:3a:02.0/0000:3c:00.0\n"
)  # fmt: skip
V100_SXM2 = "v100-sxm2-450.80.02"
SOUND = times(2)  #: the samples' second cards are faulty, so both copy the first
#: like the clean host's card, with another UUID
OURS = KnownCard("0000:3b:00.0", "Tesla T4", uuid="GPU-3b", memory="15109", ecc="on", pcie="16", generation="3")
SAME = own(put({"uuid": OURS.uuid}))
GONE = KnownCard("0000:3d:00.0", "Tesla T4", "0320120034567", "GPU-3d")
NOBODY = fails(6, "No devices were found\n")


def cannot_start(address: str) -> tuple[Line, ...]:
    """Return the driver's message about a card that fails to start when a program opens it."""
    return (
        (29, f"NVRM: GPU {address}: RmInitAdapter failed! (0x26:0xffff:1290)"),
        (29, f"NVRM: GPU {address}: rm_init_adapter failed, device minor number 1"),
    )


LINKS = (
    made_up("eight lanes", sample("t4-470.182.03", T4), "pcie-width"),
    made_up("one of eight cards in four lanes", own(times(8), works(), put({WIDTH: "4x"}, 5)), "pcie-width"),
    made_up("an old generation under load", own(works(), put({GENERATION: "1"})), "pcie-generation"),
    made_up("an NVLink to an NVSwitch down", hgx(dead={3: (7,)}), "nvlink-down"),
    made_up("all NVLinks of a card down", hgx(dead={6: tuple(range(12))}), "nvlink-down"),
    made_up("NVLinks of V100 partly down", together(sample(V100_SXM2, V100, SOUND), nvlinks(6, {0: (3, 5), 1: (1,)})),
            "nvlink-partial"),
    made_up("one of three bridges not seated",
            together(sample(A100_MIG, A100_PCIE, whole, SOUND), nvlinks(12, {0: (8, 9, 10, 11), 1: (8, 9, 10, 11)})),
            "nvlink-partial"),
    made_up("two of three bridges of an H100 PCIe, under a driver of its own",
            together(sample(A100_MIG, A100_PCIE, whole, SOUND, put({"product_name": "NVIDIA H100 PCIe"})),
                     nvlinks(18, {0: (4, 5, 10, 11, 12, 13, 14, 15, 16, 17)})), "nvlink-partial"),
    made_up("ACS above two cards", together(two_cards(), says(ACS, f"{TWO_PATHS}acs 0000:3a:02.0\n")), "acs-on"),
    made_up("a card that the driver does not bring up", together(own(), on_bus(T4, T4)), "gpu-missing"),
    made_up("a card that the driver cannot start", together(own(), on_bus(T4, T4), log(*cannot_start("0000:41:00.0"))),
            "gpu-init-failed"),
    made_up("two cards gone, of which one cannot be started",
            together(own(), on_bus(T4, T4, T4), log(*cannot_start("0000:41:00.0"))), "gpu-init-failed gpu-missing"),
    made_up("the only card cannot be started", together(NOBODY, log(*cannot_start("0000:3b:00.0"))),
            "gpu-init-failed", REPORT),
    made_up("a card that this driver does not know beside one that it does", together(own(), on_bus(T4, H100)),
            "gpu-unsupported"),
    made_up("one of four cards gone", SAME, "gpus-fewer", known=KnownHardware(4, (OURS, GONE), 4)),
    made_up("one of four cards gone, and its slot and serial are not known", own(), "gpus-fewer",
            known=KnownHardware(4)),
    made_up("one of two cards gone since an earlier audit", SAME, "gpus-fewer-than-before",
            known=KnownHardware(None, (OURS, GONE), 2)),
    made_up("one of two cards taken out, as the inventory says", SAME, known=KnownHardware(1, (OURS, GONE), 2)),
    made_up("a card replaced by another one", own(), "gpu-replaced",
            known=KnownHardware(None, (OURS, replace(OURS, uuid="GPU-0")), 1)),
    made_up("half the memory of an earlier audit", own(put({"uuid": OURS.uuid, "fb_memory_usage/total": "7680 MiB"})),
            "gpu-less-than-before", known=KnownHardware(1, (OURS,), 1)),
    made_up("ECC switched on, which takes memory", own(put({"uuid": OURS.uuid, "fb_memory_usage/total": "14000 MiB"})),
            known=KnownHardware(1, (replace(OURS, ecc="off"),), 1)),
    made_up("a slot of eight lanes, which had sixteen",
            own(put({"uuid": OURS.uuid, f"{LINK}/link_widths/max_link_width": "8x", WIDTH: "8x"})),
            "gpu-less-than-before", known=KnownHardware(1, (OURS,), 1)),
    made_up("a module of the host's memory gone", lambda facts: {}, "memory-less-than-before",
            known=KnownHardware(memory_gib=2**20)),
    made_up("no card at all", together(NOBODY, on_bus()), "no-gpu", NO_REPORT),
)  # fmt: skip

"""Healthy hosts that look unusual: an audit must report nothing."""

from __future__ import annotations

from hostwright.standard.roles.driver.failures.cards.links import ACS
from hostwright.standard.roles.driver.nvsmi.report import NVLINKS
from tests.lab.audit.made_up_cards import A100_MIG, DOUBLE, ECC, LIFE, NAMES, ROWS, SINGLE
from tests.lab.audit.made_up_case import log, made_up, says, together, xid
from tests.lab.audit.made_up_links import GENERATION, SOUND, TWO_PATHS, V100_SXM2
from tests.lab.audit.made_up_smi import (
    A100,
    A100_PCIE,
    A6000,
    RTX3090,
    V100,
    blank,
    hgx,
    idle,
    nvlinks,
    own,
    put,
    reasons,
    sample,
    times,
    two_cards,
    whole,
    works,
)

#: links of an H100 PCIe's 18 that have no bridge, by public reports of healthy hosts
NO_BRIDGE = (4, 5, 10, 11, 16, 17)
NO_LINK = "NVLink information as all links are inActive"
RUDE = "NVRM: Xid 79 GPU is lost, infoROM is corrupted"

WELL = (
    made_up("nothing made up but the kernel log", log()),
    made_up("eight cards at work", own(times(8), works())),
    made_up("an idle A100 whose PCIe generation dropped",
            sample(A100_MIG, A100, whole, idle(), put({GENERATION: "1"}))),
    made_up("a card with N/A everywhere", own(blank(keep=NAMES))),
    made_up("MIG with instances", sample(A100_MIG, A100, times(2))),
    made_up("MIG to be switched on with the next reset", sample(A100_MIG, A100, whole)),
    made_up("GeForce for a display: no ECC, no rows",
            sample("rtx3090-525.147.05", RTX3090, put({"persistence_mode": "Enabled"}))),
    made_up("a workstation's card, delivered with ECC off", sample("rtxa6000-515.65.01", A6000)),
    made_up("a card at work, as R580 words it",
            sample("b200-580.105.08", A100,
                   put({"product_name": "NVIDIA A100-SXM4-80GB", "persistence_mode": "Enabled"}))),
    made_up("as many rows as are allowed", sample(A100_MIG, A100, whole, put({f"{ROWS}/remapped_row_unc": "512"}))),
    made_up("ten pages, and corrected errors",
            own(put({SINGLE: "8", DOUBLE: "2", f"{ECC}/dram_correctable": "19000"}),
                put({f"{LIFE}/sram_correctable": "10000"}))),
    made_up("uncorrected errors in the past of a card", own(put({f"{LIFE}/dram_uncorrectable": "4"}))),
    made_up("at work, held by its power limit",
            own(works(), reasons("sw_power_cap", "applications_clocks_setting", "sync_boost"),
                put({"temperature/gpu_temp": "92 C"}))),
    made_up("two models with a VBIOS each",
            two_cards(put({"product_name": "Tesla T10", "vbios_version": "90.04.21.00.01"}, 1))),
    made_up("HGX as it should be", hgx()),
    made_up("HGX with a card in MIG mode, whose NVLinks Fabric Manager switches off",
            hgx(put({"mig_mode/current_mig": "Enabled", "mig_devices/mig_device/index": "0"}, 2),
                dead={2: tuple(range(12))})),
    made_up("H100 PCIe with three bridges, as far as the driver's branch allows to say so",
            together(sample(A100_MIG, A100_PCIE, whole, SOUND, put({"product_name": "NVIDIA H100 PCIe"})),
                     nvlinks(18, {0: NO_BRIDGE, 1: NO_BRIDGE}))),
    made_up("A100 PCIe without a bridge",
            together(sample(A100_MIG, A100_PCIE, whole, SOUND),
                     nvlinks(12, {0: tuple(range(12)), 1: tuple(range(12))}))),
    made_up("V100 with all links up", together(sample(V100_SXM2, V100, SOUND), nvlinks(6))),
    made_up("cards without NVLink",
            together(two_cards(), says(NVLINKS, f"NVML: Unable to retrieve {NO_LINK}\n"))),
    made_up("ACS above other devices", together(two_cards(), says(ACS, f"{TWO_PATHS}acs 0000:00:01.0\n"))),
    made_up("ACS above one card", says(ACS, f"{TWO_PATHS.splitlines()[0]}\nacs 0000:3a:00.0\n")),
    made_up("Xids of more than a week ago",
            log(xid(63, 192), xid(79, 192, "GPU has fallen off the bus."), xid(31, 170), boot_h=200)),
    made_up("test messages and comments", log(xid(106, 1), xid(107, 1), xid(154, 1))),
    made_up("a program called like an Xid",
            own(works(), put({"processes/process_info/process_name": RUDE}))),
    made_up("lines of the module's that tell no failure",
            log((29, "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  470.182.03"),
                (3, "nvidia-uvm: Loaded the UVM driver, major device number 510."))),
)  # fmt: skip

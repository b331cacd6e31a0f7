"""Driver faults on real hardware: NVSwitches, an unsupported card, other programs."""

from __future__ import annotations

from hostwright.standard.roles.driver.failures.load import FIRMWARE
from hostwright.standard.roles.driver.failures.units import UNITS
from hostwright.standard.roles.driver.states.fabric import FABRIC_MANAGER
from tests.lab.audit.made_up_cards import REPORT
from tests.lab.audit.made_up_case import log, made_up, says, together
from tests.lab.audit.made_up_links import NOBODY
from tests.lab.audit.made_up_smi import T4, device_files, fabric_manager, hgx, on_bus, own, put, times

NOTHING = f"{FABRIC_MANAGER}: detected NV_WARN_NOTHING_TO_DO from the driver\n"
OTHER = "470.256.02"  #: another version of the driver's branch
JOINED = {"fabric/state": "Completed", "fabric/status": "Success", "fabric/cliqueId": "1"}
MISMATCH = (
    (2, f"NVRM: API mismatch: the client has the version {OTHER}, but"),
    (2, "NVRM: this kernel module has the version 470.182.03.  Please"),
)

DRIVER = (
    made_up("NVSwitches without a running Fabric Manager", together(hgx(), fabric_manager("inactive")),
            "fabric-not-ready"),
    made_up("Fabric Manager of another version", together(hgx(), fabric_manager(version=OTHER)),
            "fabric-manager-version"),
    made_up("Fabric Manager without NVSwitches", together(fabric_manager("failed"), says(UNITS.journals, NOTHING)),
            "fabric-nothing-to-do"),
    made_up("cards that have not joined the fabric",
            hgx(put({"fabric/state": "In Progress", "fabric/status": "N/A"}, 3)), "fabric-not-joined"),
    made_up("cards in two cliques of the fabric", hgx(put(JOINED), put({"fabric/cliqueId": "2"}, 7)), "fabric-apart"),
    made_up("an open module without its firmware",
            says(FIRMWARE, "nvidia/470.182.03/gsp_ga10x.bin\n"), "gsp-firmware-missing"),
    made_up("a card that the driver does not find", together(NOBODY, on_bus(T4)), "no-device", REPORT),
    made_up("cards without their device files",
            together(own(times(4)), device_files(1, driven=4)), "device-files-missing"),
    made_up("a container with the libraries of another driver", log(*MISMATCH), "foreign-driver-library"),
)  # fmt: skip

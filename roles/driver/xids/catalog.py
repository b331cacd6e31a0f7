"""Meanings of Xid numbers and the actions that NVIDIA recommends, as data.

Numbers and actions come from NVIDIA's Xid catalog (docs.nvidia.com/deploy/xid-errors, "Analyzing Xid Errors with the
Xid Catalog", column "Immediate Action"); the words are our own. Unused numbers are left out, unless older GPUs report
them and Azure fails a node for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto


class Action(Enum):
    """Actions of NVIDIA's Xid catalog, by the catalog's names. Each value is a plain sentence."""

    IGNORE = "no action needed for this Xid alone"
    RESTART_APP = "start the program again"
    RESET_GPU = "drain the host and reset the card (nvidia-smi --gpu-reset -i N), or reboot"
    RESTART_BM = "drain the host and cycle its power"
    RESTART_VM = "restart the virtual machine"
    CHECK_MECHANICALS = "drain the host, cut its power, and check the card's seat and power cables"
    UPDATE_SWFW = "update driver and firmware"
    CONTACT_SUPPORT = "run NVIDIA's diagnostics (dcgmi diag -r 3), and contact the vendor if it recurs"
    WORKFLOW_XID_45 = "follow the other Xid of this card; if there is none, restart Fabric Manager if it runs"
    WORKFLOW_XID_48 = "drain the host and reset the card; if 64 comes with it or it recurs, have the card replaced"
    WORKFLOW_NVLINK_ERR = "drain the host and reset all its cards; if it recurs, have bridge or board checked"
    WORKFLOW_NVLINK5_ERR = "drain the host and follow NVIDIA's NVLink 5 table with the numbers in the line"
    CHECK_UVM = "check the log for errors of nvidia-uvm at the same time"
    XID_154 = "perform the recovery action in the line"
    UNSTATED = "NVIDIA names no action"


class Concern(Enum):
    """Scope of an Xid: the host, a program, or nothing."""

    NODE = auto()  #: an Xid that concerns the host. The host must not run work before a repair.
    PROGRAM = auto()  #: an Xid that concerns one program, or nothing yet
    NOBODY = auto()  #: a test message, or a comment on another Xid


@dataclass(frozen=True, slots=True)
class Xid:
    """Row of NVIDIA's Xid catalog: meaning of an Xid, and recommended action."""

    meaning: str
    action: Action
    concern: Concern


#: Xids for which Azure's node check fails a node (Azure/azurehpc-health-checks, customTests/azure_gpu_xid.nhc)
AZURE_FAILS_A_NODE = frozenset((48, 56, 57, 58, 62, 63, 64, 65, 68, 69, 73, 74, 79, 80, 81, 92, 119, 120))
POWER_CABLE = 54
OFF_THE_BUS = 79
MEMORY_RETIRED = 63
NVLINK5 = range(144, 151)
RECOVERY_CHANGED = 154
_COMMENTS = frozenset((106, 107, RECOVERY_CHANGED))
_FOR_THE_NODE = frozenset(
    (
        Action.RESET_GPU,
        Action.RESTART_BM,
        Action.RESTART_VM,
        Action.CHECK_MECHANICALS,
        Action.WORKFLOW_XID_48,
        Action.WORKFLOW_NVLINK_ERR,
        Action.WORKFLOW_NVLINK5_ERR,
    )
)

_ROWS: tuple[tuple[tuple[int, ...], Action, str], ...] = (
    ((8,), Action.RESTART_APP, "work on the GPU hung until the driver ended it"),
    ((11, 25, 32), Action.RESTART_APP, "a program sent invalid commands to the GPU"),
    ((13,), Action.RESTART_APP, "an exception in the compute engine, usually a program's access out of bounds"),
    ((31,), Action.RESTART_APP, "a page fault, usually a program's access to an invalid address"),
    ((37, 38), Action.IGNORE, "an error of the firmware that switches contexts"),
    ((39, 40, 41, 70, 71, 72, 75, 76, 77, 85, *range(126, 136)), Action.RESTART_APP, "an error of a copy engine"),
    ((43,), Action.IGNORE, "a program's work was ended because of its own error"),
    ((44,), Action.IGNORE, "an error while switching contexts"),
    ((45,), Action.WORKFLOW_XID_45, "a program's work was removed because of an earlier error"),
    ((46,), Action.RESET_GPU, "the GPU stopped processing"),
    ((47, 65, 73, 142), Action.CONTACT_SUPPORT, "an error of a video encoder"),
    ((48,), Action.WORKFLOW_XID_48, "a memory error that ECC could not correct"),
    ((POWER_CABLE,), Action.CHECK_MECHANICALS, "the card's auxiliary power is not connected"),
    ((56,), Action.CONTACT_SUPPORT, "an error of the display engine"),
    ((57,), Action.CONTACT_SUPPORT, "the link to the card's memory could not be set up"),
    ((58,), Action.CONTACT_SUPPORT, "the link to the card's memory is unstable"),
    ((60,), Action.RESTART_APP, "an exception of the video processor"),
    ((61,), Action.CONTACT_SUPPORT, "the card's internal controller stopped at a breakpoint"),
    ((62,), Action.RESET_GPU, "the card's internal controller halted"),
    ((MEMORY_RETIRED,), Action.IGNORE, "a memory page was retired, or a row remapped, from the next reset on"),
    ((64,), Action.RESET_GPU, "a memory page could not be retired, or a row not remapped"),
    ((66, 67), Action.IGNORE, "the driver made an invalid access"),
    ((68, 83, 84, 88, 89, 96, 97, 98), Action.RESTART_APP, "an error of a video decoder"),
    ((69,), Action.RESTART_APP, "a program used the compute engine in an unsupported way"),
    ((74,), Action.WORKFLOW_NVLINK_ERR, "an error of an NVLink"),
    ((78,), Action.UPDATE_SWFW, "a vGPU could not be started"),
    ((OFF_THE_BUS,), Action.RESTART_BM, "the GPU does not answer on PCIe any more"),
    ((80,), Action.RESTART_APP, "commands arrived at the GPU corrupted"),
    ((81,), Action.CONTACT_SUPPORT, "an error of the VGA part"),
    ((82, *range(99, 106)), Action.RESTART_APP, "an error of a JPEG decoder"),
    ((86, 139), Action.RESTART_APP, "an error of the optical flow engine"),
    ((92,), Action.IGNORE, "a high rate of memory errors that ECC corrected"),
    ((93,), Action.IGNORE, "the infoROM was written more often than specified"),
    ((94,), Action.RESTART_APP, "a memory error that ended one program and affected no other"),
    ((95,), Action.RESET_GPU, "a memory error that could not be contained to one program"),
    ((106, 107), Action.IGNORE, "a test message of the management bus"),
    ((109,), Action.RESET_GPU, "contexts could not be switched in time"),
    ((110,), Action.RESET_GPU, "a security fault"),
    ((119,), Action.RESET_GPU, "the GPU's system processor (GSP) did not respond in time"),
    ((120,), Action.RESET_GPU, "an error of the GPU's system processor (GSP)"),
    ((121,), Action.IGNORE, "an error of the link between the chips, which was corrected"),
    ((136,), Action.RESET_GPU, "the training of an NVLink failed"),
    ((137,), Action.IGNORE, "an invalid access over NVLink"),
    ((140,), Action.RESET_GPU, "a memory error from which the driver did not recover"),
    ((141,), Action.IGNORE, "an error of CUDA's fast path"),
    ((143,), Action.RESET_GPU, "the GPU could not be initialised"),
    (tuple(NVLINK5), Action.WORKFLOW_NVLINK5_ERR, "an error of an NVLink of the fifth generation"),
    ((151,), Action.RESTART_VM, "keys of confidential computing could not be changed"),
    ((152, 153), Action.IGNORE, "an error of the deep learning accelerator"),
    ((RECOVERY_CHANGED,), Action.XID_154, "the recovery action of the GPU has changed"),
    ((155,), Action.RESET_GPU, "an NVLink error found by software"),
    ((156,), Action.RESET_GPU, "a part of the GPU is retired"),
    ((157,), Action.IGNORE, "a part of the GPU could not be retired"),
    ((158,), Action.RESET_GPU, "a fatal timeout of the GPU"),
    ((159,), Action.CHECK_UVM, "an error of the link to the processor"),
    ((160, 161), Action.IGNORE, "a memory channel is, or could not be, retired"),
    ((162, 163, 164, 165), Action.UNSTATED, "a change in the power smoothing circuit"),
    ((166, 170), Action.UNSTATED, "an error of an encrypted NVLink"),
    ((167,), Action.UNSTATED, "a fatal timeout of PCIe"),
    ((168,), Action.UNSTATED, "errors in protected memory reduced its capacity"),
    ((169,), Action.UNSTATED, "the card's security controller halted"),
    ((171, 172), Action.UNSTATED, "details of a memory error that ECC could not correct"),
)


def _concern(number: int, action: Action) -> Concern:
    if number in _COMMENTS:
        return Concern.NOBODY
    if action in {Action.IGNORE, Action.RESTART_APP}:
        return Concern.PROGRAM  # NVIDIA recommends no repair for this Xid, even if Azure fails the node
    return Concern.NODE if number in AZURE_FAILS_A_NODE or action in _FOR_THE_NODE else Concern.PROGRAM


CATALOG = {
    number: Xid(meaning, action, _concern(number, action)) for numbers, action, meaning in _ROWS for number in numbers
}
UNKNOWN = Xid("this Xid is not in the catalog", Action.CONTACT_SUPPORT, Concern.PROGRAM)


def meaning_of(number: int) -> Xid:
    """Return the catalog's row for the Xid ``number``. An unknown Xid counts as concerning one program."""
    return CATALOG.get(number, UNKNOWN)

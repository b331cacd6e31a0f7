"""What a rebuild does about each known failure, as data. Names are those of ``hostwright.audit.failures.SIGNED``.

Grave failures that ``invoke provision`` mends are mended by repair, and need no row here unless another way is
sounder. Those that are not grave want attention and move nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hostwright.hardware.xid_catalog import Action
from hostwright.rebuild.values import Way


@dataclass(frozen=True, slots=True)
class Cure:
    """What a failure of the hardware asks for. ``gently``: a reboot does as well as cutting the power.

    ``tries`` is after how many power cycles the same failure is the hardware's for good; 0: at once. ``by_driver``:
    a driver that is not as the stack wants it shows the same, so it tells of the hardware only where the driver is.
    """

    way: Way
    source: str
    gently: bool = False
    tries: int = 2  #: leptonai/gpud: an Xid that asks for a reboot, again after two of them, wants an inspection
    by_driver: bool = False


GPUD = "leptonai/gpud, xid: the same after two reboots wants the hardware inspected"
NVIDIA = "NVIDIA GPU memory error management, RMA criteria"
REBOOT = "the failure's own cure: reset the card or reboot"
CYCLE = "the failure's own cure: cycle the power, then have the card replaced"

_REPLACE: Way = "hand over"

#: failures that are, or may be, the hardware's
HARDWARE: Mapping[str, Cure] = {
    "row-remap-failed": Cure(_REPLACE, NVIDIA, tries=0),
    "rows-remapped-many": Cure(_REPLACE, "Azure/azurehpc-health-checks azure_gpu_ecc.nhc, NHC2007", tries=0),
    "sram-threshold-exceeded": Cure(_REPLACE, NVIDIA, tries=0),
    "power-cable": Cure(_REPLACE, "NVIDIA's Xid catalog: CHECK_MECHANICALS", tries=0),
    "no-gpu": Cure(_REPLACE, "Azure/azurehpc-health-checks azure_gpu_count.nhc", tries=0),
    "mounted-read-only": Cure(
        _REPLACE, "ext4(5), errors=remount-ro: the disk failed, and a new system on it would too", tries=0
    ),
    "gpu-missing": Cure("power cycle", CYCLE, tries=1, by_driver=True),
    "no-device": Cure("power cycle", CYCLE, tries=1, by_driver=True),
    "gpu-init-failed": Cure("power cycle", CYCLE, tries=1, by_driver=True),
    "inforom-corrupted": Cure("power cycle", CYCLE, tries=1),
    "gpu-interrupts": Cure("power cycle", CYCLE, tries=1),
    "nvlink-down": Cure("power cycle", CYCLE, tries=1),
    "gpu-lost": Cure("power cycle", f"NVIDIA's Xid catalog: 79 RESTART_BM; {GPUD}"),
    "nvidia-smi-silent": Cure("power cycle", "the failure's own cure: a reboot may hang as well, so cut the power"),
    "xid-fatal": Cure("power cycle", f"NVIDIA's Xid catalog; {GPUD}", gently=True),  # each number: XID_CURES
    "gpu-needs-reset": Cure("power cycle", REBOOT, gently=True),
    "row-remap-pending": Cure("power cycle", REBOOT, gently=True),
    "page-retirement-pending": Cure("power cycle", REBOOT, gently=True),
    "ecc-uncorrected": Cure("power cycle", REBOOT, gently=True),
}

#: what NVIDIA's catalog asks for an Xid → what a rebuild does about it; every other action that still stands on a host
#: that is to be rebuilt is answered by a reboot, which ends its report
XID_CURES: Mapping[Action, Cure] = {
    Action.RESTART_BM: Cure("power cycle", f"NVIDIA's Xid catalog: RESTART_BM; {GPUD}"),
    Action.CHECK_MECHANICALS: Cure(_REPLACE, "NVIDIA's Xid catalog: CHECK_MECHANICALS", tries=0),
}
XID_ELSE = Cure("power cycle", f"NVIDIA's Xid catalog: reset the GPU; {GPUD}", gently=True)
#: Xids that mean a broken card when both stand: an error that ECC did not correct, and no spare row for it
REPLACE_TOGETHER = frozenset((48, 64))
TOGETHER = Cure(_REPLACE, "NVIDIA's Xid catalog: WORKFLOW_XID_48, with 64 the card is replaced", tries=0)

#: a driver or libraries of several kinds in each other's way: taking all away and laying it again is sounder than
#: mending, whatever differs
TANGLED: Mapping[str, str] = {
    "driver-versions-mixed": "the driver's files are of several versions",
    "other-installer": "the distribution's driver packages are, or were, there",
    "cuda-metapackage": "a meta package brought the distribution's driver",
    "dkms-build": "DKMS's tree is broken",
    "dkms-other-driver": "DKMS builds another driver too",
    "cudnn-mixed": "two copies of cuDNN are mixed",
    "loader-finds-another-cuda": "another toolkit's libraries come first",
    "cuda-compat-in-loader": "another driver library comes first",
    "library-of-another-name": "a library's name leads to another library",
    "second-tensorflow": "two packages share TensorFlow's files",
}
#: what a reboot frees
HELD: Mapping[str, str] = {"module-in-use": "the loaded driver is in use and cannot be unloaded"}
#: of these provision mends nothing by itself; they may pass when it mends something else, else the layers are relaid
STUCK: Mapping[str, str] = {
    "compiler-mismatch": "the driver's last build failed",
    "flag-unknown": "the driver's last installation failed",
    "device-files-missing": "the driver's device files are not there",
    "driver-unit-failed": "a daemon of the driver failed",
    "container-without-driver": "the container toolkit finds no driver",
    "toolkit-fails": "the container toolkit fails",
    "container-unit-failed": "Docker or containerd failed",
    "start-limit": "a unit failed too often to be started again",
}
#: room that our own former files may take, which are removed first; the second only where something is to be installed
FULL, NEARLY_FULL = "no-space", "disk-nearly-full"
#: what neither a rebuild nor a new card mends: people decide
PEOPLE = frozenset((
    "inodes-exhausted", "x-server", "compiler-too-old", "gpl-only-symbol", "module-not-signed", "gpu-unsupported",
    "kernel-unsupported", "signed-by-conflict", "apt-sources-unreadable", "no-wheel", "no-avx", "docker-snap",
    "docker-masked", "daemon-json-twice", "mig-without-instances",
))  # fmt: skip

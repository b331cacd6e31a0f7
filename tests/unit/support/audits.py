"""Audits for tests of reports: hosts in every state, and a malicious one."""

from __future__ import annotations

from hostwright.audit.fleetaudit import (
    Deviation,
    Finding,
    FleetAudit,
    HostAudit,
    Layer,
    LayerStatus,
    NotChecked,
    Reading,
    ReleaseRecord,
    Status,
    ValueSpread,
)
from hostwright.audit.hardware.gpu import EccCounts, Gpu
from hostwright.standard.roles.driver.xids.events import event

AT = "2026-11-21T10:00:00+00:00"
LAYERS = ("base", "driver", "cuda", "gpu")
HOSTILE = "\x1b[2J\x1b]0;owned\x07</script><b>&\"'\u202e=cmd|' /C calc'!A0\x00\nsecond line"

LINK = Deviation("cuda", "link /usr/local/cuda", "/usr/local/cuda-11.4", "/usr/local/cuda-11.2", "drift")
XID = Finding(
    "xid-fatal", "gpu", True, ("Xid 79 on 0000:3b:00",), "a GPU fell off the bus", "Drain the host and cycle its power",
    False, "hostwright doctor --explain xid-fatal",
)  # fmt: skip
WARNING = Finding(
    "toolkit-beside", "cuda", False, ("/usr/local/cuda-11.4",), "another toolkit is there", "Remove it", False,
    "hostwright doctor --explain toolkit-beside",
)  # fmt: skip
CARD = Gpu(
    0, "0000:3b:00.0", "GPU-1", "Tesla T4", "132", "90.04", 15 * 2**30, pcie_width=16, pcie_width_max=16,
    ecc_volatile=EccCounts(0, 0), temperature=40, power=30.5, remapped_uncorrected=0, remapped_corrected=0,
)  # fmt: skip


def host(name: str, status: Status = "desired", *, layers: dict[str, LayerStatus] | None = None, **more) -> HostAudit:
    """A host whose layers are as desired, except ``layers``."""
    found = tuple(Layer(layer, (layers or {}).get(layer, "desired")) for layer in LAYERS)
    readings = (
        Reading("driver", "loaded", "470.182.03", "470.182.03"),
        Reading("base", "kernel", "5.10.0-28", None, "d"),
    )
    values = {"layers": found, "readings": readings, "gpus": (CARD,), "groups": ("rack3",)}
    values["record"] = ReleaseRecord("tensorflow-2.9", AT, "run-1", "ada@desk")
    return HostAudit(name, "tensorflow-2.9", AT, status, **{**values, **more})


def fleet(*hosts: HostAudit) -> FleetAudit:
    """An audit of these hosts, by default of one host in each state."""
    spread = ValueSpread(
        "base", "kernel", "d", (("5.10.0-28", ("gpu01", "gpu02")), ("5.10.0-27", ("gpu03",))), "5.10.0-28", ("gpu03",)
    )
    return FleetAudit(AT, "inventory", hosts or EACH, (spread,), 1.5)


LOST = event(79, "0000:3b:00", AT, "lost")
SILENT = NotChecked("gpu", "ecc", "nvidia-smi is silent")

EACH = (
    host("gpu01"),
    host("gpu02", layers={"cuda": "warning"}, findings=(WARNING,)),
    host("gpu03", "drift", layers={"cuda": "drift"}, deviations=(LINK,), notes=("locked by ada: RMA",)),
    host("gpu04", "drift", layers={"cuda": "drift"}, deviations=(LINK,), notes=("locked by ada: RMA",)),
    host("gpu05", "failing", layers={"gpu": "failing"}, findings=(XID,), xids=(LOST,)),
    host("gpu06", "unread", layers=dict.fromkeys(LAYERS, "unread"), sentence="connection refused", readings=(),
         gpus=()),
    host("gpu07", "intent", layers={"driver": "intent"}, not_checked=(SILENT,),
         deviations=(Deviation("driver", "NVIDIA driver", "470.182.03", "470.256.02", "intent"),)),
    host("gpu08", "new", layers={"base": "new"}, record=None,
         deviations=(Deviation("base", "packages", "absent", "dkms", "new"),)),
)  # fmt: skip

LIAR = host(
    "gpu09",
    "failing",
    layers={"gpu": "failing"},
    readings=(
        Reading("driver", "loaded", HOSTILE, "470.182.03"),
        Reading("base", "kernel", HOSTILE * 200, None, HOSTILE),
    ),
    deviations=(Deviation("driver", HOSTILE, HOSTILE, HOSTILE, "drift"),),
    findings=(Finding("xid-fatal", "gpu", True, (HOSTILE,), "cause", "cure", False, "hostwright doctor --explain x"),),
    gpus=(Gpu(0, HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE),),
    xids=(event(13, HOSTILE, "", HOSTILE),),
    not_checked=(NotChecked("gpu", "ecc", HOSTILE),),
    notes=(HOSTILE,),
)  # fmt: skip

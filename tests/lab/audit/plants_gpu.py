"""Faults of cards and their links, as far as a lab host can emulate them."""

from __future__ import annotations

from tests.lab.audit.planting import plant

LOG = "/var/log/kern.log"
PCI = "/run/hostwright-lab/hardware/pci"
CARD = f"{PCI}/0000:3b:00.0"


def said(*words: str) -> str:
    """Return commands that add lines to rsyslog's kernel log; a clean lab host has none."""
    lines = "; ".join(f'echo "$(date "+%b %e %T") $(hostname) kernel: {one}"' for one in words)
    return f"{{ {lines}; }} >>{LOG}"


GPU = (
    plant(
        "Xid 79 in the kernel's log, and the card is there", "gpu",
        said("NVRM: Xid (PCI:0000:3b:00): 79, pid=0, GPU has fallen off the bus."),
        rules="xid-past", cure=f"rm {LOG}",
        quick=True,
    ),
    plant(
        "Xid 48 in the kernel's log", "gpu",
        said("NVRM: Xid (PCI:0000:3b:00): 48, pid=4242, name=python, An uncorrectable double bit error (DBE) has been "
             "detected on GPU in the framebuffer at partition 0, subpartition 0."),
        rules="xid-fatal", cure=f"rm {LOG}",
    ),
    plant(
        "Xid 31 of an application", "gpu",
        said("NVRM: Xid (PCI:0000:3b:00): 31, pid=4242, name=python, Ch 00000010, MMU Fault"),
        rules="xid-application", cure=f"rm {LOG}",
        quick=True,
    ),
    plant("power cable not connected", "gpu", said("NVRM: Xid (PCI:0000:3b:00): 54, pid=0, Auxiliary power is not "
                                                   "connected"), rules="power-cable", cure=f"rm {LOG}"),
    plant("a kernel's log that says nothing of cards", "gpu", said("eth0: link becomes ready"), cure=f"rm {LOG}"),
    plant("link of half the lanes", "gpu", f"echo 8 >{CARD}/current_link_width", rules="pcie-width",
          cure=f"echo 16 >{CARD}/current_link_width", quick=True),
    plant("a second card that the driver does not bring up", "gpu",
          f"mkdir {PCI}/0000:3d:00.0; cp {CARD}/vendor {CARD}/class {CARD}/device {PCI}/0000:3d:00.0; "
          "mknod /dev/nvidia1 c 1 3; ln -s ../nvidia1 /dev/char/195:1",
          rules="gpu-missing", cure=f"rm -r {PCI}/0000:3d:00.0 /dev/nvidia1 /dev/char/195:1"),
    plant("no card on the bus", "gpu", f"mv {CARD} /run/card", rules="no-gpu", states=("NVIDIA GPU",),
          cure=f"mv /run/card {CARD}"),
)  # fmt: skip

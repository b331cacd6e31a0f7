"""What may forbid replacing a driver: Secure Boot, a display, processes on the GPU; and which cards a host has."""

from __future__ import annotations

from dataclasses import dataclass

from hostwright.hostfacts import PCI, gpu_ids, nvswitches
from hostwright.model import Change, Facts, Probe

#: ``off``, ``enrolled`` (on, and a key with which dkms signs is known to the firmware) or ``on``. The variable's fifth
#: byte is its value, after four of attributes. MOK.der is Ubuntu's key, mok.pub that of dkms 3.
SECURE_BOOT = Probe(
    "f=/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c\n"
    'if [ "$(od -An -tu1 -j4 -N1 "$f" | tr -d " ")" != 1 ]; then echo off; exit 0; fi\n'
    "for k in /var/lib/shim-signed/mok/MOK.der /var/lib/dkms/mok.pub; do\n"
    '  if [ -e "$k" ] && mokutil --test-key "$k" | grep -q "already enrolled"; then echo enrolled; exit 0; fi\n'
    "done\necho on",
    root=True,
)

#: A display manager's unit, and X servers whose lock names a live process: what nvidia-installer looks for as well.
DISPLAY = Probe(
    "systemctl -q is-active display-manager && systemctl show -p Id --value display-manager\n"
    "for l in /tmp/.X*-lock; do\n"
    '  if read -r p <"$l" && kill -0 "$p"; then echo "X server $((p))"; fi\n'
    "done; exit 0",
    root=True,
)

#: ``pid name`` of each process that holds a device file of NVIDIA's open.
HOLDERS = Probe(
    "find /proc/[0-9]*/fd -lname '/dev/nvidia*' | cut -d/ -f3 | sort -un |"
    ' while read -r p; do read -r n <"/proc/$p/comm" && echo "$p $n"; done; exit 0',
    root=True,
)

#: Services that hold the device files and are stopped for the replacement; the kernel cuts names at 15 characters.
OUR_SERVICES = ("nvidia-persiste", "nv-fabricmanage", "nv-hostengine")


def display(facts: Facts) -> str:
    """What shows a screen on the host, or nothing."""
    return ", ".join(facts[DISPLAY].strip().splitlines())


def holders(facts: Facts) -> tuple[str, ...]:
    """``name (pid)`` of the processes that use a GPU, but for the services that can be stopped."""
    rows = (line.partition(" ") for line in facts[HOLDERS].text.splitlines())
    return tuple(f"{name} ({pid})" for pid, _, name in rows if name not in OUR_SERVICES)


def unsigned_refused(facts: Facts) -> str:
    """Why no module of ours would load, as the operator's sentence; empty when one would."""
    if facts[SECURE_BOOT].strip() != "on":
        return ""
    return (
        "Secure Boot is on and no key with which DKMS signs modules is enrolled, so the kernel would refuse the "
        "driver: switch Secure Boot off in the firmware, or enrol a key (mokutil --import KEY) and confirm it at the "
        "console during a reboot"
    )


@dataclass(frozen=True, slots=True)
class GpuPresent:
    """An NVIDIA card on the PCI bus, without which nothing of this stack makes sense."""

    def probes(self) -> tuple[Probe, ...]:
        return (PCI,)

    def plan(self, facts: Facts) -> Change | None:
        if gpu_ids(facts):
            return None
        sentence = (
            "there is no NVIDIA GPU on its PCI bus: see lspci -d 10de: there, the card's seat and power, the "
            "firmware's settings, and whether it is the right host"
        )
        return Change("NVIDIA GPU", "none", "one or more", refusal=sentence)


@dataclass(frozen=True, slots=True)
class HasNvSwitch:
    """The condition that the GPUs are joined by NVSwitches (HGX and DGX boards), which Fabric Manager must set up."""

    def probes(self) -> tuple[Probe, ...]:
        return (PCI,)

    def holds(self, facts: Facts) -> bool:
        """Whether there is one."""
        return nvswitches(facts) > 0

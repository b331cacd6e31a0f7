"""GPUs of a host, users of the GPUs, and reasons not to disturb the host, such as a display."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hostwright.resources import (
    PCI,
    Answer,
    Condition,
    Disturbing,
    Facts,
    Probe,
    Refusal,
    Resource,
    display_controllers,
)
from hostwright.roles import Command, Match, Pattern, sh_file
from hostwright.standard.roles.driver.states.device_files import DeviceLinks

NVIDIA = 0x10DE  #: PCI vendor id of NVIDIA

_DKMS = "/var/lib/dkms/mok.pub"
#: path of a certificate → path of the private key with which DKMS signs modules. Ubuntu's pair precedes DKMS's own.
_KEYS = {"/var/lib/shim-signed/mok/MOK.der": "/var/lib/shim-signed/mok/MOK.priv", _DKMS: "/var/lib/dkms/mok.key"}
SECURE_BOOT = Probe(
    sh_file(
        __file__,
        "secure_boot.sh",
        variable="/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
        keys=tuple(_KEYS),
    ),
    root=True,
    shared=True,
)

_MAKE_KEY = (
    'openssl req -new -x509 -nodes -days 36500 -subj "/CN=DKMS module signing key" -newkey rsa:2048 '
    f"-keyout {_KEYS[_DKMS]} -outform DER -out {_DKMS}"
)

DISPLAY = Probe(sh_file(__file__, "display.sh"), root=True, shared=True)

#: name of the persistence daemon's service, which runs on every healthy host
PERSISTENCE = "nvidia-persistenced"

#: services that hold the driver's device files, in the order of stopping
OUR_SERVICES = ("nvidia-dcgm", "dcgm", "nvidia-imex", "nvidia-fabricmanager", PERSISTENCE)
_ASKED_ABOUT = "|".join(f"{name}.service" for name in OUR_SERVICES if name != PERSISTENCE)

#: probe that prints ``pid unit name`` for each process with an open NVIDIA device file. The unit is ``-`` outside a
#: service, and ``ops/jupyter.service`` for a process of user ``ops``. Services that systemd stops together with a
#: service of the driver are printed last.
HOLDERS = Probe(
    sh_file(__file__, "sh/holders.sh")
    + sh_file(__file__, "sh/bound.sh")
    # The code of `holders` is inline, because a call would cost another process.
    + "ours= last=\nfor link in $(find /proc/[0-9]*/fd -lname '/dev/nvidia*' 2>/dev/null); do\n"
    + 'p=${link#/proc/} p=${p%%/*}; [ "$p" != "$last" ] || continue; last=$p\n'
    'read -r n <"/proc/$p/comm" || continue\nservice "$p"\n'
    f'case $unit in {_ASKED_ABOUT}) ours="$ours $unit" ;; esac\n'
    '[ "$person" = - ] || unit=$person; called "$p" "$n"; echo "$p $unit $program"; done\n'
    '[ -z "$ours" ] || for unit in $(bound $ours); do\n'
    "  case $unit in *.service) ;; *) continue ;; esac\n"
    '  echo "$(systemctl show --value -p MainPID -- "$unit") $unit $unit"\ndone; :',
    root=True,
    shared=True,
)

#: probe that prints containers with device files of GPUs, one per line
GPU_CONTAINERS = Probe(
    sh_file(__file__, "sh/containers.sh"),
    root=True,
    cap_bytes=512 * 1024,  # this limit suffices for 60,000 processes in containers
    shared=True,
)

#: probes that find users of the GPUs
BUSY_PROBES = (HOLDERS, GPU_CONTAINERS)

_UNIT = Pattern(r"[A-Za-z0-9:_.@\\-]{1,255}\.service")
_ACCOUNT = Pattern(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,63}")
_CONTAINER = Pattern(
    r"(?P<first>[0-9]{1,10}) (?P<id>[0-9a-f]{12}|-) (?P<all>[0-9]{1,10}(?:,[0-9]{1,10})*) "
    r"(?P<called>[A-Za-z0-9][A-Za-z0-9_.,/-]{0,254}|-) (?P<name>.*)"
)


def display(facts: Facts) -> str:
    """Return the names of display managers and X servers; empty without a display."""
    return ", ".join(facts[DISPLAY].strip().splitlines())


def users(facts: Facts) -> tuple[str, ...]:
    """Return descriptions of GPU users, such as ``python3 train.py (4711)``, ``train.service (4712)``, ``container
    3f2a1b2c3d4e (pid 812) web``, ``jupyter.service of ops (4713)``.

    A process in a container or unit is listed as the container or unit. The driver's own services (``OUR_SERVICES``)
    are left out.
    """
    rows = (row for line in facts[HOLDERS].text.split("\n") if len(row := line.split(" ", 2)) == 3)
    ours = {f"{name}.service" for name in OUR_SERVICES}
    containers = [match for line in facts[GPU_CONTAINERS].text.splitlines() if (match := _CONTAINER.fullmatch(line))]
    inside = {pid for match in containers for pid in match["all"].split(",")}
    pids: dict[str, list[str]] = {}
    for pid, unit, name in rows:
        if pid not in inside and unit not in ours:
            pids.setdefault(_unit(unit) or f"{name} ({pid}){_person(unit)}", []).append(pid)
    programs = (name if name.endswith(")") or ") of " in name else f"{name} ({', '.join(of)})"
                for name, of in pids.items())  # fmt: skip
    return (*programs, *(_container(match) for match in containers))


def _unit(text: str) -> str:
    unit = text.rpartition("/")[2]
    return f"{unit}{_person(text)}" if _UNIT.fullmatch(unit) and ("/" not in text or _person(text)) else ""


def _person(text: str) -> str:
    person = text.partition("/")[0]
    return f" of {person}" if "/" in text and _ACCOUNT.fullmatch(person) else ""


def _container(match: Match) -> str:
    """Return a container's description. The first words, equal in all probes, identify the container's owner."""
    names = [one for one in (match["id"], match["called"]) if one != "-"] or [f"of {match['name']}"]
    return " ".join((f"container {names[0]} (pid {match['first']})", *names[1:]))


def unsigned_refused(facts: Facts) -> str:
    """Return the reason why Secure Boot would reject a module built by DKMS, and the remedy; else empty."""
    state, _, key = facts[SECURE_BOOT].strip().partition(" ")
    if state not in ("on", "made", "pending"):
        return ""
    confirm = "choose Enroll MOK at its console, then provision again"
    if state == "pending" and key in _KEYS:
        return f"Secure Boot is on and the key {key} is not enrolled yet: reboot the host, {confirm}"
    found = key if state == "made" and key in _KEYS else ""
    make = "" if found else f"make one (update-secureboot-policy --new-key on Ubuntu, else {_MAKE_KEY}), "
    return (
        "Secure Boot is on and no signing key of DKMS is enrolled, so the kernel would reject the driver: as root on "
        f"the host {make}run mokutil --import {found or 'with it'}, reboot, {confirm}; or switch Secure Boot off in "
        "the firmware"
    )


def signing_key(facts: Facts) -> tuple[str, str]:
    """Return the paths of private key and certificate with which DKMS signs modules.

    Both are empty unless Secure Boot is on and the certificate is enrolled.
    """
    state, _, certificate = facts[SECURE_BOOT].strip().partition(" ")
    known = state == "enrolled" and certificate in _KEYS
    return (_KEYS[certificate], certificate) if known else ("", "")


def gpu_ids(facts: Facts) -> tuple[int, ...]:
    """Return the PCI device IDs of the host's NVIDIA GPUs."""
    return tuple(device.device for device in display_controllers(facts) if device.vendor == NVIDIA)


def has_cards(root_run: Callable[[str], Any]) -> bool:
    """Return whether the PCI bus has an NVIDIA GPU."""
    return bool(gpu_ids(Facts({PCI: Answer(0, root_run(PCI.script).stdout)})))


@dataclass(frozen=True, slots=True)
class GpuPresent(Resource):
    """An NVIDIA GPU is on the PCI bus. Without one, the role refuses the host."""

    def probes(self) -> tuple[Probe, ...]:
        return (PCI,)

    def plan(self, facts: Facts) -> Refusal | None:
        if gpu_ids(facts):
            return None
        sentence = (
            "the PCI bus has no NVIDIA GPU; run `lspci -d 10de:` on the host, check the GPU's seat and power, "
            "the firmware's settings and the host name, or remove the role driver from the host's "
            "hostwright_roles"
        )
        return Refusal("NVIDIA GPU", "none", "one or more", "gpu-present", sentence)

    def removal(self) -> tuple[Resource, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class AllGpusPresent(Resource):
    """All NVIDIA GPUs in the inventory are on the PCI bus. Missing GPUs are only reported."""

    number: int  #: number of the host's GPUs in the inventory (``hostwright_gpus``)

    def probes(self) -> tuple[Probe, ...]:
        return (PCI,)

    def plan(self, _facts: Facts) -> None:
        return None

    def notes(self, facts: Facts) -> tuple[str, ...]:
        present = len(gpu_ids(facts))
        if present >= self.number:
            return ()
        return (
            f"{present} of {self.number} GPUs of the inventory (hostwright_gpus) are on the PCI bus; run "
            f"{Command('doctor')} for the cause",
        )

    def removal(self) -> tuple[Resource, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class ReloadTakesGpus(Condition):
    """Condition that a reload of systemd, as by ``systemctl enable``, removes the GPUs from a running container.

    The cause is missing links in ``/dev/char`` (``DeviceLinks``).
    """

    def probes(self) -> tuple[Probe, ...]:
        return (GPU_CONTAINERS, *DeviceLinks().probes())

    def holds(self, facts: Facts) -> bool:
        return bool(facts[GPU_CONTAINERS].strip()) and DeviceLinks().plan(facts) is not None


def reloading(resource: Resource) -> Disturbing:
    """Mark ``resource``, which reloads systemd, as disturbing if a reload removes GPUs from containers."""
    return Disturbing(resource, "reloads systemd, which takes the GPUs from containers", ReloadTakesGpus())

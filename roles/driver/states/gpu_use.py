"""Reasons not to disturb a host: Secure Boot, a display, processes and containers on the GPU; and its cards."""

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

NVIDIA = 0x10DE  #: the vendor on the PCI bus

_DKMS = "/var/lib/dkms/mok.pub"
#: Certificates of the keys with which DKMS signs modules, each with the key: Ubuntu's, and that of dkms 3 elsewhere.
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

#: As dkms 3 makes its key when it builds for the first time.
_MAKE_KEY = (
    'openssl req -new -x509 -nodes -days 36500 -subj "/CN=DKMS module signing key" -newkey rsa:2048 '
    f"-keyout {_KEYS[_DKMS]} -outform DER -out {_DKMS}"
)

#: A display manager's unit, and X servers.
DISPLAY = Probe(sh_file(__file__, "display.sh"), root=True, shared=True)

PERSISTENCE = "nvidia-persistenced"  #: on every green host, so that a look does not ask systemd about it

#: The services that hold the device files and are stopped for a replacement, in this order.
OUR_SERVICES = ("nvidia-dcgm", "dcgm", "nvidia-imex", "nvidia-fabricmanager", PERSISTENCE)
_ASKED_ABOUT = "|".join(f"{name}.service" for name in OUR_SERVICES if name != PERSISTENCE)

#: ``pid unit name`` of each process that holds a device file of NVIDIA's open; ``-`` where it is no service's, and
#: ``ops/jupyter.service`` or ``ops/-`` where a person's own systemd or login has it. Services that hold none and that
#: systemd stops along with one of ours come last; those of the persistence daemon only the step sees, before it stops
#: anything.
HOLDERS = Probe(
    sh_file(__file__, "sh/holders.sh")
    + sh_file(__file__, "sh/bound.sh")
    # `holders` would be a process more
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

#: One line for each container that has the GPU's device files, as ``_CONTAINER`` reads them.
GPU_CONTAINERS = Probe(
    sh_file(__file__, "sh/containers.sh"),
    root=True,
    cap_bytes=512 * 1024,  # 60,000 processes in containers
    shared=True,
)

#: Who uses the GPU, for changes that disturb running work.
BUSY_PROBES = (HOLDERS, GPU_CONTAINERS)

_UNIT = Pattern(r"[A-Za-z0-9:_.@\\-]{1,255}\.service")
_ACCOUNT = Pattern(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,63}")
_CONTAINER = Pattern(
    r"(?P<first>[0-9]{1,10}) (?P<id>[0-9a-f]{12}|-) (?P<all>[0-9]{1,10}(?:,[0-9]{1,10})*) "
    r"(?P<called>[A-Za-z0-9][A-Za-z0-9_.,/-]{0,254}|-) (?P<name>.*)"
)


def display(facts: Facts) -> str:
    """The display manager or X server on the host; empty if there is none."""
    return ", ".join(facts[DISPLAY].strip().splitlines())


def users(facts: Facts) -> tuple[str, ...]:
    """Who uses a GPU, as words for a sentence: ``python3 train.py (4711)``, ``train.service (4712)``, ``container
    3f2a1b2c3d4e (pid 812) web``, ``jupyter.service of ops (4713)``.

    Services that can be stopped are left out. A process in a container is named by its container, and one of a unit of
    the system's by that: whoever wants it to end must stop the unit.
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
    """The words for a unit of the system's or of a person's; empty where it is none."""
    unit = text.rpartition("/")[2]
    return f"{unit}{_person(text)}" if _UNIT.fullmatch(unit) and ("/" not in text or _person(text)) else ""


def _person(text: str) -> str:
    person = text.partition("/")[0]
    return f" of {person}" if "/" in text and _ACCOUNT.fullmatch(person) else ""


def _container(match: Match) -> str:
    """The words for a container; they begin as those of other probes do, so that its owner is found by them."""
    names = [one for one in (match["id"], match["called"]) if one != "-"] or [f"of {match['name']}"]
    return " ".join((f"container {names[0]} (pid {match['first']})", *names[1:]))


def unsigned_refused(facts: Facts) -> str:
    """Why no module that DKMS builds would load, and what only a person can do; empty if one would load."""
    state, _, key = facts[SECURE_BOOT].strip().partition(" ")
    if state not in ("on", "made", "pending"):
        return ""
    confirm = "choose Enroll MOK at its console, and provision again"
    if state == "pending" and key in _KEYS:
        return f"Secure Boot is on and the key {key} waits to be enrolled: reboot the host, {confirm}"
    found = key if state == "made" and key in _KEYS else ""
    make = "" if found else f"make one (update-secureboot-policy --new-key on Ubuntu, else {_MAKE_KEY}), "
    return (
        "Secure Boot is on and no key with which DKMS signs modules is enrolled, so the kernel would refuse the "
        f"driver: as root on the host {make}run mokutil --import {found or 'with it'}, reboot, {confirm}; or switch "
        "Secure Boot off in the firmware"
    )


def signing_key(facts: Facts) -> tuple[str, str]:
    """The key and the certificate with which DKMS signs modules, where Secure Boot is on and the firmware knows them;
    empty elsewhere. Reads ``SECURE_BOOT``."""
    state, _, certificate = facts[SECURE_BOOT].strip().partition(" ")
    known = state == "enrolled" and certificate in _KEYS
    return (_KEYS[certificate], certificate) if known else ("", "")


def gpu_ids(facts: Facts) -> tuple[int, ...]:
    """PCI device ids of NVIDIA's GPUs."""
    return tuple(device.device for device in display_controllers(facts) if device.vendor == NVIDIA)


def has_cards(root_run: Callable[[str], Any]) -> bool:
    """Whether the PCI bus shows a card, for checks: one that needs a card ends with ``no_gpu()`` where none is."""
    return bool(gpu_ids(Facts({PCI: Answer(0, root_run(PCI.script).stdout)})))


@dataclass(frozen=True, slots=True)
class GpuPresent(Resource):
    """An NVIDIA card on the PCI bus; without it, this role makes no sense."""

    def probes(self) -> tuple[Probe, ...]:
        return (PCI,)

    def plan(self, facts: Facts) -> Refusal | None:
        if gpu_ids(facts):
            return None
        sentence = (
            "there is no NVIDIA GPU on its PCI bus: see lspci -d 10de: there, the card's seat and power, the "
            "firmware's settings, and whether it is the right host; one that is to have none gets its roles without "
            "driver (hostwright_roles)"
        )
        return Refusal("NVIDIA GPU", "none", "one or more", "gpu-present", sentence)

    def removal(self) -> tuple[Resource, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class AllGpusPresent(Resource):
    """All NVIDIA cards on the PCI bus that the inventory names; a missing one is told, and hinders nothing."""

    number: int  #: ``hostwright_gpus``

    def probes(self) -> tuple[Probe, ...]:
        return (PCI,)

    def plan(self, _facts: Facts) -> None:
        return None

    def notes(self, facts: Facts) -> tuple[str, ...]:
        """That cards are missing, where they are."""
        present = len(gpu_ids(facts))
        if present >= self.number:
            return ()
        return (
            f"{present} of the {self.number} GPUs that the inventory says (hostwright_gpus) are on its PCI bus: "
            f"{Command('doctor')} says more",
        )

    def removal(self) -> tuple[Resource, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class ReloadTakesGpus(Condition):
    """The condition that a reload of systemd, which ``systemctl enable`` includes, takes the GPUs from a running
    container: such a container exists, and links in ``/dev/char`` are missing (``DeviceLinks``)."""

    def probes(self) -> tuple[Probe, ...]:
        return (GPU_CONTAINERS, *DeviceLinks().probes())

    def holds(self, facts: Facts) -> bool:
        """Whether that is the case."""
        return bool(facts[GPU_CONTAINERS].strip()) and DeviceLinks().plan(facts) is not None


def reloading(resource: Resource) -> Disturbing:
    """A resource whose steps reload systemd; to enable a unit is to do so."""
    return Disturbing(resource, "reloads systemd, which takes the GPUs from containers", ReloadTakesGpus())

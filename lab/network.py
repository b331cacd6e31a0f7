"""The lab's network: a bridge, a namespace and a cable per host, and a route to the outside (see `lab.firewall`).

Everything is found again by its name, so remains of a crash are recognised without any record.
"""

from __future__ import annotations

import re
from pathlib import Path

from lab import firewall
from lab.config import LAB_PREFIX, Lab, Machine
from lab.mounts import mounted, unmount
from lab.programs import attempt, run

MTU = 1400  #: bytes; some machines' own uplinks are tunnels that carry less than 1500
INSIDE = "host0"  #: the host's end of the cable


def ensure_bridge(lab: Lab) -> None:
    """Make the bridge and the packet rules, or repair what is missing."""
    if not _exists(lab.bridge):
        run(["ip", "link", "add", lab.bridge, "type", "bridge"])
    run(["ip", "address", "replace", str(lab.gateway), "dev", lab.bridge])
    run(["ip", "link", "set", lab.bridge, "address", lab.mac, "mtu", str(MTU), "up"])
    firewall.install(lab)


def remove_bridge(lab: Lab) -> None:
    """Remove the bridge, all remaining cables of this lab, and the packet rules."""
    for link in links(lab):
        attempt(["ip", "link", "delete", link])
    firewall.remove(lab)


def links(lab: Lab) -> list[str]:
    """Return the network interfaces on the machine that belong to this lab."""
    ours = re.compile(rf"{re.escape(lab.bridge)}|hw-{re.escape(lab.name)}-\d+")
    return sorted(path.name for path in Path("/sys/class/net").iterdir() if ours.fullmatch(path.name))


def plugged(machine: Machine) -> bool:
    """Tell whether the host has its cable, connected or not, and the namespace that belongs to it."""
    return _exists(machine.link) and (mounted(machine.netns) or _is_tap(machine.link))


def plug(machine: Machine) -> None:
    """Give the host its network namespace and its cable; both outlive its reboots."""
    if not plugged(machine):
        unplug(machine)
        machine.netns.touch()
        run(["unshare", f"--net={machine.netns}", "true"])
        run(["ip", "link", "add", machine.link, "mtu", str(MTU), "type", "veth", "peer", "name", INSIDE,
             "mtu", str(MTU), "address", machine.mac, "netns", machine.netns])  # fmt: skip
        commands = (
            "link set lo up",
            f"address add {machine.address}/{LAB_PREFIX} dev {INSIDE}",
            f"link set {INSIDE} up",
            f"route add default via {machine.lab.gateway.ip}",
        )
        run(["nsenter", f"--net={machine.netns}", "ip", "-batch", "-"], stdin="\n".join(commands))
    restore_network(machine)


def plug_tap(machine: Machine) -> None:
    """Give a virtual machine its cable, which outlives it; its other end is QEMU's."""
    if not plugged(machine):
        unplug(machine)
        run(["ip", "tuntap", "add", "dev", machine.link, "mode", "tap"])
        run(["ip", "link", "set", machine.link, "mtu", str(MTU)])
    restore_network(machine)


def unplug(machine: Machine) -> None:
    """Remove the host's cable and namespace, if they exist."""
    if _exists(machine.link):
        attempt(["ip", "link", "delete", machine.link])
    unmount(machine.netns)
    machine.netns.unlink(missing_ok=True)


def cut_network(machine: Machine) -> None:
    """Pull the cable: nothing reaches the host, its connections are silent, and it runs on."""
    run(["ip", "link", "set", machine.link, "down"])


def restore_network(machine: Machine) -> None:
    """Plug the cable in again."""
    run(["ip", "link", "set", machine.link, "master", machine.lab.bridge, "up"])


def _is_tap(interface: str) -> bool:
    return Path("/sys/class/net", interface, "tun_flags").exists()


def _exists(interface: str) -> bool:
    return Path("/sys/class/net", interface).exists()

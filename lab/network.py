"""Network of the lab: a bridge, and a network namespace and a link per host; `lab.firewall` adds outside access."""

from __future__ import annotations

import re
from pathlib import Path

from lab import firewall
from lab.config import LAB_PREFIX, Lab, Machine
from lab.mounts import mounted, unmount
from lab.programs import attempt, run

MTU = 1400  #: maximum packet size in bytes, so that labs work over tunnels with an MTU below 1500
INSIDE = "host0"  #: name of the network interface inside the host


def ensure_bridge(lab: Lab) -> None:
    """Create or repair the lab's bridge and packet rules."""
    if not _exists(lab.bridge):
        run(["ip", "link", "add", lab.bridge, "type", "bridge"])
    run(["ip", "address", "replace", str(lab.gateway), "dev", lab.bridge])
    run(["ip", "link", "set", lab.bridge, "address", lab.mac, "mtu", str(MTU), "up"])
    firewall.install(lab)


def remove_bridge(lab: Lab) -> None:
    """Remove the lab's bridge, the links of its hosts, and the packet rules."""
    for link in links(lab):
        attempt(["ip", "link", "delete", link])
    firewall.remove(lab)


def links(lab: Lab) -> list[str]:
    """Return the names of this lab's network interfaces."""
    ours = re.compile(rf"{re.escape(lab.bridge)}|hw-{re.escape(lab.name)}-\d+")
    return sorted(path.name for path in Path("/sys/class/net").iterdir() if ours.fullmatch(path.name))


def plugged(machine: Machine) -> bool:
    """Return whether the host's link and network namespace exist."""
    return _exists(machine.link) and (mounted(machine.netns) or _is_tap(machine.link))


def plug(machine: Machine) -> None:
    """Create the host's network namespace and link (a veth pair). Both survive reboots of the host."""
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
    """Create the tap interface of a virtual machine. The interface remains when the machine ends."""
    if not plugged(machine):
        unplug(machine)
        run(["ip", "tuntap", "add", "dev", machine.link, "mode", "tap"])
        run(["ip", "link", "set", machine.link, "mtu", str(MTU)])
    restore_network(machine)


def unplug(machine: Machine) -> None:
    """Remove the host's link and network namespace, if they exist."""
    if _exists(machine.link):
        attempt(["ip", "link", "delete", machine.link])
    unmount(machine.netns)
    machine.netns.unlink(missing_ok=True)


def cut_network(machine: Machine) -> None:
    """Set the host's link down. Connections stay open, and programs continue."""
    run(["ip", "link", "set", machine.link, "down"])


def restore_network(machine: Machine) -> None:
    """Set the host's link up, and attach the link to the lab's bridge."""
    run(["ip", "link", "set", machine.link, "master", machine.lab.bridge, "up"])


def _is_tap(interface: str) -> bool:
    return Path("/sys/class/net", interface, "tun_flags").exists()


def _exists(interface: str) -> bool:
    return Path("/sys/class/net", interface).exists()

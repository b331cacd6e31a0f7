"""``python -m lab``: build, up, status, console, host-keys, reset, down. Obtains root through sudo."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, get_args

from ClusterShell.NodeSet import NodeSet, NodeSetParseError

from hostwright.common.errors import HostwrightError, InputError
from hostwright.common.text import printable
from lab import fleet
from lab.bmc import serve
from lab.config import DEFAULT_NAME, Distro, HostOptions, Kind, Machine, Real, Sudo, require_host_name
from lab.hardware import Hardware
from lab.machine import console as machine_console
from lab.records import find_lab, find_machine, open_lab
from lab.vendor.model import Profile

#: names of environment variables that sudo must keep
_PASSED = ("HOSTWRIGHT_LAB_CACHE", "HOSTWRIGHT_LAB_STATE", "HOSTWRIGHT_LAB_NETWORK", "PYTHONPATH")
_PASSED_PREFIXES = ("PIP_", "SSL_CERT_", "REQUESTS_CA_", "HTTP_", "HTTPS_", "NO_PROXY", "http_", "https_", "no_proxy")


def main(argv: Sequence[str]) -> int:
    """Run one command; return the exit status."""
    arguments = _parser().parse_args(argv)
    try:
        if os.geteuid() != 0:
            _become_root(argv)
        command: Callable[[argparse.Namespace], None] = arguments.command
        command(arguments)
    except HostwrightError as error:
        print(f"lab: {error}", file=sys.stderr)
        return error.exit_status
    return 0


def build(arguments: argparse.Namespace) -> None:
    """Build the images and vendor files for hosts with these options, without booting a host."""
    fleet.supply(open_lab(arguments.name), HostOptions(**_given(arguments)))


def up(arguments: argparse.Namespace) -> None:
    """Create and boot hosts."""
    options, names = HostOptions(**_given(arguments)), _hosts(arguments.hosts)
    lab = open_lab(arguments.name)
    started = time.monotonic()
    fleet.supply(lab, options)
    fresh = fleet.up(lab, names, options=options, bmc=arguments.bmc)
    kept = [name for name in names if name not in fresh]
    took_s = time.monotonic() - started
    print(f"lab {lab.name}: {len(names)} hosts up after {took_s:.1f} s; inventory {lab.inventory}")
    for what, some in (("new", fresh), ("unchanged", kept)):
        if some:
            print(f"  {what}: {NodeSet.fromlist(some)}")
    if serve.wanted(lab):
        print(f"  BMCs: {lab.bmc_url}, log {lab.bmc / 'log'}")


def status(arguments: argparse.Namespace) -> None:
    """Print one line per host."""
    lab = find_lab(arguments.name)
    for host in fleet.status(lab) if lab else ():
        size = f"{host.memory_bytes / 2**20:.0f} MiB"
        words = (f"{host.name:<16} {host.address:<15} {host.state:<10} {host.distro:<9} {host.profile:<6} {size:>9}",)
        print("  ".join((*words, *host.labels)))
    if lab is None:
        print(f"lab {arguments.name}: does not exist; create it with `python -m lab up --hosts gpu01,gpu02`")


def console(arguments: argparse.Namespace) -> None:
    """Print the latest console output of hosts, including the output of an installation."""
    for machine in _machines(arguments):
        for log in (machine.directory / "installer.log", machine.console):
            if log.exists():
                print("\n".join(printable(line) for line in log.read_text(errors="replace").splitlines()))


def host_keys(arguments: argparse.Namespace) -> None:
    """Print the public host keys of running hosts, as read inside the hosts and not over the network."""
    for machine in _machines(arguments):
        print(machine_console(machine, "sh", "-euc", "cat /etc/ssh/ssh_host_*_key.pub"), end="")


def reset(arguments: argparse.Namespace) -> None:
    """Reinstall hosts."""
    given = _given(arguments)
    options = HostOptions(**given) if given else None
    fleet.reset(open_lab(arguments.name), _hosts(arguments.hosts), options=options)


def down(arguments: argparse.Namespace) -> None:
    """Remove the lab, or only the given hosts."""
    lab = open_lab(arguments.name)
    if arguments.hosts:
        fleet.remove(lab, _hosts(arguments.hosts))
        print(f"lab {lab.name}: {arguments.hosts} removed")
        return
    fleet.down(lab)
    print(f"lab {lab.name}: down")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="lab", description=sys.modules[__name__].__doc__)
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    for command, hosts, kind in (
        (build, None, True),
        (up, "required", True),
        (status, None, False),
        (console, "required", False),
        (host_keys, "required", False),
        (reset, "required", True),
        (down, "optional", False),
    ):
        verb = verbs.add_parser(command.__name__.replace("_", "-"), help=command.__doc__)
        verb.set_defaults(command=command)
        verb.add_argument("--name", default=DEFAULT_NAME, help="name of the lab (default: %(default)s)")
        if hosts:
            verb.add_argument("--hosts", required=hosts == "required", help="host names such as gpu01,gpu[03-04]")
        if kind:
            verb.add_argument("--profile", choices=list(Profile), help="vendor files (default: full)")
            verb.add_argument("--distro", choices=get_args(Distro), help="default: bullseye")
            verb.add_argument("--sudo", choices=get_args(Sudo), help="how the user becomes root (default: nopasswd)")
            verb.add_argument("--kind", choices=get_args(Kind), help="vm: a QEMU virtual machine (default: container)")
            verb.add_argument("--real", choices=get_args(Real)[1:], help="real files instead of a stand-in")
            verb.add_argument("--secure-boot", action="store_true", help="vm only: boot with Secure Boot enabled")
            verb.add_argument("--apt-timers", action="store_true", default=None, help="keep apt's daily timers enabled")
        if command is up:
            verb.add_argument("--bmc", action="store_true", help="give every host a Redfish BMC")
    return parser


def _given(arguments: argparse.Namespace) -> dict[str, Any]:
    values = {key: getattr(arguments, key) for key in ("profile", "distro", "sudo", "apt_timers", "kind", "real")}
    if arguments.secure_boot:
        values["hardware"] = Hardware(secure_boot=True)
    return {key: value for key, value in values.items() if value is not None}


def _machines(arguments: argparse.Namespace) -> list[Machine]:
    lab = find_lab(arguments.name)
    if lab is None:
        raise InputError(f"there is no lab {arguments.name}; create it with `python -m lab up`", "--name")
    return [find_machine(lab, name) for name in _hosts(arguments.hosts)]


def _hosts(text: str) -> list[str]:
    try:
        names = list(NodeSet(text))
    except NodeSetParseError as error:
        raise InputError(f"{error}; use host names such as gpu01,gpu[03-04]", "--hosts") from error
    for name in names:
        require_host_name(name)
    if not names:
        raise InputError("the value names no host; use host names such as gpu01,gpu[03-04]", "--hosts")
    return names


def _become_root(argv: Sequence[str]) -> None:
    """Replace this process with the same command under sudo, with the required environment variables."""
    if not shutil.which("sudo"):
        raise InputError("the lab requires root, and this machine has no sudo; run the command as root")
    passed = ",".join(name for name in os.environ if name in _PASSED or name.startswith(_PASSED_PREFIXES))
    keep = [f"--preserve-env={passed}"] if passed else []
    sys.stdout.flush()
    # With -B, root writes no .pyc files into the checkout. The user could not delete such files.
    os.execvp("sudo", ["sudo", *keep, "--", sys.executable, "-B", "-m", "lab", *argv])  # noqa: S606


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

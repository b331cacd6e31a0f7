"""``invoke lab.*``: lab hosts on this machine to try Hostwright on. Each task runs ``python -m lab`` as root."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from invoke import Collection, Context, Exit, task

_OTHERS = ("lab.", "-", "completion")  #: name prefixes of tasks that connect to no host
OPTIONS = {
    "hosts": "host names: gpu01,gpu[03-09]",
    "profile": "full: real CUDA libraries; small: stand-ins for the large files, for quick tests",
    "distro": "bullseye (Debian 11), bookworm (12) or trixie (13); trixie requires --real packages",
    "kind": "container, or vm: a QEMU virtual machine with its own kernel",
    "real": "driver or cudnn: NVIDIA's files instead of a stand-in; packages: Debian's driver packages",
    "bmc": "give every host a Redfish BMC, for `invoke power` and reinstallations",
}


def _lab(c: Context, *words: str) -> None:
    """Run ``python -m lab``, which obtains root by itself."""
    from hostwright.common.quoting import words as quoted

    done = c.run(quoted([sys.executable, "-m", "lab", *words]), pty=sys.stdin.isatty(), warn=True)
    if done is None or done.exited:
        raise Exit(code=1 if done is None else done.exited)


@task(help=OPTIONS, auto_shortflags=False)
def up(
    c: Context,
    hosts: str = "gpu01,gpu02",
    profile: str = "full",
    distro: str = "bullseye",
    kind: str = "container",
    real: str = "",
    bmc: bool = False,
) -> None:
    """Boot lab hosts and write inventory/lab.yml, so that all commands reach them."""
    options = ("--profile", profile, "--distro", distro, "--kind", kind, *(("--bmc",) if bmc else ()))
    options += ("--real", real) if real else ()
    _lab(c, "up", "--hosts", hosts, *options)


@task(auto_shortflags=False)
def status(
    c: Context,
) -> None:
    """Show the state of the lab's hosts."""
    _lab(c, "status")


@task(help={"hosts": OPTIONS["hosts"]}, auto_shortflags=False)
def console(
    c: Context,
    hosts: str,
) -> None:
    """Show the latest console output of lab hosts."""
    _lab(c, "console", "--hosts", hosts)


@task(help={"hosts": OPTIONS["hosts"]}, auto_shortflags=False)
def reset(
    c: Context,
    hosts: str,
) -> None:
    """Reinstall lab hosts: new disk, new host key."""
    _lab(c, "reset", "--hosts", hosts)


@task(help={"hosts": "remove only these hosts; other hosts stay up"}, auto_shortflags=False)
def down(c: Context, hosts: str = "") -> None:
    """Remove the lab, including its processes, mounts, networks and firewall tables."""
    _lab(c, "down", *(("--hosts", hosts) if hosts else ()))


def tell_of_a_lost_lab(argv: Sequence[str]) -> None:
    """Warn if the inventory has lab hosts but no lab runs, as after a reboot.

    Otherwise a command would wait for hosts that are off.
    """
    words = argv[1:]
    if not words or words[0].startswith(_OTHERS):
        return
    from lab.config import Lab  # an import at the top of the file would add 8 ms to every verb

    file = Lab().inventory
    if not file.exists() or _runs():
        return
    import yaml

    try:
        hosts = ",".join(map(str, yaml.safe_load(file.read_text("utf-8"))["lab"]["hosts"]))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, TypeError, KeyError):
        return  # the task reports the error in the inventory file
    place, program = file.relative_to(file.parents[1]), Path(argv[0]).name
    program = program if program in ("hostwright", "invoke", "inv") else Path(argv[0]).parent.name
    print(
        f"{place}: names hosts of a lab that is not running; run `{program} lab.up --hosts {hosts}` to boot them, or "
        f"`{program} lab.down` to remove the file",
        file=sys.stderr,
    )


def _runs() -> bool:
    from lab.records import find_lab

    known = find_lab()
    return known is not None and Path("/sys/class/net", known.bridge).exists()


lab = Collection("lab", up, status, console, reset, down)

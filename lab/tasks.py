"""``invoke lab.*``: hosts to try Hostwright on, made on this machine. Thin: the lab runs as root in its own process."""

from __future__ import annotations

import sys

from invoke import Collection, Context, Exit, task

OPTIONS = {
    "hosts": "which hosts: gpu01,gpu[03-09]",
    "profile": "full: the real CUDA libraries; small: stand-ins for the large files, for quick tests",
    "distro": "bullseye (Debian 11), bookworm (12), or trixie (13), which fits no stack",
    "kind": "container, or vm: a whole machine under QEMU, with a kernel of its own",
    "real": "driver or cudnn: NVIDIA's own, where the lab has a stand-in otherwise",
    "bmc": "give every host a BMC that speaks Redfish, for `invoke power` and reinstallations",
}


def _lab(c: Context, *words: str) -> None:
    """Run the lab's own command line; it asks for root itself."""
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
    """Boot lab hosts, and write inventory/lab.yml so that all verbs reach them."""
    options = ("--profile", profile, "--distro", distro, "--kind", kind, *(("--bmc",) if bmc else ()))
    options += ("--real", real) if real else ()
    _lab(c, "up", "--hosts", hosts, *options)


@task(auto_shortflags=False)
def status(
    c: Context,
) -> None:
    """Show the lab's hosts."""
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


@task(help={"hosts": "remove only these hosts; the others stay up"}, auto_shortflags=False)
def down(c: Context, hosts: str = "") -> None:
    """Remove the lab, with all its processes, mounts, networks and firewall tables."""
    _lab(c, "down", *(("--hosts", hosts) if hosts else ()))


lab = Collection("lab", up, status, console, reset, down)

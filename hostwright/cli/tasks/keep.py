"""Verbs for what is kept: the files of stacks, the records of runs, the locks of hosts."""

from __future__ import annotations

from hostwright.cli.tasks.options import REACHED, READ, verb
from hostwright.common.request import Request

TITLE = "Keep"


@verb(
    *READ,
    "json",
    stack="download only the files of this stack (default: those of all hosts' stacks)",
    from_="copy files from this directory first, and download only the missing ones",
    export="also copy all files into this directory, for a machine without a network",
    import_="take all files from a directory that --export wrote; download nothing",
    pythons="bring wheels for these Pythons, such as 3.9,3.10 (default: those that audits saw on the hosts, and all of "
    "the stack for a host that no audit saw)",
    systems="bring packages for these distributions and kernels, such as debian-12:6.1.0-28-amd64 (default: those that "
    "audits saw on the hosts)",
    renew="take the versions of packages that the archive has now, with security updates, not those in the lock file",
    sources="look for packages in the archives that this file of apt's sources names (default: this machine's sources)",
    keyring="the file of keys that have signed the archive (default: those of the distribution in /usr/share/keyrings)",
)
def mirror(
    request: Request,
    stack: str = "",
    from_: str = "",
    export: str = "",
    import_: str = "",
    pythons: str = "",
    systems: str = "",
    renew: bool = False,
    sources: str = "",
    keyring: str = "",
) -> int:
    """Download the files of stacks to this machine once, and verify their checksums.

    With them come the wheels for hosts that install Python packages without an index (wheels_from: mirror in the
    variables of a role), and the distribution's packages for hosts that reach no archive of it (base_packages_from:
    mirror). This machine's pip fetches wheels, from the index that it is set to, and its apt finds packages.

    hostwright mirror
    hostwright mirror --from ~/downloads
    hostwright mirror --export /media/usb/stack
    """
    from hostwright.cli.verbs import stacks

    where = stacks.FilePlaces(from_, export, import_)
    packages = stacks.PackageWords(systems, sources, keyring, renew)
    return stacks.mirror(
        request,
        where,
        stack=stack,
        pythons=pythons,
        packages=packages,
    )


@verb(
    requirement="what shall be installed, as pip writes it: torch==2.14.1, 'jax[cuda13]==0.12.0.1'; repeatable",
    python="the version of Python, such as 3.12; repeatable",
    out="write STEM-py312.txt and so on, one file for each Python (default: print them)",
    glibc="take wheels that run on this glibc and newer ones",
)
def pins(
    _: Request,
    requirement: list[str] | None = None,
    python: list[str] | None = None,
    out: str = "",
    glibc: str = "2.28",
) -> int:
    """Write pip constraints for a stack: every package that a requirement brings, with the hash of its wheel.

    This machine's pip resolves the requirement for each Python, from the index that it is set to, and installs nothing.
    No address of an index is written.

    hostwright pins --requirement torch==2.14.1 --python 3.11 --python 3.12 --out inventory/stacks/constraints/torch
    """
    from hostwright.cli.verbs import pins as pinning

    return pinning.pins(tuple(requirement or ()), tuple(python or ()), out=out, glibc=glibc)


@verb("json", called="list", default=True, limit="how many of the latest runs to show; 0 shows all")
def runs_list(request: Request) -> int:
    """Show the latest runs: who, when, on which hosts, with what result.

    hostwright runs
    """
    from hostwright.cli.verbs import runs

    return runs.runs(request)


@verb(
    "json",
    called="show",
    run="the run's id, or the beginning of it (default: the latest run)",
    details="show each host with every plan, step, retry and failed check",
    steps="show all that, and the output of each step",
    html="write a self-contained HTML page with the timeline of hosts and layers to this file (- for standard output)",
    hosts="show only these hosts: gpu01,gpu[03-09]",
)
def runs_show(request: Request, run: str = "last", steps: bool = False, html: str = "") -> int:
    """Show a run: what was done on its hosts, what failed and why, and how it ended.

    hostwright runs.show
    hostwright runs.show 20261123t1657 --hosts gpu01 --steps
    hostwright runs.show --html run.html
    """
    from hostwright.cli.verbs import runs

    return runs.runs_show(
        request,
        run=run,
        steps=steps,
        html=html,
    )


@verb(
    *REACHED,
    called="follow",
    run="the run's id, or the beginning of it (default: the one in progress on this machine)",
    hosts="hosts on which to follow it, for a run that was started on another machine",
)
def runs_follow(request: Request, run: str = "") -> int:
    """Follow a run that somebody started, here or on another machine, until it ends. Changes nothing.

    hostwright runs.follow
    hostwright runs.follow --hosts @rack3
    """
    from hostwright.cli.verbs import runs

    return runs.runs_follow(
        request,
        run=run,
    )


@verb(
    *REACHED,
    reason="why, as shown to other operators: RMA, burn-in, do not touch",
    for_="how long the lock lasts: 90m, 12h, 3d, 2w (default: 8h)",
    list="only show existing locks",
    force="replace somebody else's lock",
)
def lock(request: Request, reason: str = "", for_: str = "", list: bool = False) -> int:
    """Lock hosts: nobody can change them for a while; read-only commands still work.

    hostwright lock gpu01 --reason RMA --for 3d
    """
    from hostwright.cli.verbs import locks

    if list:
        return locks.locks(
            request,
        )
    return locks.lock(
        request,
        reason=reason,
        lasts=for_,
    )


@verb(*REACHED, force="remove somebody else's lock")
def unlock(request: Request) -> int:
    """Remove the lock from hosts.

    hostwright unlock gpu01
    """
    from hostwright.cli.verbs import locks

    return locks.unlock(
        request,
    )

"""Verbs that reach hosts for what the operator wants to type there: one command on many, a login on one."""

from __future__ import annotations

import sys

from hostwright.cli.tasks.options import GRADUAL, REACHED, READ, verb
from hostwright.common.request import Request


@verb(
    *REACHED,
    *GRADUAL,
    "notify",
    root="run the command as root; without it, it cannot become root",
    timeout="end the command on a host that takes longer: 30s, 10m (default: 60s)",
    force="with --root: also on hosts that somebody has locked",
)
def run(request: Request, root: bool = False, timeout: str = "") -> int:
    """Run one command on hosts, as in `run --hosts gpu01 -- uptime -p`; equal outputs are shown once.

    Without --root it runs as the login user and cannot become root: sudo and other setuid programs give it nothing, and
    a host whose login user is root refuses it. That is no sandbox: it may still change what is that user's own, such as
    their files, and what their groups may. Several words after -- are a program and its arguments, which no shell
    reads; a single one is a line for /bin/sh: -- 'lsmod | wc -l'. It has nothing to read and no terminal.

    hostwright run --hosts gpu01,gpu02 -- uname -r
    hostwright run --hosts @rack3 --root --timeout 5m -- du -sh /var/log
    """
    from hostwright.cli.verbs.reaching import run as running

    return running.run(
        request,
        typed_command(),
        root=root,
        timeout=timeout,
    )


@verb(*READ, "accept_new", host="the host, as the inventory names it")
def ssh(request: Request, host: str) -> int:
    """Log in to a host with this machine's ssh, as Hostwright does: `ssh gpu01`, or `ssh gpu01 -- COMMAND`.

    Address, port, user, key, jump hosts and known_hosts are those of the inventory; a host whose key is not known is
    refused. ssh itself asks for a password where it needs one. What is done there is not recorded.

    hostwright ssh gpu01
    hostwright ssh gpu01 -- df -h /
    """
    from hostwright.cli.verbs.reaching import ssh as logging_in

    return logging_in.ssh(request, host, typed_command())


def typed_command() -> tuple[str, ...]:
    """The words after ``--``. Invoke joins them with spaces, and ``'a b'`` would become two words."""
    return tuple(sys.argv[sys.argv.index("--") + 1 :]) if "--" in sys.argv else ()

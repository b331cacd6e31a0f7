"""Signs of what keeps accounts from Docker's socket, or lets all of them at it, and Docker from its registries."""

from __future__ import annotations

from collections.abc import Iterator

from hostwright.failures import AuditContext, FailureRule, ForPeople, Sign
from hostwright.resources import DPKG, Probe
from hostwright.roles import Pattern, sh_file
from hostwright.standard.roles.container.failures.state import SETTINGS, NotJson, engine_package, settings

ACCESS = Probe(sh_file(__file__, "access.sh"), root=True)

_SOCKET = Pattern(r"socket (?P<mode>[0-7]{3,4}) (?P<owner>\S{1,64}):(?P<group>\S{1,64})")
_PROXY = Pattern(r"proxy (?P<name>[A-Za-z_]{10,11}) (?P<at>[A-Za-z0-9.:_-]{1,255}) (?P<why>[a-z ]{1,60})")
_HELPER = Pattern(r"helper (?P<name>[A-Za-z0-9._-]{1,60}) (?P<file>/.{1,200})")
_EVERYBODY, _GROUP = 0o002, 0o020  #: who may write, which is to use it


def socket_access(ctx: AuditContext) -> Iterator[str]:
    """Docker's socket may be written by everybody, or not by the group docker (or daemon.json's ``group``)."""
    rows = (match for line in ctx.text(ACCESS).splitlines() if (match := _SOCKET.fullmatch(line)))
    if not engine_package(ctx):
        return
    try:
        wanted = settings(ctx).get("group", "docker")
    except NotJson:
        return  # a failure of its own
    for row in rows:
        mode, told = int(row["mode"], 8), f"/run/docker.sock is of {row['owner']}:{row['group']}, mode {row['mode']}"
        if mode & _EVERYBODY:
            yield f"{told}: every account of the host may use it, and is root by it"
        elif row["group"] != wanted or not mode & _GROUP:
            yield f"{told}: the group {wanted} may not use it"


def proxy_dead(ctx: AuditContext) -> Iterator[str]:
    """The environment of docker.service names a proxy whose name does not resolve, or one on this host where nothing
    listens.
    """
    rows = (match for line in ctx.text(ACCESS).splitlines() if (match := _PROXY.fullmatch(line)))
    if engine_package(ctx):
        yield from (f"docker.service: {row['name']} is {row['at']}: {row['why']}" for row in rows)


def helper_gone(ctx: AuditContext) -> Iterator[str]:
    """root's .docker/config.json, or that of a home in /home, names a program for passwords (credsStore) that is not on
    the host.
    """
    rows = (match for line in ctx.text(ACCESS).splitlines() if (match := _HELPER.fullmatch(line)))
    if engine_package(ctx):
        yield from (f"{row['file']}: credsStore is {row['name']}: no docker-credential-{row['name']}" for row in rows)


ACCESS_RULES = (
    FailureRule(
        "docker-credentials-helper",
        r"docker-credential-[\w.-]{1,60}[\"'\\]{0,3}: executable file not found"
        r"|docker-credential-[\w.-]{1,60} not installed"
        r"|docker-credential-[\w.-]{1,60} resolves to executable in current directory",
        "the settings of Docker's client name a program that keeps passwords, docker-credential-HELPER, which is not on"
        " this host (a desktop's, as Docker Desktop writes it): each docker pull, login and build fails with it",
        "Take the line credsStore (of one registry: credHelpers) out of {FILE|the config.json of whoever calls docker:"
        " ~/.docker/config.json, with sudo that of root}, then docker login again where a registry wants"
        " it; or install the program that it names. Docker itself need not be restarted",
        "docker/cli cli/config/credentials; docker/compose#11584",
        names=(
            r"docker-credential-(?P<helper>[\w.-]{1,60}?)(?:[\"'\\]|:| not| resolves|$)",
            r"^(?P<file>/[^\s:]{1,200}): credsStore",
        ),
        sign=Sign("container", helper_gone, (ACCESS, DPKG), grave=False),
        treatment=ForPeople(),
        transient=False,
    ),
    FailureRule(
        "docker-socket-mode",
        "",
        "Docker's socket has another group or mode than Docker gives it",
        "Give it back: chgrp docker /run/docker.sock and chmod 660 /run/docker.sock, which disturbs no container; then"
        " look for what sets it (systemctl cat docker.socket: SocketMode, SocketGroup; rc.local, cron)",
        "moby contrib/init/systemd/docker.socket; Docker documentation, docker daemon attack surface",
        sign=Sign("container", socket_access, (ACCESS, DPKG, *SETTINGS), grave=False),
        treatment=ForPeople(),
    ),
    FailureRule(
        "docker-proxy-dead",
        "",
        "Docker asks registries through a proxy that cannot be reached, so that no image is pulled",
        "Put the address right, or take it out, in the file that systemctl cat docker shows (docker.service.d), and run"
        " systemctl daemon-reload; a restart of Docker makes it count, and ends containers without live-restore: do it"
        " when their work is done",
        "Docker documentation, daemon proxy; moby/moby#18386, #35226",
        sign=Sign("container", proxy_dead, (ACCESS, DPKG), grave=False),
        treatment=ForPeople(),
    ),
)

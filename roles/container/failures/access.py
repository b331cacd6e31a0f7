"""Signs of access problems: to Docker's socket, and from Docker to registries."""

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
#: write bits of a socket's mode, for everybody and for the group. A client needs one of the two bits.
_EVERYBODY, _GROUP = 0o002, 0o020


def socket_access(ctx: AuditContext) -> Iterator[str]:
    """Every account can write to Docker's socket, or the group docker (or daemon.json's ``group``) cannot."""
    rows = (match for line in ctx.text(ACCESS).splitlines() if (match := _SOCKET.fullmatch(line)))
    if not engine_package(ctx):
        return
    try:
        wanted = settings(ctx).get("group", "docker")
    except NotJson:
        return
    for row in rows:
        mode, told = int(row["mode"], 8), f"/run/docker.sock: owner {row['owner']}:{row['group']}, mode {row['mode']}"
        if mode & _EVERYBODY:
            yield f"{told}: every account of the host can use it and thereby become root"
        elif row["group"] != wanted or not mode & _GROUP:
            yield f"{told}: the group {wanted} cannot use it"


def proxy_dead(ctx: AuditContext) -> Iterator[str]:
    """docker.service's environment has a proxy whose name does not resolve, or a proxy on this host whose port is
    closed.
    """
    rows = (match for line in ctx.text(ACCESS).splitlines() if (match := _PROXY.fullmatch(line)))
    if engine_package(ctx):
        yield from (f"docker.service: {row['name']} is {row['at']}: {row['why']}" for row in rows)


def helper_gone(ctx: AuditContext) -> Iterator[str]:
    """.docker/config.json of root or of a home in /home names a credentials program (credsStore) that is missing."""
    rows = (match for line in ctx.text(ACCESS).splitlines() if (match := _HELPER.fullmatch(line)))
    if engine_package(ctx):
        yield from (f"{row['file']}: credsStore is {row['name']}: no docker-credential-{row['name']}" for row in rows)


ACCESS_RULES = (
    FailureRule(
        "docker-credentials-helper",
        r"docker-credential-[\w.-]{1,60}[\"'\\]{0,3}: executable file not found"
        r"|docker-credential-[\w.-]{1,60} not installed"
        r"|docker-credential-[\w.-]{1,60} resolves to executable in current directory",
        "the settings of Docker's client name a credentials program, docker-credential-HELPER, which is not installed"
        " (Docker Desktop writes this). Every docker pull, login and build fails",
        "Remove the line credsStore (for one registry: credHelpers) from {FILE|the config.json of the account that"
        " runs docker: ~/.docker/config.json, with sudo root's}. Then run docker login again if a registry requires"
        " it. Or install the program. Docker needs no restart",
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
        "Docker's socket has another group or mode than Docker sets",
        "Restore them with chgrp docker /run/docker.sock and chmod 660 /run/docker.sock, which affects no container."
        " Then find the cause (systemctl cat docker.socket: SocketMode, SocketGroup; rc.local, cron)",
        "moby contrib/init/systemd/docker.socket; Docker documentation, docker daemon attack surface",
        sign=Sign("container", socket_access, (ACCESS, DPKG, *SETTINGS), grave=False),
        treatment=ForPeople(),
    ),
    FailureRule(
        "docker-proxy-dead",
        "",
        "Docker's proxy for registries is unreachable, so that Docker pulls no image",
        "Correct or remove the address in the file that systemctl cat docker shows (docker.service.d), and run"
        " systemctl daemon-reload. Then restart Docker; without live-restore this ends containers, so wait until their"
        " work is done",
        "Docker documentation, daemon proxy; moby/moby#18386, #35226",
        sign=Sign("container", proxy_dead, (ACCESS, DPKG), grave=False),
        treatment=ForPeople(),
    ),
)

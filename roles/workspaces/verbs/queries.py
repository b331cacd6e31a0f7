"""Implementation of ``workspace.list``, ``.logs``, ``.url`` and ``.exec``: queries of hosts."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from rich.text import Text

from hostwright.cli.verb import (
    NOTHING_CHANGED,
    Connections,
    Request,
    RootShell,
    TargetHost,
    ask_password,
    console,
    open_fleet,
    print_document,
    targets_of,
    warn,
)
from hostwright.resources import Facts
from hostwright.roles import (
    HostError,
    InputError,
    count,
    on_interrupt,
    one_line,
    printable,
    sh,
    sh_file,
    short,
    suggestion,
)
from hostwright.standard.roles.container.running import LOCAL_DOCKER
from hostwright.standard.roles.workspaces import Workspaces
from hostwright.standard.roles.workspaces.declared.images import image_for
from hostwright.standard.roles.workspaces.declared.workspace import BATCH, STATE, Workspace, workspaces_of
from hostwright.standard.roles.workspaces.states.facts import PREFIX, WORKSPACES_PROBE, WorkspaceFacts, read_workspaces
from hostwright.standard.roles.workspaces.verbs.edit import ROLE
from hostwright.standard.roles.workspaces.verbs.hostkeys import host_key_of, key_lines
from hostwright.standard.roles.workspaces.verbs.listing import show_rows

WITH_PAGE = ("jupyter", "tensorboard")  #: workspace kinds with a web page and a token
COMMANDS = ("ssh ", "ssh-keygen ", "http://", "https://")  #: prefixes of output lines that users copy
_TOKEN = re.compile("[0-9a-f]{48}")
RUN_TIMEOUT_S = 600.0  #: time limit in seconds of a command in a workspace


@dataclass(frozen=True, slots=True)
class ListedWorkspace:
    """One row of ``workspace.list``: a workspace's declaration and its state on the host."""

    host: str
    name: str
    user: str
    kind: str
    gpus: str
    port: int
    state: str
    image: str


COLUMNS: dict[str, Callable[[ListedWorkspace], str]] = {
    "host": lambda row: row.host,
    "workspace": lambda row: row.name,
    "user": lambda row: row.user,
    "kind": lambda row: row.kind,
    "GPUs": lambda row: row.gpus,
    "port": lambda row: str(row.port or ""),
    "state": lambda row: row.state,
    "image": lambda row: row.image,
}


def show_list(request: Request) -> int:
    """Run ``workspace.list``, which prints a row for each declared or existing workspace."""
    return show_rows(
        request,
        WORKSPACES_PROBE,
        lambda target, facts: rows_of(target.name, declared_of(target), read_workspaces(facts)),
        COLUMNS,
        what="workspaces",
        trouble=trouble_of,
        total=total_of,
    )


def trouble_of(facts: Facts) -> str:
    """Return an error text if Docker does not respond; else empty, also without Docker."""
    found = read_workspaces(facts)
    return found.trouble if found.docker == "silent" else ""


def rows_of(host: str, declared: tuple[Workspace, ...], found: WorkspaceFacts) -> Iterator[ListedWorkspace]:
    """Yield a row for each declared or existing workspace of ``host``, ordered by name."""
    known = {space.name: space for space in declared}
    for name in sorted({*known, *(held.workspace for held in found.containers), *found.definitions}):
        held, space = found.container(name), known.get(name)
        state = held.state if held else found.trouble.partition(":")[0] or "not made yet"
        if held and held.kind == "batch" and held.state == "exited":
            state = f"ended with status {held.code}"
        elif held and held.state == "created" and name in found.queued:
            state = f"queued: {why}" if (why := found.waits.get(name, "").strip()) else "queued"
        elif held and held.kind == "batch" and held.state == "created":
            why = held.error or found.waits.get(name, "").strip()
            state = f"not started: {short(why)}" if why else "not started"
        if held and held.killed and not held.running:
            state += ", killed for lack of memory"
        if space is None:
            state += ", no longer declared"
        if held and held.running and not held.connected:
            state += ", cut off"
        yield ListedWorkspace(
            host,
            name,
            space.owner if space else held.user if held else "",
            space.entry.kind if space else held.kind if held else "",
            ",".join(space.entry.gpus) if space else held.gpus if held else "",
            space.port if space else 0,
            state,
            space.entry.image if space else held.reference if held else "",
        )


def total_of(rows: Sequence[ListedWorkspace]) -> str:
    """Return a sentence with the number of workspaces in total and in each state."""
    # In `row.state`, a colon or comma precedes the reason.
    states = Counter(re.split("[:,]", row.state)[0] for row in rows)
    hosts = count(len({row.host for row in rows}), "host")
    words = ", ".join(f"{number} {one_line(state)}" for state, number in states.most_common())
    more = Counter(each for row in rows for each in row.state.split(", ")[1:] if ":" not in row.state)
    besides = "".join(f"; {number} {one_line(each)}" for each, number in more.most_common())
    return f"{len(rows)} workspaces on {hosts}: {words}{besides}"


def declared_of(target: TargetHost) -> tuple[Workspace, ...]:
    """Return the declared workspaces of the host ``target``; none without the role ``workspaces``."""
    v = target.variables.get(ROLE)
    if not isinstance(v, Workspaces):
        return ()
    return workspaces_of(v.containers, v.users, v.directory, v.ports, image_for(target.stack))


def run_in(request: Request, name: str, script: Callable[[Workspace], str], left: str = NOTHING_CHANGED) -> int:
    """Run ``script`` about the workspace ``name`` on its host, print the output, and return the exit status. On Ctrl-C,
    print ``left``.
    """
    target, space = one_workspace(request, name)
    with on_interrupt(left), Connections(ask_password(request)).connect(target) as shell:
        output = shell.attempt(script(space), timeout_s=RUN_TIMEOUT_S)
    sys.stdout.write(printable(output.stdout.decode("utf-8", "replace")))
    sys.stderr.write(printable(output.stderr.decode("utf-8", "replace")))
    return output.status


def one_workspace(request: Request, name: str) -> tuple[TargetHost, Workspace]:
    """Return the workspace ``name`` and its host. Raises ``InputError`` unless exactly one host declares it."""
    fleet = open_fleet(request)
    targets = targets_of(fleet, replace(request, hosts=request.hosts or "all", roles=ROLE))
    pairs = [(target, space) for target in targets for space in declared_of(target)]
    chosen = [pair for pair in pairs if pair[1].name == name]
    if not chosen:
        raise InputError(f"no workspace {name!r}; {suggestion(name, (space.name for _, space in pairs))}", "--name")
    if len(chosen) > 1:
        hosts = ", ".join(target.name for target, _ in chosen)
        raise InputError(f"{name} is on several hosts ({hosts}); choose one with --host", "--name")
    return chosen[0]


def logs_script(space: Workspace, lines: int) -> str:
    """Return a shell script that prints the container's last ``lines`` lines of output, the end of a batch run, and
    lack of memory.
    """
    container, ended = f"{PREFIX}{space.name}", ":"
    if space.entry.kind == "batch":
        # setpriv reads as the owner, who may have replaced the file by a pipe or a link to root's file.
        read = sh("timeout 10 setpriv $owner --clear-groups -- head -c 65536 -- %s", f"{space.directory}/batch.json")
        why = sh("%s %s why", BATCH, space.name)
        ended = f"{_owner(space, '--reuid=%u --regid=%g')} && {read} 2>/dev/null || :; {why} 2>/dev/null || :"
    printed = sh(LOCAL_DOCKER + " logs --tail %s %s 2>&1 && status=0 || status=$?", lines, container)
    memory = sh_file(__file__, "memory.sh", name=space.name, container=container, limit=space.entry.memory or "")
    return f'{ended}\n{printed}\n{memory}\nexit "$status"'


LEFT_BY_COMMAND = "interrupted. Changes of the command in the workspace are kept"


def exec_script(space: Workspace, command: str) -> str:
    """Return a shell script that runs ``command`` in the container's shell as the workspace's user.

    For an SSH container, the script names the user, because the first process of an older container runs as root.
    """
    words = sh("%s /bin/sh -c %s", f"{PREFIX}{space.name}", command)
    if space.entry.kind != "ssh":
        return LOCAL_DOCKER + " exec " + words
    return f'{_owner(space, "%u:%g")} && {LOCAL_DOCKER} exec -u "$owner" {words}'


def _owner(space: Workspace, form: str) -> str:
    return sh("owner=$(stat -c %s -- %s)", form, space.directory)


def url_lines(target: TargetHost, space: Workspace, token: str) -> Iterator[str]:
    """Yield the command for an SSH tunnel to the workspace ``space``, and the address behind the tunnel."""
    if not space.port:
        yield f"{space.name} is a batch run without a port; read its output with workspace.logs"
        return
    host = target.host
    served = space.entry.kind == "serving"
    who = host.user or space.owner if space.user.uid is not None else "" if served else space.owner
    person = f"{who}@{host.address or host.name}" if who else host.address or host.name
    port = f" -p {host.port}" if host.port else ""
    jump = f" -J {host.proxy_jump}" if host.proxy_jump else ""
    if space.entry.kind == "ssh":
        hop = f"{person}:{host.port}" if host.port else person
        over = f"{host.proxy_jump},{hop}" if host.proxy_jump else hop
        yield f"ssh -J {over} -p {space.port} {space.owner}@127.0.0.1"
        return
    yield f"ssh -N -L {space.port}:127.0.0.1:{space.port}{jump}{port} {person}"
    secret = f"?token={token}" if token and space.entry.kind == "jupyter" else ""
    path = f"{space.path}/labels/live:predict" if served else space.path
    yield f"http://127.0.0.1:{space.port}{path}{secret}"


def browser_lines(target: TargetHost, space: Workspace, token: str) -> Iterator[str]:
    """Yield the HTTPS address of the workspace's page, if the host has the role ``proxy``."""
    roles = {role.name for role in target.of_host or target.roles}
    if "proxy" not in roles or space.entry.kind not in WITH_PAGE:
        return
    v = target.variables["proxy"]
    own = f"{space.owner}.{v.people_domain}" if v.people_domain else ""
    name, port = own or next(iter(v.names), target.host.address or target.name), v.listen[0].rpartition(":")[2]
    place = (f"[{name}]" if ":" in name else name) + ("" if port == "443" else f":{port}")
    yield f"https://{place}{space.path}" + (f"?token={token}" if token else "")


def show_url(request: Request, name: str, *, token: bool) -> int:
    """Run ``workspace.url``. The token is read and printed only with ``token``.

    For an SSH container, the host key's fingerprint is added.
    """
    target, space = one_workspace(request, name)
    secret = ""
    if token and space.entry.kind in WITH_PAGE:
        with Connections(ask_password(request)).connect(target) as shell:
            secret = _token(shell, space)
    lines = [*url_lines(target, space, secret), *browser_lines(target, space, secret)]
    if space.entry.kind == "ssh":
        try:
            lines += key_lines(space, host_key_of(target, space))
        except HostError as error:
            warn(f"the SSH host key of workspace {name} cannot be read: {error}")
    if request.json:
        print_document("url", {"host": target.name, "workspace": space.name, "lines": lines})
    else:
        out = console.make_console()
        for line in lines:
            if line.startswith(COMMANDS):
                print(line)  # users copy these lines, which `out.print` would wrap
            else:
                out.print(Text(line))
    return 0


def _token(shell: RootShell, space: Workspace) -> str:
    read = sh("head -c 200 -- %s", f"{STATE}/{space.name}/token")
    text = shell.run(read, timeout_s=30, failure="cannot read the token").stdout.decode("utf-8", "replace").strip()
    if not _TOKEN.fullmatch(text):  # the user of the workspace can change the file
        raise HostError(
            shell.host,
            f"the access token of workspace {space.name} is not valid; run `workspace.down`, then `workspace.up` "
            "to create a new one",
        )
    return text

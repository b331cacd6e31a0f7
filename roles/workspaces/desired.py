"""Desired states of the role ``workspaces``, imported only for hosts with this role."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hostwright.resources import Debs, Directory, File, Resource
from hostwright.roles import RoleContext, sh_file
from hostwright.standard.roles.driver.states.gpu_use import reloading
from hostwright.standard.roles.workspaces import Workspaces
from hostwright.standard.roles.workspaces.declared.forms import bytes_of, is_below
from hostwright.standard.roles.workspaces.declared.gpus import PromisesGpus
from hostwright.standard.roles.workspaces.declared.images import image_for
from hostwright.standard.roles.workspaces.declared.workspace import BATCH, STATE, Workspace, workspaces_of
from hostwright.standard.roles.workspaces.states.access import CLOSED, RULES_SH, AccessWithdrawn, NetworksClosed
from hostwright.standard.roles.workspaces.states.arguments import WITH_SHELLS, network_of
from hostwright.standard.roles.workspaces.states.images import ImageBuilt, tag_of
from hostwright.standard.roles.workspaces.states.owner import PeoplesFiles
from hostwright.standard.roles.workspaces.states.quota import DiskQuotas
from hostwright.standard.roles.workspaces.states.running import WorkspaceRuns
from hostwright.standard.roles.workspaces.states.undeclared import Undeclared

UNITS, BATCH_UNIT = "/etc/systemd/system", "hostwright-batch@.service"
#: path of the drop-in of docker.service that sets the workspaces' firewall rules after a reboot
AT_DOCKERS_START = f"{UNITS}/docker.service.d/hostwright-workspaces.conf"
#: directory in an ssh workspace for files from the workspace's start. The user owns the directory.
BOX = "/run/hostwright-box"


def states(v: Workspaces, ctx: RoleContext) -> Iterator[Resource]:
    """Yield the desired states of a host with the role ``workspaces``."""
    if left := tuple(sorted(name for name, person in v.users.items() if person.left)):
        yield AccessWithdrawn(left)
    yield Directory(STATE, mode="711")
    yield PeoplesFiles(v.directory)
    yield Directory(v.directory)
    yield File(BATCH, "#!/bin/sh\n" + sh_file(__file__, "states/sh/batch.sh"), mode="755", check="sh -n %s")
    closed = f"#!/bin/sh\n{RULES_SH}" + sh_file(__file__, "states/sh/network/closed.sh")
    yield File(CLOSED, closed, mode="755", check="sh -n %s")
    yield NetworksClosed()
    reload = ("systemctl daemon-reload",)
    start = File(AT_DOCKERS_START, f"# Written by Hostwright.\n[Service]\nExecStartPost=-{CLOSED}\n", then=reload)
    yield reloading(start)
    unit = File(f"{UNITS}/{BATCH_UNIT}", ctx.render(f"workspaces/{BATCH_UNIT}.j2"), then=reload)
    yield reloading(unit)
    runs = runs_of(v, ctx)
    networks = sorted({network_of(state.workspace.owner) for state in runs})
    images = {state.built: _built(state.workspace, v, ctx) for state in runs if state.built}
    yield Undeclared(tuple(state.name for state in runs), tuple(networks), tuple(sorted(images)), force=ctx.force)
    yield from images.values()
    if v.containers:
        yield from _quotas(v, runs)
    yield from _after_mounted(runs)


def _quotas(v: Workspaces, runs: Sequence[WorkspaceRuns]) -> Iterator[Resource]:
    spaces = [state.workspace for state in runs]
    limits = tuple((space.directory, bytes_of(space.entry.disk) // 1024) for space in spaces if space.entry.disk)
    if limits:
        yield Debs(("quota",))
    yield DiskQuotas(v.directory, limits, tuple(space.directory for space in spaces if not space.entry.disk))


def runs_of(v: Workspaces, ctx: RoleContext) -> tuple[WorkspaceRuns, ...]:
    """Return the desired state of each declared workspace."""
    declared = workspaces_of(v.containers, v.users, v.directory, v.ports, image_for(ctx.stack))
    return tuple(_runs(workspace, declared, v, ctx) for workspace in declared)


def _after_mounted(runs: tuple[WorkspaceRuns, ...]) -> tuple[WorkspaceRuns, ...]:
    """Sort by name, but each workspace after the workspaces with the files that it mounts."""
    ordered: dict[str, WorkspaceRuns] = {}

    def add(state: WorkspaceRuns, above: tuple[str, ...] = ()) -> None:
        sources = [mount.split(":")[0] for mount in state.workspace.entry.mounts]
        for other in runs:
            below = any(is_below(source, other.workspace.directory) for source in sources)
            if below and other.name not in {*above, state.name, *ordered}:
                add(other, (*above, state.name))
        ordered.setdefault(state.name, state)

    for state in runs:
        add(state)
    return tuple(ordered.values())


def _runs(workspace: Workspace, declared: tuple[Workspace, ...], v: Workspaces, ctx: RoleContext) -> WorkspaceRuns:
    built = _built(workspace, v, ctx).tag if workspace.entry.kind == "ssh" else ""
    definition = ctx.render("workspaces/definition.json.j2", workspace=workspace, built=built)
    files = tuple(_files(workspace, ctx))
    return WorkspaceRuns(
        workspace.name, definition, files, workspace, declared, built, force=ctx.force, reserved=_reserved(ctx)
    )


def _reserved(ctx: RoleContext) -> tuple[tuple[str, str], ...]:
    return tuple((gpu, role.name) for role, v in ctx.roles if isinstance(v, PromisesGpus) for gpu in v.promised_gpus)


def _built(workspace: Workspace, v: Workspaces, ctx: RoleContext) -> ImageBuilt:
    base = workspace.entry.image
    dockerfile = ctx.render("workspaces/ssh/Dockerfile.j2", base=base, refreshed=v.refreshed, folder=BOX)
    others = ((name, ctx.render(f"workspaces/ssh/{name}.j2", folder=BOX)) for name in ("sshd_config", "start"))
    files = (("Dockerfile", dockerfile), *others)
    return ImageBuilt(tag_of("ssh", files), base, files, workspace.entry.pull)


def _files(workspace: Workspace, ctx: RoleContext) -> Iterator[tuple[str, str, str]]:
    if workspace.entry.kind == "jupyter":
        config = "jupyter_config.py"
        yield config, "644", ctx.render(f"workspaces/{config}.j2", workspace=workspace)
    if workspace.entry.kind in WITH_SHELLS:
        yield "profile", "644", ctx.render("workspaces/profile.j2")
    if workspace.entry.kind == "ssh":
        yield "authorized_keys", "644", "".join(f"{key}\n" for key in workspace.user.keys)
    if workspace.entry.script:
        yield "script", "755", workspace.entry.script

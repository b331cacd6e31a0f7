"""States of the role ``jupyterhub``, imported only for hosts with this role."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from hostwright.resources import Directory, File, Recipe, Resource, RestartedAfter, Service, Venv, VenvPackage
from hostwright.roles import InputError, RoleContext, sh, sh_file
from hostwright.standard.roles.driver.states.gpu_use import reloading
from hostwright.standard.roles.jupyterhub import HOME, PATH, STATE, UNIT, VERSION, Jupyterhub
from hostwright.standard.roles.jupyterhub.states.cards import HubCards
from hostwright.standard.roles.jupyterhub.states.image import HubImage, tag_of
from hostwright.standard.roles.jupyterhub.states.network import HubNetwork
from hostwright.standard.roles.jupyterhub.states.servers import HubServers, HubUser, HubUserLeft
from hostwright.standard.roles.proxy import served
from hostwright.standard.roles.proxy.states.reloaded import ReloadedAfter
from hostwright.standard.roles.workspaces import Workspaces
from hostwright.standard.roles.workspaces.declared.forms import beyond_memory
from hostwright.standard.roles.workspaces.declared.images import image_for
from hostwright.standard.roles.workspaces.declared.promises import PortRange, ports_of

PYTHONS = ("3.11", "3.12", "3.13", "3.10", "3.9", "3.8")
PROGRAM = "/usr/local/lib/hostwright/jupyterhub"
NGINX = "nginx.service"
PAM = "hostwright-jupyterhub"
#: files that nginx includes: ``LIMITS`` in the http block, and ``LOCATIONS`` in the proxy's server block
LIMITS, LOCATIONS = (
    "/etc/nginx/conf.d/hostwright-jupyterhub.conf",
    "/etc/nginx/hostwright-workspaces.d/jupyterhub.conf",
)


def states(v: Jupyterhub, ctx: RoleContext) -> Iterator[Resource]:
    """Yield the states of the role ``jupyterhub``."""
    users = users_of(v, ctx)
    gpus = HubCards(v.gpus)
    yield gpus
    yield VenvPackage(PYTHONS)
    venv = Venv(HOME, tuple(_recipe(python, v.wheels_from == "mirror") for python in PYTHONS))
    yield venv
    image = _image(v, ctx)
    yield image
    yield HubNetwork(v.network)
    yield Directory(STATE, mode="700")
    yield Directory(PROGRAM)
    pam = File(f"/etc/pam.d/{PAM}", ctx.render("jupyterhub/pam.j2"))
    config = File(f"{PROGRAM}/config.py", ctx.render("jupyterhub/config.py.j2"))
    settings = File(f"{PROGRAM}/settings.json", _settings(v, ctx, users, image.tag))
    unit = File(
        f"/etc/systemd/system/{UNIT}",
        ctx.render(f"jupyterhub/{UNIT}.j2", home=HOME, program=PROGRAM, state=STATE, directory=directory_of(ctx)),
        then=("systemctl daemon-reload",),
    )
    yield from (pam, config, settings)
    yield reloading(unit)
    left = tuple(sorted(name for name, person in _workspaces(ctx).users.items() if person.left))
    limits = beyond_memory("each server of JupyterHub", v.shm, v.memory)
    yield HubServers(users, v.gpus, left, limits, force=ctx.force)
    yield from (HubUserLeft(name, force=ctx.force) for name in left)
    yield reloading(Service(UNIT))
    files = (config.path, settings.path, unit.path)
    yield RestartedAfter(UNIT, files, (venv, config, settings, unit))
    yield from _served(v, ctx, users)


def users_of(v: Jupyterhub, ctx: RoleContext) -> tuple[HubUser, ...]:
    """Return the users who may log in, each with a port for the user's Jupyter server.

    A user who left keeps the port while other ports are free, because the user's server may still run.
    """
    declared = _workspaces(ctx)
    ports = PortRange.read(v.ports)
    taken = set(ports_of(declared.containers, PortRange.read(declared.ports)).values())
    room = len(declared.users) + len(taken) <= len(ports)
    users = []
    for name, user in sorted(declared.users.items()):
        if user.left and not room:
            continue
        first = ports.home(f"jupyterhub {name}") - ports.first
        order = (ports.first + (first + step) % len(ports) for step in range(len(ports)))
        port = next(port for port in order if port not in taken)
        taken.add(port)
        if not user.left:
            users.append(HubUser(name, user.uid, user.gid, port))
    return tuple(users)


def directory_of(ctx: RoleContext) -> str:
    """Return the host's directory with users' files."""
    return _workspaces(ctx).directory


def _workspaces(ctx: RoleContext) -> Workspaces:
    return next((v for _, v in ctx.roles if isinstance(v, Workspaces)), Workspaces())


@cache
def _pins(file: str) -> str:
    return (Path(__file__).parent / "pins" / file).read_text("utf-8")


def _recipe(python: str, mirrored: bool = False) -> Recipe:
    pins = _pins(f"py{python.replace('.', '')}.txt")
    return Recipe("jupyterhub", python, f"jupyterhub=={VERSION}", pins, wheels=_pins("wheels.txt"), mirrored=mirrored)


def _image(v: Jupyterhub, ctx: RoleContext) -> HubImage:
    base = v.image or image_for(ctx.stack)
    dockerfile = ctx.render("jupyterhub/Dockerfile.j2", base=base)
    files = (("Dockerfile", dockerfile), ("add.py", ctx.render("jupyterhub/add.py.j2")))
    requirements = tuple((python, _recipe(python).hashed(*_inside(python))) for python in PYTHONS)
    return HubImage(tag_of((*files, *requirements)), base, files, requirements, f"{HOME}/bin/python", v.pull)


def _inside(python: str) -> tuple[str, ...]:
    hub = {"docker", "dockerspawner", "escapism", "jupyterhub-idle-culler"}
    return tuple(name for name in _recipe(python).pins if name not in hub)


def _settings(v: Jupyterhub, ctx: RoleContext, users: tuple[HubUser, ...], image: str) -> str:
    values = {
        "path": PATH,
        "address": v.address,
        "port": v.port,
        "pam": PAM,
        "state": STATE,
        "directory": directory_of(ctx),
        "image": image,
        "users": {user.name: {"uid": user.uid, "gid": user.gid, "port": user.port} for user in users},
        "admins": list(v.admins),
        "gpus": list(v.gpus),
        "gpus_each": v.gpus_each,
        "shared": v.shared,
        "cpus": v.cpus,
        "memory": v.memory,
        "shm": v.shm,
        "pids": v.pids,
        "idle_minutes": v.idle_minutes,
    }
    return json.dumps(values, indent=2) + "\n"


def _served(v: Jupyterhub, ctx: RoleContext, users: tuple[HubUser, ...]) -> Iterator[Resource]:
    """Raise ``InputError`` if a workspace's path is below the hub's path. Yields the hub's nginx locations."""
    for space in served(ctx):
        if space.path.startswith(f"{PATH}/"):
            sentence = (
                f"the workspace address {space.path} is inside JupyterHub's addresses; give {space.owner} another name"
            )
            raise InputError(sentence, "workspaces_users")
    yield Directory(LOCATIONS.rpartition("/")[0])
    limits = File(LIMITS, ctx.render("jupyterhub/limits.conf.j2"), check=_check(LIMITS))
    text = ctx.render("jupyterhub/locations.conf.j2", path=PATH, hub=f"{v.address}:{v.port}", users=users)
    locations = File(LOCATIONS, text, check=_check(LOCATIONS))
    yield from (limits, locations)
    yield ReloadedAfter(NGINX, (LIMITS, LOCATIONS), (limits, locations))


def _check(path: str) -> str:
    program = sh_file(__file__, "../proxy/states/sh/tried.sh", conf=path)
    return sh("unshare -m -- sh -euc %s sh", program).replace("%", "%%") + " %s"

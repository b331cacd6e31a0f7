"""Implementation of ``images.rebuild``: new date in ``workspaces.yml``, new images of SSH containers, report of
changes.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import nullcontext, redirect_stdout, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import date

from rich.text import Text

from hostwright.cli.verb import (
    Connections,
    Fleet,
    Request,
    TargetHost,
    Targets,
    agree,
    ask,
    ask_password,
    console,
    counted,
    on_each,
    open_fleet,
    print_document,
    provision,
    read_limits,
    show_errors,
    show_plan,
    targets_of,
)
from hostwright.roles import Command, HostError, InputError, InputErrors, Secret, printable
from hostwright.standard.roles.workspaces.states.facts import WORKSPACES_PROBE, read_workspaces
from hostwright.standard.roles.workspaces.states.packages import Packages, differences, packages_script, read_packages
from hostwright.standard.roles.workspaces.verbs.changing import show_written
from hostwright.standard.roles.workspaces.verbs.edit import (
    REFRESHED,
    ROLE,
    checked_date,
    dated,
    once_written,
    place,
    written,
)
from hostwright.standard.roles.workspaces.verbs.queries import declared_of

LOOK_TIMEOUT_S = 600.0  #: time limit in seconds to read the packages in the images of a host
_DAY = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:-([0-9]{1,3}))?")


def next_date(today: str, last: str, *, again: bool) -> str:
    """Return the new date of the images: ``today`` or, to continue an interrupted run of today, ``last``.

    ``again``: return a new date for another build on the same day.

    >>> next_date("2026-11-23", "2026-10-01", again=False), next_date("2026-11-23", "2026-11-23-2", again=False)
    ('2026-11-23', '2026-11-23-2')
    >>> next_date("2026-11-23", "2026-11-23", again=True), next_date("2026-11-23", "2026-11-23-2", again=True)
    ('2026-11-23-2', '2026-11-23-3')
    """
    day = _DAY.fullmatch(last)
    if not day or day[1] != today:
        return today
    return f"{today}-{int(day[2] or 1) + 1}" if again else last


@dataclass(frozen=True, slots=True)
class BoxImages:
    """Images of users' SSH containers on a host, with the packages in each image."""

    of: Mapping[str, str] = field(default_factory=dict)  #: name of a workspace → ID of the workspace's image
    packages: Mapping[str, Packages] = field(default_factory=dict)  #: ID of an image → packages in the image


@dataclass(frozen=True, slots=True)
class BoxChanges:
    """Change of an SSH container's image by a rebuild: old and new image ID, and a line for each changed package."""

    host: str
    workspace: str
    before: str | None
    now: str | None
    changes: tuple[str, ...]


def rebuild(request: Request, *, again: bool = False) -> int:
    """Run ``images.rebuild``. Before any change, the new text of ``workspaces.yml`` is checked, and the user
    confirms.
    """
    fleet = open_fleet(request)
    targets = targets_of(fleet, replace(request, roles=ROLE))
    boxed = with_boxes(targets)
    today = date.today().isoformat()
    dates: list[str] = []

    def new_date(last: str) -> str:
        dates.append(next_date(today, last, again=again))
        return dates[-1]

    before, after = dated(fleet.path, new_date)
    checked_date(fleet.path, [target.name for target in boxed], after)
    chosen = replace(request, hosts=",".join(target.name for target in boxed), roles=ROLE)
    if request.check:
        chosen = replace(chosen, var=(*chosen.var, f"{REFRESHED}={dates[-1]}"))
        fleet = open_fleet(chosen)
        return show_plan(fleet, targets_of(fleet, chosen), chosen, then=Command("images.rebuild", again=again))
    read_limits(request, len(boxed))
    anew = f"recreates the SSH boxes on {counted(target.name for target in boxed)}"
    parts = [f"{anew}: their processes end; files and host keys are kept"]
    agree(f"`images.rebuild` {anew}", parts, len(boxed), yes=request.yes, as_json=request.json)
    password = ask_password(request)
    was = _looked_at(boxed, password)
    written(fleet.path, before, after)
    with once_written(fleet.path):
        show_written(place(fleet.path), before, after, quiet=request.json)
        if others := ", ".join(_others(fleet, boxed)):
            _say(f"not in this run, but rebuilt at their next provision: {others}", quiet=request.json)
        printed = io.StringIO()
        with redirect_stdout(printed) if request.json else nullcontext():
            status = provision(replace(chosen, yes=True))
        now = _looked_at(boxed, password)
        if request.json:
            ended = {
                name: value for name, value in json.loads(printed.getvalue()).items() if name not in ("kind", "schema")
            }
            print_document("boxes", {**ended, "boxes": [asdict(box) for box in box_changes(was, now)]})
        else:
            for line in lines(was, now):
                _say(line)
        return status


def with_boxes(targets: Targets) -> list[TargetHost]:
    """Return the hosts in ``targets`` with an SSH container of a user. Raises ``InputError`` without one."""
    boxed = [target for target in targets if _has_box(target)]
    if not boxed:
        sentence = (
            "none of these hosts has a workspace of the kind ssh, the only kind whose image Hostwright "
            "builds. For another kind, load a newer image with `images.push`, and set it in the workspace"
        )
        raise InputError(sentence, "--hosts")
    return boxed


def _has_box(target: TargetHost) -> bool:
    return any(space.entry.kind == "ssh" for space in declared_of(target))


def _others(fleet: Fleet, boxed: list[TargetHost]) -> Iterator[str]:
    chosen = {target.name for target in boxed}
    for host in fleet.inventory.hosts.values():
        if host.name not in chosen:
            with suppress(InputError, InputErrors):  # the next provisioning reports the host's errors
                if _has_box(fleet.target(host)):
                    yield host.name


def _looked_at(targets: list[TargetHost], password: Secret | None) -> dict[str, BoxImages]:
    connections = Connections(password)
    by_name = {target.name: target for target in targets}

    def look(name: str) -> tuple[str, BoxImages]:
        with connections.connect(by_name[name]) as shell:
            seen = read_workspaces(ask(shell, (WORKSPACES_PROBE,)))
            if seen.docker:
                raise HostError(name, f"Docker is {seen.docker}, so the packages in its images cannot be read")
            images = {held.workspace: held.image for held in seen.containers if held.kind == "ssh"}
            if not images:
                return name, BoxImages()
            failure = "cannot read the packages of its images"
            script = packages_script(sorted(set(images.values())))
            text = shell.run(script, timeout_s=LOOK_TIMEOUT_S, failure=failure, cap_bytes=16 << 20).stdout
        return name, BoxImages(images, read_packages(text.decode("utf-8", "replace")))

    results = on_each(list(by_name), look, stop=connections.close)
    show_errors(results.errors)
    return dict(results.values)


def _say(line: str, *, quiet: bool = False) -> None:
    console.make_console(stderr=quiet).print(Text(printable(line)))


def box_changes(before: Mapping[str, BoxImages], after: Mapping[str, BoxImages]) -> Iterator[BoxChanges]:
    """Yield the image change of each SSH container, for hosts in both ``before`` and ``after``."""
    for host in sorted(before.keys() & after.keys()):
        old, new = before[host], after[host]
        for name in sorted(old.of.keys() | new.of.keys()):
            yield BoxChanges(host, name, old.of.get(name), new.of.get(name), tuple(_of_box(old, new, name)))


def lines(before: Mapping[str, BoxImages], after: Mapping[str, BoxImages]) -> Iterator[str]:
    """Yield lines with the changed packages of SSH containers. Containers with the same changes share a line."""
    folded: dict[tuple[str, ...], list[str]] = {}
    for box in box_changes(before, after):
        folded.setdefault(box.changes, []).append(f"{box.host} {box.workspace}")
    for changed, boxes in folded.items():
        yield f"packages in the image of {', '.join(boxes)}:"
        yield from (f"    {line}" for line in changed)


def _of_box(before: BoxImages, after: BoxImages, name: str) -> Iterator[str]:
    old, new = before.of.get(name), after.of.get(name)
    if old is None or new is None:
        yield "a new box" if new else "the box is gone"
    elif old == new:
        yield f"the image is unchanged ({old[7:19]}) and was not rebuilt"
    elif old not in before.packages or new not in after.packages:
        yield f"{old[7:19]} → {new[7:19]}; its packages cannot be read"
    else:
        yield from list(differences(before.packages[old], after.packages[new])) or ["rebuilt without changed versions"]

"""Creates a site (a directory for an operator's hosts, stacks, roles and checks), and writes schemas into a site."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Sequence
from importlib.resources import as_file, files
from pathlib import Path

import yaml
from rich.console import Console
from rich.text import Text

from hostwright import __version__
from hostwright.cli import console
from hostwright.cli.asking import answer_to, can_ask
from hostwright.cli.shell.reference import schemas
from hostwright.common.errors import InputError
from hostwright.common.input.nearest import suggestion
from hostwright.common.interruption import on_interrupt
from hostwright.common.places import refused, write_whole
from hostwright.common.userpaths import place_for
from hostwright.plan.roles.role import Role, discover
from hostwright.plan.roles.site import STANDARD
from hostwright.stack.stackfile import default_stack, stack_names

FOLDER = ".schemas"  #: folder with the JSON Schemas for editing a site's files
NEXT = """\
{place} is now a site. Next steps:

  cd {place}
  $EDITOR inventory/hosts.yml        # your hosts
  hostwright hosts
  hostwright stacks --hosts gpu01    # which stacks fit it, the best first
  hostwright mirror                  # download the stack's files once
  hostwright plan --hosts gpu01      # changes nothing

Keep it in a repository of its own: git init, git add ., git commit."""


def make_site(directory: str, stack: str = "") -> None:
    """Create a site in ``directory`` for hosts with ``stack``. Without ``stack``, prompt for a stack at a terminal.

    Raises ``InputError``, before writing, if a file of the site exists or the stack is unknown.
    """
    root = place_for(directory, "init", "a site")
    chosen = _standard_stack(stack) if stack else _asked_stack()
    with as_file(files("hostwright.cli") / "skeleton") as skeleton:
        sources = {root / _name(path.relative_to(skeleton)): path for path in sorted(skeleton.rglob("*")) if _is(path)}
        _refuse(root, [target for target in (*sources, root / FOLDER) if target.exists() or target.is_symlink()])
        unfinished = f"interrupted: {root} is incomplete; remove its content and run `hostwright init` again"
        try:
            with on_interrupt(unfinished):
                for target, source in sources.items():
                    _write(target, source)
                if chosen:
                    _choose(root, chosen)
                write_schemas(root, discover())
        except OSError as error:
            sentence = f"the site cannot be written: {refused(error, 'name another directory')}"
            raise InputError(sentence, str(error.filename or root)) from error
    text = NEXT.format(place=shlex.quote(str(root)))
    # the console's own `print` would add the options of this call to the new site's commands
    Console.print(console.make_console(), Text(text), soft_wrap=True)


def _standard_stack(name: str) -> str:
    known = stack_names([STANDARD / "stacks"])
    if name not in known:
        raise InputError(f"unknown stack {name!r}; {suggestion(name, known)}", "--stack")
    return name


def _asked_stack() -> str:
    if not can_ask():
        return ""
    default = default_stack([STANDARD / "stacks"])
    for name in stack_names([STANDARD / "stacks"]):
        said = yaml.safe_load((STANDARD / "stacks" / f"{name}.yml").read_text("utf-8")).get("description", "")
        print(f"  {name:29} {said}", file=sys.stderr)
    name = answer_to(f"Which stack do its hosts get? [{default}] ").strip()
    return _standard_stack(name) if name and name != default else ""


def _choose(root: Path, stack: str) -> None:
    file = root / "inventory/group_vars/all.yml"
    line, chosen = (
        re.compile(r"^# stack: .*$", re.MULTILINE),
        f"stack: {stack} # a file of ../stacks, or a standard stack",
    )
    file.write_text(line.sub(chosen, file.read_text("utf-8"), count=1), "utf-8")


def _refuse(root: Path, existing: list[Path]) -> None:
    if existing:
        names = ", ".join(str(path.relative_to(root)) for path in existing)
        raise InputError(f"{names} already exist; nothing was written; name another directory", str(root))


def _is(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts


def _name(path: Path) -> Path:
    """Return ``path`` with ``dot-`` at the beginning of each part replaced by a dot, since packages omit
    hidden files.
    """
    return Path(*(f".{part.removeprefix('dot-')}" if part.startswith("dot-") else part for part in path.parts))


def _write(target: Path, source: Path) -> None:
    text = source.read_text("utf-8")
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("x", encoding="utf-8") as file:
        file.write(text.replace("{version}", __version__) if target.name == "requirements.txt" else text)
    if text.startswith("#!"):
        target.chmod(0o755)


def write_schemas(root: Path, roles: Sequence[Role]) -> list[Path]:
    """Write the schemas for files of the site at ``root`` to the site's folder ``.schemas``. Return the paths of the
    schemas.

    Raises ``InputError`` if a schema cannot be written.
    """
    written = []
    for name, made in schemas.written(roles).items():
        path = root / FOLDER / f"{name}.json"
        try:
            path.parent.mkdir(exist_ok=True)
            write_whole(path, schemas.rendered(made()).encode(), 0o644)
        except OSError as error:
            raise InputError(f"cannot be written: {refused(error, 'name another directory')}", str(path)) from error
        written.append(path)
    return written

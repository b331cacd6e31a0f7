"""``hostwright init``: a directory for an operator's hosts, stacks, roles and checks."""

from __future__ import annotations

import shlex
from importlib.resources import as_file, files
from pathlib import Path

from rich.console import Console
from rich.text import Text

from hostwright import __version__
from hostwright.apply.rollout.rollout import LEFT
from hostwright.cli import console
from hostwright.cli.verbs.schemas import FOLDER, write_schemas
from hostwright.common.errors import AS_DESIRED, InputError
from hostwright.common.places import refused
from hostwright.common.userpaths import place_for
from hostwright.plan.roles.role import discover

NEXT = """\
{place} is now a site. Next steps:

  cd {place}
  python3 -m venv .venv && . .venv/bin/activate
  pip install -r requirements.txt
  $EDITOR inventory/hosts.yml        # your hosts
  hostwright hosts
  hostwright mirror                  # download the stack's files once
  hostwright plan --hosts gpu01      # changes nothing

Keep it in a repository of its own: git init, git add ., git commit."""


def init(directory: str) -> int:
    """``hostwright init``. Raises ``InputError`` if a file of a site already exists: nothing is written then."""
    root = place_for(directory, "init", "a site")
    with as_file(files("hostwright.cli") / "skeleton") as skeleton:
        sources = {root / _name(path.relative_to(skeleton)): path for path in sorted(skeleton.rglob("*")) if _is(path)}
        _refuse(root, [target for target in (*sources, root / FOLDER) if target.exists() or target.is_symlink()])
        LEFT.set(f"interrupted: {root} is not whole; remove what is there and run `hostwright init` again")
        try:
            for target, source in sources.items():
                _write(target, source)
            write_schemas(root, discover())
        except OSError as error:
            sentence = f"the site cannot be written: {refused(error, 'name another directory')}"
            raise InputError(sentence, str(error.filename or root)) from error
    text = NEXT.format(place=shlex.quote(str(root)))
    Console.print(console.make_console(), Text(text), soft_wrap=True)  # of the new site, not of this call
    return AS_DESIRED


def _refuse(root: Path, existing: list[Path]) -> None:
    if existing:
        names = ", ".join(str(path.relative_to(root)) for path in existing)
        raise InputError(f"already there: {names}; nothing is overwritten, so name another directory", str(root))


def _is(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts


def _name(path: Path) -> Path:
    """The path in a site: what is hidden there is not hidden here, where packages would leave it out."""
    return Path(*(f".{part.removeprefix('dot-')}" if part.startswith("dot-") else part for part in path.parts))


def _write(target: Path, source: Path) -> None:
    text = source.read_text("utf-8")
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("x", encoding="utf-8") as file:
        file.write(text.replace("{version}", __version__) if target.name == "requirements.txt" else text)
    if text.startswith("#!"):
        target.chmod(0o755)

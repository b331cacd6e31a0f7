"""``hostwright init``: a directory for an operator's hosts, stacks, roles and checks; and the schemas of its files."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from importlib.resources import as_file, files
from pathlib import Path

from rich.console import Console
from rich.text import Text

from hostwright import __version__
from hostwright.cli import console
from hostwright.cli.opening import roles_here
from hostwright.cli.shell.reference import schemas
from hostwright.common.errors import AS_DESIRED, InputError
from hostwright.common.input.nearest import suggestion
from hostwright.common.interruption import on_interrupt
from hostwright.common.places import refused, write_whole
from hostwright.common.userpaths import place_for
from hostwright.plan.roles.role import Role, discover
from hostwright.plan.roles.site import Site

FOLDER = ".schemas"  #: of a site, beside inventory/
NEXT = """\
{place} is now a site. Next steps:

  cd {place}
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
        unfinished = f"interrupted: {root} is not whole; remove what is there and run `hostwright init` again"
        try:
            with on_interrupt(unfinished):
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


def schema(name: str, *, write: bool = False) -> int:
    """``hostwright schema``; no ``name``: list all; ``write``: into the site's folder."""
    if write:
        root = Site.find().root
        written = write_schemas(root, roles_here())
        console.make_console().print(Text(f"{root / FOLDER}: {', '.join(path.name for path in written)}"))
        return AS_DESIRED
    of_files, of_documents = schemas.written(roles_here()), schemas.printed()
    if name in of_files:
        print(schemas.rendered(of_files[name]()), end="")
    elif name in of_documents:
        print(of_documents[name].read_text("utf-8"), end="")
    elif name:
        raise InputError(f"there is no schema {name!r}; {suggestion(name, [*of_files, *of_documents])}", "schema")
    else:
        _list(of_files, of_documents)
    return AS_DESIRED


def write_schemas(root: Path, roles: Sequence[Role]) -> list[Path]:
    """Write the schemas of a site's files into its folder; the files. Raises ``InputError``."""
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


def _list(of_files: Mapping[str, object], of_documents: Mapping[str, Path]) -> None:
    out = console.make_console()
    out.print(Text("of files that you write:", style="bold"))
    for name in of_files:
        out.print(Text(f"  {name}"))
    out.print(Text("of what verbs print with --json:", style="bold"))
    out.print(console.Listed(f"  {', '.join(of_documents)}"))

"""``hostwright schema``: the JSON Schemas of the files of a site, for editors, and of what verbs print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.text import Text

from hostwright.cli import console
from hostwright.cli.door.reference import schemas
from hostwright.common.errors import AS_DESIRED, InputError
from hostwright.common.input.nearest import suggestion
from hostwright.common.places import refused, write_whole
from hostwright.plan.roles.role import Role, discover
from hostwright.plan.roles.site import Site

FOLDER = ".schemas"  #: of a site, beside inventory/


def schema(name: str, *, write: bool = False) -> int:
    """``hostwright schema``; no ``name``: list all; ``write``: into the site's folder."""
    if write:
        root = Site.find().root
        written = write_schemas(root, _roles())
        console.make_console().print(Text(f"{root / FOLDER}: {', '.join(path.name for path in written)}"))
        return AS_DESIRED
    of_files, of_documents = schemas.written(_roles()), schemas.printed()
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


def _roles() -> Sequence[Role]:
    """The standard roles, and where there is a site its own."""
    try:
        site = Site.find()
    except InputError:
        return discover()
    return discover(*site.role_packages)


def _list(of_files: Mapping[str, object], of_documents: Mapping[str, Path]) -> None:
    out = console.make_console()
    out.print(Text("of files that you write:", style="bold"))
    for name in of_files:
        out.print(Text(f"  {name}"))
    out.print(Text("of what verbs print with --json:", style="bold"))
    out.print(console.Listed(f"  {', '.join(of_documents)}"))

"""What Ubuntu's installer itself lets into a seed: the schemas of its sections, read out of its own source.

The installer is a snap, but the source of the one of 20.04 is in Ubuntu's archive. It is read and never run: its
schemas are literals of its classes, put together here as its own ``subiquity/cmd/schema.py`` does.
"""

from __future__ import annotations

import ast
import hashlib
import io
import re
import tarfile
from pathlib import Path
from typing import Any

import requests

#: The installer of 20.04 as jammy's archive has it; the sum is that of the archive's signed index of sources.
SOURCE = "pool/universe/s/subiquity/subiquity_20.04.3+git84g6a5e36ed.tar.xz"
SHA256 = "98a762eadccea810dfe2cddb81cfa906bfc8d24eb60a91de93ea833fdc58c2a5"
SCRIPT = "usr/share/debootstrap/scripts/gutsy"  #: debootstrap's, of this and all later releases
TIMEOUT_S = 60.0
#: Sections that later installers brought; this one passes over them.
LATER = {"updates", "timezone", "shutdown"}


class NoArchive(Exception):
    """Ubuntu's archive cannot be reached from here."""


def fetch(debootstrap: Path, to: Path) -> None:
    """Write the installer's source to ``to``, from the archive that debootstrap, unpacked there, takes by default.

    Raises `NoArchive`, and ``ValueError`` where something else comes than was asked for.
    """
    found = re.search(r"\*\)\s+default_mirror (\S+)", (debootstrap / SCRIPT).read_text())
    if not found:
        raise ValueError(f"debootstrap's {SCRIPT} names no archive any more")
    try:
        answer = requests.get(f"{found[1]}/{SOURCE}", timeout=TIMEOUT_S)
        answer.raise_for_status()
    except requests.RequestException as error:
        raise NoArchive(f"Ubuntu's archive cannot be reached from here: {error}") from error
    if hashlib.sha256(answer.content).hexdigest() != SHA256:
        raise ValueError(f"{found[1]}/{SOURCE} is not what its index says")
    to.write_bytes(answer.content)


def schema(source: Path) -> dict[str, Any]:
    """The schema of a whole seed, out of the installer's source."""
    modules = _modules(source)
    classes = {cls.name: (cls, names) for names, tree in modules for cls in tree.body if isinstance(cls, ast.ClassDef)}
    whole: dict[str, Any] = _own(*classes["Subiquity"], "base_schema")
    for cls, names in classes.values():
        section, inside = _own(cls, names, "autoinstall_key"), _inherited(classes, cls, "autoinstall_schema")
        if section and inside:
            whole["properties"][section] = inside
    return whole


def _modules(source: Path) -> list[tuple[dict[str, ast.expr], ast.Module]]:
    """Each module that has to do with sections, with the values of its own names."""
    with tarfile.open(fileobj=io.BytesIO(source.read_bytes())) as archive:
        wanted = re.compile(r"subiquity/subiquity/(core|controller|controllers/\w+)\.py")
        files = [archive.extractfile(one) for one in archive if wanted.fullmatch(one.name)]
        trees = [ast.parse(file.read()) for file in files if file is not None]
    return [(_assigned(tree.body), tree) for tree in trees]


def _assigned(body: list[ast.stmt]) -> dict[str, ast.expr]:
    return {
        target.id: one.value
        for one in body
        if isinstance(one, ast.Assign)
        for target in one.targets
        if isinstance(target, ast.Name)
    }


def _own(cls: ast.ClassDef, names: dict[str, ast.expr], name: str) -> Any:
    """The literal that a class gives a name, with the module's own names put in; ``None`` where it gives none."""
    value = _assigned(cls.body).get(name)
    return None if value is None else ast.literal_eval(_Named(names).visit(value))


def _inherited(classes: dict[str, tuple[ast.ClassDef, dict[str, ast.expr]]], cls: ast.ClassDef, name: str) -> Any:
    own = _own(cls, classes[cls.name][1], name)
    if own is not None:
        return own
    # A controller has the name of the one that it is made from, in another package: that one has no schema.
    bases = [base.id for base in cls.bases if isinstance(base, ast.Name) and base.id != cls.name]
    return next((_inherited(classes, classes[one][0], name) for one in bases if one in classes), None)


class _Named(ast.NodeTransformer):
    def __init__(self, names: dict[str, ast.expr]):
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.visit(self._names[node.id]) if node.id in self._names else node  # type: ignore[no-any-return]

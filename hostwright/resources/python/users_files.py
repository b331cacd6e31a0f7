"""Files that people put into Hostwright's venvs: notebooks, packages, kernels. They are moved aside, never deleted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from hostwright.common.quoting import sh_file
from hostwright.resources.files.aside import ASIDE, NAMED
from hostwright.resources.files.paths import few

HOMES = "/opt/hostwright/venvs"
#: name of the file that is written last into a venv; without it, the venv is incomplete
MARKER = ".hostwright-complete"

#: shell functions ``users_files HOME``, which prints people's files in a venv, and ``set_aside HOME``, which moves
#: these files aside
USERS_FILES = sh_file(__file__, "sh/users_files.sh", marker=MARKER)


def put_aside(home: str, paths: Sequence[str]) -> str:
    """Warning that users' files ``paths`` are moved aside when the venv ``home`` is removed."""
    return f"files that people added to {home} are moved to {ASIDE}/DATE: {_listed(paths)}"


def left_behind(home: str, paths: Sequence[str]) -> str:
    """Warning that users' files ``paths`` remain in the venv ``home`` when the link switches to another venv."""
    return f"files that people added to {home} stay there, and the link no longer points there: {_listed(paths)}"


def _listed(paths: Sequence[str]) -> str:
    dists = [PurePosixPath(path).name for path in paths if path.endswith(".dist-info")]
    packages = [" ".join(dist.removesuffix(".dist-info").rsplit("-", 1)) for dist in dists]
    stems = {package.partition(" ")[0].lower() for package in packages}
    files = [path for path in paths if not (_in_site(path) and (path.endswith(".dist-info") or _stem(path) in stems))]
    if "." in files:
        return "all of it"
    return few([*files, *(f"package {name}" for name in packages)], NAMED)


def _in_site(path: str) -> bool:
    return PurePosixPath(path).parent.name == "site-packages"


def _stem(path: str) -> str:
    return PurePosixPath(path).name.partition(".")[0].lower()

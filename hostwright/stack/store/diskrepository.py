"""A package file that holds an apt repository, which its installation puts on a host's own disk: the list in it."""

from __future__ import annotations

import gzip
import subprocess
import tarfile
from pathlib import Path, PurePosixPath

from hostwright.common.errors import ArtifactError

_MOST_LIST_BYTES = 64 * 1024 * 1024  #: our choice: lists of toolkits have some hundred KB


def list_in(repository: Path) -> bytes:
    """The list of packages in it; the packages are read over, not unpacked. Raises ``ArtifactError``."""
    try:
        with subprocess.Popen(
            ["dpkg-deb", "--fsys-tarfile", str(repository)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as program:
            try:
                found = _found(program)
            finally:
                program.kill()
    except (tarfile.TarError, OSError, EOFError) as error:
        raise ArtifactError(f"{repository} cannot be read: {error}") from error
    if found is None:
        raise ArtifactError(f"{repository} holds no list of packages, as a repository on a host's own disk must")
    return found


def _found(program: subprocess.Popen[bytes]) -> bytes | None:
    with tarfile.open(fileobj=program.stdout, mode="r|") as tar:
        for member in tar:
            name = PurePosixPath(member.name).name
            if name in {"Packages", "Packages.gz"} and member.isfile() and (file := tar.extractfile(member)):
                data = file.read(_MOST_LIST_BYTES)
                return data if name == "Packages" else gzip.decompress(data)
    return None

"""The CUDA toolkits on a host, and the library files of the stack's toolkit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from hostwright.failures import Unread, wanted
from hostwright.resources import PackagedTree, Probe
from hostwright.roles import Pattern, sh_file
from hostwright.standard.roles.cuda.section import CudaSection

if TYPE_CHECKING:
    from hostwright.failures import AuditContext

LINK = "/usr/local/cuda"  #: path of a CUDA toolkit without a version, usually a link
LIBRARIES = "targets/x86_64-linux/lib"  #: directory of the libraries, relative to the toolkit's directory
CUDNN_HEADER = "include/cudnn_version.h"
NVCC, RUNTIME, UNINSTALLER = "bin/nvcc", "libcudart", "bin/cuda-uninstaller"
MAX_LINKS = 8  #: maximum number of links in a chain. A longer chain is reported as a loop.

#: probe that prints path, resolved path, files and cuDNN version of each CUDA toolkit
TOOLKITS = Probe(
    sh_file(
        __file__,
        "toolkits.sh",
        link=LINK,
        parts=(NVCC, "bin/ptxas", UNINSTALLER, "include/cudnn.h", CUDNN_HEADER),
        libraries=LIBRARIES,
        runtime=RUNTIME,
        header=CUDNN_HEADER,
    )
)


@dataclass(frozen=True, slots=True)
class Toolkit:
    """Toolkit at ``/usr/local/cuda*``. ``leads``: ``path`` with links resolved. ``cudnn``: version of its cuDNN."""

    path: str
    leads: str
    has: frozenset[str]
    cudnn: str = ""

    @property
    def usable(self) -> bool:
        """Whether the toolkit has nvcc or the runtime. The directory of a removed package lacks both."""
        return bool(self.has & {NVCC, RUNTIME})


def toolkits(ctx: AuditContext) -> Mapping[str, Toolkit]:
    """Return path → CUDA toolkit at ``/usr/local/cuda*``. Raises ``Unread`` if the probe was not answered."""
    rows = (line.split("\t") for line in ctx.text(TOOLKITS).splitlines())
    listed = (Toolkit(row[0], row[1], frozenset(row[2].split()), _version(row[3])) for row in rows if len(row) == 4)
    return {toolkit.path: toolkit for toolkit in listed}


def own(ctx: AuditContext) -> Toolkit:
    """Return the stack's toolkit on the host; an empty ``Toolkit`` if missing. Raises ``Unread`` if unknown."""
    prefix = ctx.section(CudaSection).prefix
    return toolkits(ctx).get(prefix, Toolkit(prefix, prefix, frozenset()))


def _version(text: str) -> str:
    return text.strip() if Pattern(r"\d{1,4}(\.\d{1,4}){0,3}\s*").fullmatch(text) else ""


@dataclass(frozen=True, slots=True)
class LibraryFile:
    """Shared library, or a link to one. ``kind``: letter of the file type as in ``find``."""

    path: str
    kind: str
    size_bytes: int
    target: str = ""

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def is_file(self) -> bool:
        return self.kind == "f" and self.size_bytes > 0


def library_files(ctx: AuditContext) -> Mapping[str, LibraryFile]:
    """Return path → shared library in the stack's toolkit. Raises ``Unread`` if the list is incomplete."""
    answer = ctx.answer(wanted(ctx, "cuda", PackagedTree).tree.probe)
    if answer.truncated:
        raise Unread("the CUDA toolkit has too many libraries to list")
    return _library_files(answer.text)


@lru_cache(maxsize=8)
def _library_files(text: str) -> Mapping[str, LibraryFile]:
    """Cache the parsed output of the probe, because a toolkit has some hundred files."""
    rows = (line.split("\t") for line in text.splitlines() if line.startswith("found\t"))
    files = (LibraryFile(row[3], row[1], int(row[2]), row[4]) for row in rows if len(row) == 5 and _is_size(row[2]))
    return {file.path: file for file in files}


def resolved(path: str, files: Mapping[str, LibraryFile]) -> LibraryFile | None:
    """Return the file in ``files`` to which ``path`` leads; ``None`` without such a file."""
    for _ in range(MAX_LINKS):
        file = files.get(path)
        if file is None or file.kind != "l":
            return file if file is not None and file.is_file else None
        path = str(PurePosixPath(path).parent / file.target)
    return None


def _is_size(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19

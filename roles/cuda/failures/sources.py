"""Signs about apt's sources for CUDA and their keys.

NVIDIA changed the key of its network repository in April 2022 (NVIDIA/cuda-repo-management#4). The local repository of
11.2.2 is still signed with the old key.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain, dropwhile
from typing import TYPE_CHECKING

from hostwright.failures import Covers, FailureRule, Sign
from hostwright.standard.roles.base.failures.trust.sources import Source
from hostwright.standard.roles.cuda.section import CudaSection

if TYPE_CHECKING:
    from hostwright.failures import AuditContext


from collections.abc import Mapping
from itertools import groupby
from typing import TYPE_CHECKING

from hostwright.failures import Unread
from hostwright.resources import DEARMOR, Probe
from hostwright.roles import Pattern, sh_file
from hostwright.standard.roles.base.failures.trust.sources import parsed

if TYPE_CHECKING:
    from hostwright.failures import AuditContext


OLD_KEY = "F60F4B3D7FA2AF80"  #: ID of the key with which NVIDIA signed repositories until April 2022
NEW_KEY = "A4B469963BF863CC"  #: ID of the key with which NVIDIA has signed the network repository since April 2022
TRUSTED = "/etc/apt/trusted.gpg"  #: apt-key's keyring, which apt uses for source lines without signed-by

#: probe that prints source lines that mention CUDA, and keys in apt's keyrings
SOURCES = Probe(f"{DEARMOR}\n" + sh_file(__file__, "apt_sources.sh"), root=True)

_KEY_ID = Pattern(r"[0-9A-F]{16}")


def sources(ctx: AuditContext) -> tuple[Source, ...]:
    """Return the enabled repositories in apt's lists that mention CUDA. Raises ``Unread`` if the probe was cut off."""
    rows = [row for row in _rows(ctx, "source", 4) if row[2].isascii() and row[2].isdigit() and len(row[2]) < 9]
    repositories: list[Source] = []
    for file, lines in groupby(rows, key=lambda row: row[1]):
        repositories += parsed(file, [(int(row[2]), row[3]) for row in lines])
    return tuple(repositories)


def keys(ctx: AuditContext) -> Mapping[str, frozenset[str]]:
    """Return keyring path → IDs of its keys. Of keyrings other than apt-key's, only NVIDIA's two keys are listed.

    Raises ``Unread`` if apt's sources were not read completely.
    """
    by_ring: dict[str, frozenset[str]] = {}
    for _, ring, which in _rows(ctx, "key", 3):
        key = {"new": NEW_KEY, "old": OLD_KEY}.get(which, which.upper())
        if _KEY_ID.fullmatch(key):
            by_ring[ring] = by_ring.get(ring, frozenset()) | {key}
    return by_ring


def rings(source: Source, known: Iterable[str]) -> tuple[str, ...] | None:
    """Return the keyrings that apt uses for ``source``; ``None`` if the entry contains a key or needs none."""
    if "trusted=yes" in source.text.replace(" ", "").lower() or any("BEGIN" in ring for ring in source.signed_by):
        return None
    paths = tuple(ring for ring in source.signed_by if ring.startswith("/"))
    return paths or tuple(ring for ring in known if ring.startswith((TRUSTED, f"{TRUSTED}.d/")))


def _rows(ctx: AuditContext, kind: str, length: int) -> list[list[str]]:
    answer = ctx.answer(SOURCES)
    if not answer.ok or answer.truncated:
        raise Unread("apt's sources could not be read completely")
    rows = (line.split("\t", length - 1) for line in answer.text.split("\n"))
    return [row for row in rows if len(row) == length and row[0] == kind]


NETWORK = "developer.download.nvidia.com/compute/cuda/repos"  #: part of the URLs of NVIDIA's network repositories
MAIN_LIST = "/etc/apt/sources.list"  #: file of apt sources that apt reads first
LOCAL = "/cuda-repo-"  #: part of the path of a local CUDA repository


def retired_key(ctx: AuditContext) -> Iterator[str]:
    """apt reads NVIDIA's network repository, and no keyring for it has the key of 2022."""
    known = keys(ctx)
    for source in chain.from_iterable(map(_naming, _repositories(_network(ctx)))):
        where = rings(source, known)
        if where is not None and not any(NEW_KEY in known.get(ring, ()) for ring in where):
            yield f"{source} (no key {NEW_KEY} in {', '.join(source.signed_by) or f'{TRUSTED} or {TRUSTED}.d'})"


def conflicting(ctx: AuditContext) -> Iterator[str]:
    """apt reads the same CUDA repository from a line with a key and a later line with another key or none."""
    for repository in refused(ctx):
        yield from map(str, repository)


def refused(ctx: AuditContext) -> tuple[tuple[Source, ...], ...]:
    """Return the source lines of each CUDA repository with conflicting keys.

    Because of such a repository, apt rejects all sources. Raises ``Unread`` if apt's sources were not read completely.
    """
    return tuple(repository for repository in _repositories((*_network(ctx), *_own(ctx))) if _conflict(repository))


def _refused_paths(ctx: AuditContext) -> tuple[str, ...]:
    return tuple(repository[0].path for repository in refused(ctx) if repository[0].path)


def _repositories(lines: Iterable[Source]) -> Iterator[tuple[Source, ...]]:
    same: defaultdict[tuple[str, str], list[Source]] = defaultdict(list)
    for source in sorted(lines, key=lambda source: (source.file != MAIN_LIST, source.file, source.line)):
        same[source.place].append(source)
    return map(tuple, same.values())


def _conflict(repository: Iterable[Source]) -> bool:
    """Return whether apt rejects the repository, because a line after the first key has another key or none.

    Earlier lines without a key do not conflict (tried with apt 2.2).
    """
    named = [source.signed_by for source in dropwhile(lambda source: not source.signed_by, repository)]
    return len(set(named)) > 1


def _naming(repository: tuple[Source, ...]) -> tuple[Source, ...]:
    return () if _conflict(repository) else tuple(source for source in repository if source.signed_by) or repository


def two_sources(ctx: AuditContext) -> Iterator[str]:
    """apt reads NVIDIA's network repository in addition to a local one, although neither the stack nor the role's
    variables require it.
    """
    if getattr(ctx.variables.get("cuda"), "network_repository", False) or _fails(ctx):
        return
    wanted = {one.list_file for section in ctx.stack.sections.values() for one in section.repositories()}
    network, local = [source for source in _network(ctx) if source.file not in wanted], _local(ctx)
    if network and local:
        yield from map(str, (*network, *local))


def other_local(ctx: AuditContext) -> Iterator[str]:
    """apt reads a local CUDA repository that is not the stack's."""
    yield from (str(source) for source in _local(ctx) if source.path not in _directories(ctx))


def trusted_for_all(ctx: AuditContext) -> Iterator[str]:
    """``/etc/apt/trusted.gpg``, which ``apt-key`` wrote, contains a key of NVIDIA's CUDA repositories."""
    own = {(one.source.fingerprint or "")[-len(OLD_KEY) :] for one in ctx.section(CudaSection).toolkits}
    named = keys(ctx).get(TRUSTED, frozenset()) & {OLD_KEY, NEW_KEY, *own}
    yield from (f"{TRUSTED} holds the key {key}" for key in sorted(named))


def _network(ctx: AuditContext) -> tuple[Source, ...]:
    return tuple(source for source in sources(ctx) if NETWORK in source.uri and not source.local)


def _local(ctx: AuditContext) -> tuple[Source, ...]:
    return tuple(source for source in sources(ctx) if source.local and LOCAL in f"{source.path}/")


def _own(ctx: AuditContext) -> tuple[Source, ...]:
    return tuple(source for source in sources(ctx) if source.local and source.path in _directories(ctx))


def _directories(ctx: AuditContext) -> frozenset[str]:
    return frozenset(one.directory for one in ctx.section(CudaSection).toolkits)


def _fails(ctx: AuditContext) -> bool:
    return any(True for sign in (retired_key, conflicting) for _ in sign(ctx))


SOURCE_RULES = (
    FailureRule(
        "cuda-network-key",
        "",
        f"NVIDIA's network repository is signed with the key {NEW_KEY} of April 2022, which apt does not have, so "
        "apt-get update fails (NO_PUBKEY)",
        "Provision again: the cuda role disables that repository; to keep it (network_repository: true), install"
        " cuda-keyring_1.1-1_all.deb and remove the older list",
        "NVIDIA/cuda-repo-management#4",
        sign=Sign("cuda", retired_key, (SOURCES,), provision=True),
    ),
    FailureRule(
        "cuda-sources-conflict",
        "",
        "the same CUDA repository is configured twice with different keys, so apt rejects all sources (Conflicting "
        "values set for option Signed-By)",
        "Provision again: the cuda role disables all but its own; to keep the network repository, delete the"
        " older list",
        "NVIDIA/nvidia-docker#1631",
        sign=Sign("cuda", conflicting, (SOURCES,), provision=True),
        covers=Covers(("signed-by-conflict",), _refused_paths),
    ),
    FailureRule(
        "cuda-two-sources",
        "",
        "apt also reads CUDA's network repository, where every package is newer than the stack's",
        "Provision again: the cuda role disables the network repository",
        "NVIDIA's CUDA installation guide, cuda-repository-pin-600",
        sign=Sign("cuda", two_sources, (SOURCES,), grave=False, provision=True),
    ),
    FailureRule(
        "cuda-other-local-repository",
        "",
        "a local repository of another CUDA release is configured: it uses gigabytes in /var, and apt reads its "
        "packages",
        "If none of its packages is needed any more, purge its package (dpkg -l 'cuda-repo-*' lists it)",
        "NVIDIA's CUDA installation guide",
        sign=Sign("cuda", other_local, (SOURCES,), grave=False),
    ),
    FailureRule(
        "cuda-key-for-all",
        "",
        "apt-key stored NVIDIA's key in a keyring that is trusted for every repository; newer releases warn about "
        "that, and have no apt-key any more",
        "Run apt-key del with the last eight characters of the key in the evidence; the stack's source names its key "
        "with signed-by",
        "apt-key(8)",
        sign=Sign("cuda", trusted_for_all, (SOURCES,), grave=False),
    ),
)

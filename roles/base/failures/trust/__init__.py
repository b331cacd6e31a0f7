"""Signs of why apt does not fetch its lists, such as expired keys, missing keyrings, or a failing proxy."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from hostwright.failures import FailureRule, Sign, Variant
from hostwright.resources import DEARMOR, AptSource, Probe, SourcesDisabled, expired_on
from hostwright.roles import Pattern, sh_file
from hostwright.standard.roles.base.failures.trust.sources import parsed

if TYPE_CHECKING:
    from hostwright.failures import AuditContext

KEYRINGS = Probe(DEARMOR + "\n" + sh_file(__file__, "keyrings.sh"), root=True, cap_bytes=1024 * 1024)
PROXIES = Probe(sh_file(__file__, "proxies.sh"), root=True)
RELEASES = Probe(sh_file(__file__, "releases.sh"), root=True)
RENAMED = Probe(sh_file(__file__, "renamed.sh"), root=True)

#: pattern of the keyrings for Debian's and Ubuntu's own repositories
_OF_DISTRIBUTION = Pattern(r"/usr/share/keyrings/(debian|ubuntu)-archive-[\w-]+\.(gpg|pgp|asc)")
_DEAD = Pattern(
    r"(?:[Cc]ould not connect to|[Uu]nable to connect to|[Ff]ailed to connect to|[Rr]esolv(?:e|ing)"
    r"|initiate the connection to) '?([^'\s]+)"
)
_REFUSED = Pattern(r"\b407 |Invalid response from proxy|HTTP code \d{3} from proxy|[Pp]roxy [Aa]uthentication")


class Distrusted(NamedTuple):
    """Repository that apt cannot verify, because all keyrings of its source entry are faulty. ``line``: evidence.

    ``needed``: the stack or the distribution needs the repository. ``ours``: a role writes its source list.
    ``expired``: all keys in the keyring have expired.
    """

    needed: bool
    ours: bool
    line: str
    expired: bool


def broken(ctx: AuditContext) -> Iterator[Distrusted]:
    """Yield repositories whose keyrings are unusable: missing, unreadable for apt's user, or without a valid key."""
    rows = [line.split("\t", 3) for line in ctx.text(KEYRINGS).split("\n")]
    states = {row[1]: row[2] for row in rows if row[0] == "ring" and len(row) == 3}
    lines = [row for row in rows if row[0] == "source" and len(row) == 4 and row[2].isdecimal() and len(row[2]) < 9]
    ours = _ours(ctx)
    for file, numbered in groupby(lines, key=lambda row: row[1]):
        for source in parsed(file, [(int(row[2]), row[3]) for row in numbered]):
            paths = [path for path in source.signed_by if path.startswith("/")]
            faults = [_fault(states.get(path, ""), ctx.minute) for path in paths]
            if faults and all(faults) and len(paths) == len(source.signed_by):
                needed = file in ours or any(_OF_DISTRIBUTION.fullmatch(path) for path in paths)
                named = ", ".join(f"{path} {fault}" for path, fault in zip(paths, faults, strict=True))
                expired = all("expired" in fault for fault in faults)
                yield Distrusted(needed, file in ours, f"{source}: {named}", expired)


def _ours(ctx: AuditContext) -> set[str]:
    return {state.path for role in ctx.desired.roles for state in role.resources if isinstance(state, AptSource)}


def _fault(state: str, now: datetime) -> str:
    if state == "missing":
        return "is missing"
    if state.startswith("unreadable"):
        mode = state.partition(" ")[2]
        return "cannot be read by apt's user _apt" + (f" (mode {mode})" if mode else "")
    try:
        last = expired_on(bytes.fromhex(state), now)
    except ValueError:
        return ""
    return f"holds only keys that expired, the last on {last.astimezone(UTC):%Y-%m-%d}" if last else ""


def key_expired(ctx: AuditContext) -> Iterator[str]:
    """All keys in the keyring of a repository that the stack or the distribution needs have expired."""
    yield from (ring.line for ring in broken(ctx) if ring.needed and ring.expired)


def keyring_unreadable(ctx: AuditContext) -> Iterator[str]:
    """The distribution's own keyring is missing, or apt's user cannot read it."""
    yield from (ring.line for ring in broken(ctx) if ring.needed and not ring.expired and not ring.ours)


def own_keyring_unreadable(ctx: AuditContext) -> Iterator[str]:
    """apt's user cannot read the keyring for a repository of the stack."""
    for ring in broken(ctx):
        source, _, fault = ring.line.rpartition(": ")
        if ring.ours and not ring.expired and "cannot be read" in fault:
            yield f"{fault}: {source}"


def foreign_keyring(ctx: AuditContext) -> Iterator[str]:
    """The keyring of a repository outside the stack is missing, unreadable for apt's user, or has only expired keys."""
    yield from (ring.line for ring in broken(ctx) if not ring.needed)


def without_release(ctx: AuditContext) -> Iterator[str]:
    """apt has no lists for a source, and finds neither an InRelease nor a Release file there."""
    rows = [line.split("\t") for line in ctx.text(RELEASES).splitlines()]
    ours, unread = _ours(ctx), _unread(ctx)
    for _, place, repository, message in sorted(row for row in rows if len(row) == 4 and row[0] == "missing"):
        file = place.rpartition(":")[0]
        dropped = file in ours and repository.startswith(("file:", "copy:"))
        if not dropped and not any(text in repository and file not in kept for text, kept in unread):
            yield f"{place}: {repository}: {message}"


def renamed(ctx: AuditContext) -> Iterator[str]:
    """apt has fetched a Release file without accepting it (directory ``partial``): the file has another origin, label,
    suite or codename than apt's earlier list.
    """
    for row in (line.split("\t") for line in ctx.text(RENAMED).splitlines()):
        if len(row) == 5:
            files, address, name, before, after = row
            where = ", ".join(files.split()) or "a source list"
            yield f"{where}: {address.replace('/dists/', ' ')} changed its '{name}' value from '{before}' to '{after}'"


def _unread(ctx: AuditContext) -> list[tuple[str, frozenset[str]]]:
    states = (state for role in ctx.desired.roles for state in role.resources if isinstance(state, SourcesDisabled))
    return [(text, state.kept) for state in states for text in state.texts]


def proxy_refuses(ctx: AuditContext) -> Iterator[str]:
    """apt cannot reach its proxy, the proxy requires a login, or the program that selects the proxy fails. The check is
    one request of at most 8 s.
    """
    proxy = finder = ""
    named = set[str]()
    for line in ctx.text(PROXIES).splitlines():
        kind, _, rest = line.partition(" ")
        if kind in {"proxy", "finder"} and rest.startswith(("http ", "https ")):
            value = rest.partition(" ")[2]
            proxy, finder = (value, "") if kind == "proxy" else ("", value)
            if value in named:
                proxy = finder = ""
            continue
        dead = _DEAD.search(line)
        fault = ""
        if finder and line.startswith("E: "):
            fault = f"the program {finder}, which names apt's proxy, fails: {line.removeprefix('E: ').strip()}"
        elif proxy and dead and dead[1].rstrip(":.").partition(":")[0] in proxy:
            fault = f"the proxy {proxy} does not answer: {line.strip()}"
        elif proxy and _REFUSED.search(line):
            fault = f"the proxy {proxy} refuses: {line.strip()}"
        if fault:
            named.add(proxy or finder)
            proxy = finder = ""
            yield fault


KEY_EXPIRED = Sign("base", key_expired, (KEYRINGS,))
KEYRING_UNREADABLE = Sign("base", keyring_unreadable, (KEYRINGS,))
OWN_KEYRING_UNREADABLE = Sign("base", own_keyring_unreadable, (KEYRINGS,), provision=True)
PROXY_REFUSES = Sign("base", proxy_refuses, (PROXIES,))
REPOSITORY_CHANGED = Sign("base", renamed, (RENAMED,), grave=False)
WITHOUT_RELEASE = Sign("base", without_release, (RELEASES,), grave=False)

FOREIGN = FailureRule(
    "foreign-keyring",
    "",
    "apt cannot verify a repository that nothing here needs: updates report errors, and its lists are not updated",
    "Fetch its key into the keyring that the evidence names, or remove its list from /etc/apt/sources.list.d",
    "apt-secure(8); apt methods/gpgv.cc",
    variants=(
        Variant(
            r"holds only keys that expired",
            "the key of a repository that nothing here needs has expired: updates report errors, and its lists are "
            "not updated",
            "Fetch the vendor's renewed key into the keyring that the evidence names, or remove its list from"
            " /etc/apt/sources.list.d",
        ),
    ),
    sign=Sign("base", foreign_keyring, (KEYRINGS,), grave=False),
)

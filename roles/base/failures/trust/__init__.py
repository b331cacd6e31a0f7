"""Signs of why apt will not fetch its lists: keys that expired, keyrings that are missing, a proxy that is dead."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from hostwright.audit.failures import FailureRule, Sign
from hostwright.common.quoting import sh_file
from hostwright.common.untrusted import Pattern
from hostwright.plan.model import Probe
from hostwright.resources.packages.repositories import DEARMOR, AptSource
from hostwright.standard.roles.base.failures.trust.openpgp import expired_on
from hostwright.standard.roles.base.failures.trust.sources import parsed

if TYPE_CHECKING:
    from hostwright.audit.judging.look import Look

KEYRINGS = Probe(DEARMOR + "\n" + sh_file(__file__, "keyrings.sh"), root=True, cap_bytes=1024 * 1024)
PROXIES = Probe(sh_file(__file__, "proxies.sh"), root=True)

#: the distributions' own keyrings: what lists name these is needed by every role
_OF_DISTRIBUTION = Pattern(r"/usr/share/keyrings/(debian|ubuntu)-archive-[\w-]+\.(gpg|pgp|asc)")
_DEAD = Pattern(
    r"(?:[Cc]ould not connect to|[Uu]nable to connect to|[Ff]ailed to connect to|[Rr]esolv(?:e|ing)"
    r"|initiate the connection to) '?([^'\s]+)"
)
_REFUSED = Pattern(r"\b407 |Invalid response from proxy|HTTP code \d{3} from proxy|[Pp]roxy [Aa]uthentication")


class Distrusted(NamedTuple):
    """A repository that apt cannot check with the keyrings that its source names, and ``line``, the evidence.

    ``needed`` says whether the stack or the distribution needs it, ``ours`` whether its source is one of the stack's,
    ``expired`` whether the keys are there and have all expired.
    """

    needed: bool
    ours: bool
    line: str
    expired: bool


def broken(look: Look) -> Iterator[Distrusted]:
    """The repositories whose keyring is missing, cannot be read by apt's user, or holds only expired keys."""
    rows = [line.split("\t", 3) for line in look.text(KEYRINGS).split("\n")]
    states = {row[1]: row[2] for row in rows if row[0] == "ring" and len(row) == 3}
    lines = [row for row in rows if row[0] == "source" and len(row) == 4 and row[2].isdecimal() and len(row[2]) < 9]
    ours = {state.path for role in look.desired.roles for state in role.resources if isinstance(state, AptSource)}
    for file, numbered in groupby(lines, key=lambda row: row[1]):
        for source in parsed(file, [(int(row[2]), row[3]) for row in numbered]):
            paths = [path for path in source.signed_by if path.startswith("/")]
            faults = [_fault(states.get(path, ""), look.now) for path in paths]
            if faults and all(faults) and len(paths) == len(source.signed_by):  # one good keyring is enough for apt
                needed = file in ours or any(_OF_DISTRIBUTION.fullmatch(path) for path in paths)
                named = ", ".join(f"{path} {fault}" for path, fault in zip(paths, faults, strict=True))
                expired = all("expired" in fault for fault in faults)
                yield Distrusted(needed, file in ours, f"{source}: {named}", expired)


def _fault(state: str, now: datetime) -> str:
    """What is wrong with a keyring; empty where nothing is, or nobody can tell."""
    if state == "missing":
        return "is missing"
    if state == "unreadable":
        return "cannot be read by apt's user _apt"
    try:
        last = expired_on(bytes.fromhex(state), now)
    except ValueError:
        return ""
    return f"holds only keys that expired, the last on {last.astimezone(UTC):%Y-%m-%d}" if last else ""


def key_expired(look: Look) -> Iterator[str]:
    """All keys in the keyring of a repository that the stack or the distribution needs have expired."""
    yield from (ring.line for ring in broken(look) if ring.needed and ring.expired)


def keyring_unreadable(look: Look) -> Iterator[str]:
    """The distribution's own keyring is missing, or apt's user cannot read it; the stack's are states of their own."""
    yield from (ring.line for ring in broken(look) if ring.needed and not ring.expired and not ring.ours)


def foreign_keyring(look: Look) -> Iterator[str]:
    """The keyring of a repository of others is missing, cannot be read by apt's user, or holds only expired keys."""
    yield from (ring.line for ring in broken(look) if not ring.needed)


def proxy_refuses(look: Look) -> Iterator[str]:
    """A proxy is configured for apt, and apt does not reach it, or it wants a login (one request of apt's, 8 s)."""
    proxy = ""
    for line in look.text(PROXIES).splitlines():
        if line.startswith("proxy ") and line.count(" ") == 2:
            proxy = line.split(" ")[2]
            continue
        dead = _DEAD.search(line)
        if proxy and dead and dead[1].rstrip(":.").partition(":")[0] in proxy:
            yield f"the proxy {proxy} does not answer: {line.strip()}"
            proxy = ""
        elif proxy and _REFUSED.search(line):
            yield f"the proxy {proxy} refuses: {line.strip()}"
            proxy = ""


KEY_EXPIRED = Sign("base", key_expired, (KEYRINGS,))
KEYRING_UNREADABLE = Sign("base", keyring_unreadable, (KEYRINGS,))
PROXY_REFUSES = Sign("base", proxy_refuses, (PROXIES,))

FOREIGN = FailureRule(
    "foreign-keyring",
    "",
    "a repository that nothing here needs cannot be checked by apt: updates complain, and bring nothing new of it",
    "Fetch its key into the keyring that the evidence names, or remove its list from /etc/apt/sources.list.d",
    "apt-secure(8); apt methods/gpgv.cc",
    sign=Sign("base", foreign_keyring, (KEYRINGS,), grave=False),
)

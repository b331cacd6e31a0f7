"""apt repositories: a vendor's repository in a ``.deb``, its key, its source list, and sources that must not be read.

Keys lie in files of their own that ``signed-by`` names: such a key vouches for that one repository, and ``apt-key``,
which made every key vouch for every repository, is never used.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hostwright.common.errors import InputError
from hostwright.common.quoting import sh, sh_file
from hostwright.plan.host.hostfacts import OS_RELEASE, os_release
from hostwright.plan.model import Change, Facts, Probe, Resource, Step
from hostwright.plan.state_identity import NO_IDENTITY
from hostwright.resources.conditions import Differs
from hostwright.resources.files.files import File
from hostwright.resources.files.paths import ABSENT
from hostwright.resources.files.paths_gone import Original
from hostwright.resources.originals import keep_original, note_installed
from hostwright.resources.packages.debs_gone import DebsGone
from hostwright.resources.packages.packages import APT_GET, DPKG, DPKG_LOCK, dpkg_table
from hostwright.resources.packages.sources_gone import DISABLED, ListsGone, SourcesRead, basic_regex
from hostwright.stack.stack import Artifact
from hostwright.stack.store.hostcache import host_path

#: ``dearmor FILE``: the key's bytes, whether FILE is ASCII-armored or not
DEARMOR = sh_file(__file__, "sh/dearmor.sh")

NO_SOURCE = 3  #: what the question about a key ends with when there is nothing to compare it with
LOCK_WAIT_S = 600  #: as long as apt-get waits for it (``dpkg.APT_OPTIONS``)


def deb_version(file: str) -> str:
    """The version in a package file's name, ``NAME_VERSION_ARCHITECTURE.deb``; anything else is an ``InputError``."""
    parts = file.removesuffix(".deb").split("_")
    if len(parts) != 3 or not file.endswith(".deb"):
        raise InputError(f"{file} is not named like a Debian package (name_version_architecture.deb)")
    return parts[1]


@dataclass(frozen=True, slots=True)
class LocalRepo:
    """A package that is an apt repository: it unpacks its packages and its key below ``/var``.

    ``dpkg`` itself installs it: ``apt-get`` would hash the gigabytes that were checked when they came (four times as
    slow, measured). dpkg does not wait for a lock that another program holds, so the waiting is done here.
    The vendor's ``list_file`` names no key, so the one that ``AptSource`` wrote is kept when the package comes again.
    """

    package: str
    artifact: Artifact
    key_file: str
    list_file: str

    def probes(self) -> tuple[Probe, ...]:
        return (DPKG, Probe(sh("test -s %s", self.key_file)))

    def plan(self, facts: Facts) -> Change | None:
        version = deb_version(self.artifact.file)
        row = dpkg_table(facts).get(self.package)
        complete = facts[self.probes()[1]].ok
        if row and row.present and row.version == version and complete:
            return None
        have = ABSENT if not row or not row.present else row.version if complete else f"{row.version}, damaged"
        install = sh_file(
            __file__,
            "sh/local_repo.sh",
            deb=host_path(self.artifact),
            list_file=self.list_file,
            lock_wait_s=LOCK_WAIT_S,
        )
        script = note_installed((self.package,)) + "\n" + install
        return Change(
            f"repository {self.package}", have, version, (Step(script, DPKG_LOCK),), artifacts=(self.artifact.name,)
        )

    def removal(self) -> tuple[Resource, ...]:
        return (DebsGone((self.package,)),)


@dataclass(frozen=True, slots=True)
class RepoDropped:
    """A local repository whose package is gone once everything that it is ``needed_for`` is in order.

    It is planned together with the changes that need the repository, so that what is left behind is never a surprise.
    """

    package: str
    needed_for: Differs

    def probes(self) -> tuple[Probe, ...]:
        return (DPKG, *self.needed_for.probes())

    def plan(self, facts: Facts) -> Change | None:
        row = dpkg_table(facts).get(self.package)
        present = row is not None and (row.present or row.broken)
        if not present and not self.needed_for.holds(facts):
            return None
        script = APT_GET + sh(" purge %s", self.package)
        have = "installed" if present else "installed by this plan"
        want = f"{ABSENT} (frees its copy in /var)"
        return Change(f"repository {self.package}", have, want, (Step(script, DPKG_LOCK),))

    def removal(self) -> tuple[Resource, ...]:
        return (DebsGone((self.package,)),)


@dataclass(frozen=True, slots=True)
class Keyring:
    """A repository's key at ``path``, equal to the one in ``source``, a file on the host, armored or not.

    ``source`` is inside an installed package, or is the host's copy of ``artifact``. With a ``fingerprint`` (40
    hexadecimal digits) a file that holds any other key is never taken over; ``gpg`` must be on the host then.
    Where the artifact's copy is no longer on the host, a key that is there is believed; where the package is not,
    it comes again, and with it perhaps another key.
    """

    path: str
    source: str
    fingerprint: str | None = None
    artifact: str = ""

    def probes(self) -> tuple[Probe, ...]:
        lines = [
            DEARMOR,
            sh('test -s %s && [ "$(stat -c %%a:%%U -- %s)" = 644:root ] || exit 1', self.path, self.path),
            sh("test -e %s || exit %s", self.source, NO_SOURCE),
            sh("dearmor %s | cmp -s - %s", self.source, self.path),
        ]
        return (Probe("\n".join(lines)),)

    def plan(self, facts: Facts) -> Change | None:
        answer = facts[self.probes()[0]]
        if answer.ok or (answer.status == NO_SOURCE and self.artifact):
            return None
        take = sh_file(
            __file__, "sh/keyring.sh", source=self.source, path=self.path, fingerprint=self.fingerprint or ""
        )
        script = keep_original(self.path) + "\n" + DEARMOR + take
        return Change(
            f"key {self.path}",
            "absent or another",
            self.fingerprint or f"the key in {self.source}",
            (Step(script),),
            artifacts=(self.artifact,) if self.artifact else (),
        )

    def removal(self) -> tuple[Resource, ...]:
        return (Original(self.path),)


@dataclass(frozen=True, slots=True)
class AptSource:
    """A source list with one repository and the key that vouches for it.

    ``{distribution}`` and ``{codename}`` in ``uri`` and ``suite`` stand for the host's ``ID`` and ``VERSION_CODENAME``.
    """

    path: str
    uri: str
    suite: str
    keyring: str
    components: tuple[str, ...] = ()

    def probes(self) -> tuple[Probe, ...]:
        return (OS_RELEASE, *File(self.path, "").probes())

    def plan(self, facts: Facts) -> Change | None:
        release = os_release(facts)
        line = f"deb [signed-by={self.keyring}] {' '.join((self.uri, self.suite, *self.components))}\n"
        line = line.replace("{distribution}", release.get("ID", "")).replace(
            "{codename}", release.get("VERSION_CODENAME", "")
        )
        return File(self.path, line).plan(facts)

    def removal(self) -> tuple[Resource, ...]:
        return (Original(self.path), ListsGone(self.uri, self.path))


@dataclass(frozen=True, slots=True)
class SourcesDisabled:
    """No apt source whose line holds one of these texts is read, but for the file ``keep``.

    A line of a ``.list`` becomes a comment; a ``.sources`` file gets the ending ``.disabled``, which apt passes over.
    """

    texts: tuple[str, ...]
    because: str = field(metadata=NO_IDENTITY)
    keep: str = ""

    def probes(self) -> tuple[Probe, ...]:
        wanted = " ".join(sh("-e %s", text) for text in self.texts)
        return (Probe(f"grep -rHsF {wanted} /etc/apt/sources.list /etc/apt/sources.list.d", root=True),)

    def plan(self, facts: Facts) -> Change | None:
        found: dict[str, str] = {}
        for entry in facts[self.probes()[0]].text.splitlines():
            path, _, line = entry.partition(":")
            if path.endswith((".list", ".sources")) and path != self.keep and not line.lstrip().startswith("#"):
                found.setdefault(path, line.strip())
        if not found:
            return None
        have = "; ".join(f"{path}: {line}" for path, line in found.items())
        return Change(
            "apt sources " + " ".join(self.texts),
            have,
            f"not read ({self.because})",
            (Step("\n".join(self._disable(path) for path in found), DPKG_LOCK),),
        )

    def _disable(self, path: str) -> str:
        if path.endswith(".sources"):
            return keep_original(path) + "\n" + sh("mv -fT -- %s %s", path, f"{path}.disabled")
        edits = [f"\\|^[[:space:]]*deb.*{basic_regex(text)}|s|^|{DISABLED}|" for text in self.texts]
        return sh("sed -i %s %s", "\n".join(edits), path)

    def removal(self) -> tuple[Resource, ...]:
        return (SourcesRead(self.texts),)

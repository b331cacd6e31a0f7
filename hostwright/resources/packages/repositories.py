"""States of apt repositories: a vendor's repository in a ``.deb``, keys, source lists, and disabled sources.

Each key is in its own file, and ``signed-by`` names this file, so that apt trusts the key for one repository only.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hostwright.common.errors import InputError
from hostwright.common.quoting import sh, sh_file
from hostwright.plan.host.hostfacts import OS_RELEASE, os_release
from hostwright.plan.model import Answer, Change, Facts, Pass, PassPart, Probe, Refusal, Resource, Step
from hostwright.plan.roles.software import Software
from hostwright.plan.state_identity import NO_IDENTITY
from hostwright.resources.conditions import Differs
from hostwright.resources.files import passes
from hostwright.resources.files.files import File
from hostwright.resources.files.paths import ABSENT
from hostwright.resources.files.paths_gone import Original
from hostwright.resources.originals import keep_original, note_installed
from hostwright.resources.packages.debs_gone import TAKE, DebsGone
from hostwright.resources.packages.dpkg import deb_software
from hostwright.resources.packages.openpgp import fingerprints
from hostwright.resources.packages.packages import DPKG, DPKG_LOCK, dpkg_table
from hostwright.resources.packages.sources_gone import (
    DISABLED,
    ListsGone,
    SourcesRead,
    basic_regex,
    deb822,
    in_place,
    of_release,
)
from hostwright.stack.stack import AptRepository, Artifact, Stack
from hostwright.stack.store.hostcache import host_path

#: shell function ``dearmor FILE`` that prints the key in FILE in binary form, even if FILE is ASCII-armored
DEARMOR = sh_file(__file__, "sh/dearmor.sh")

NO_SOURCE = 3  #: exit status of the probe for a key if the file for comparison is missing
LOCK_WAIT_S = 600  #: time limit in seconds for getting dpkg's lock, as in ``dpkg.APT_OPTIONS``


def deb_version(file: str) -> str:
    """Version in a package file's name. Raises ``InputError`` unless ``file`` is ``NAME_VERSION_ARCHITECTURE.deb``."""
    parts = file.removesuffix(".deb").split("_")
    if len(parts) != 3 or not file.endswith(".deb"):
        raise InputError(f"{file} is not the name of a Debian package file; rename it to NAME_VERSION_ARCHITECTURE.deb")
    return parts[1]


@dataclass(frozen=True, slots=True)
class LocalRepo(Resource):
    r"""A package that contains an apt repository is installed: its packages and its key are unpacked on the host.

    An existing ``list_file`` is kept. When the role is removed, the package is removed, unless it was installed before.

    >>> file = Artifact(name="repo", file="tool-repo_1.2-1_amd64.deb", sha256="0" * 64)
    >>> repo = LocalRepo("tool-repo", file, "/var/tool-repo/key.pub", "/etc/apt/sources.list.d/tool.list")
    >>> print(plan_text(repo))
    ~ repository tool-repo: absent → 1.2-1
    >>> print(plan_text(repo, {"dpkg-query": "tool-repo\t1.2-1\tii \n"}))
    ~ repository tool-repo: 1.2-1, damaged → 1.2-1
    """

    package: str  #: name of the package
    artifact: Artifact  #: package file with a name of the form ``NAME_VERSION_ARCHITECTURE.deb``
    #: path of the key that the package installs; if the key is missing or empty, the package is damaged
    key_file: str
    list_file: str  #: path of the source list that the package installs and ``AptSource`` replaces

    def probes(self) -> tuple[Probe, ...]:
        return (DPKG, Probe(sh("test -s %s", self.key_file), part=passes.filled(self.key_file)))

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

    def software(self, facts: Facts) -> tuple[Software, ...]:
        version = deb_version(self.artifact.file)
        return (deb_software(facts, self.package, version, artifact=self.artifact, brought=True),)

    def repositories(self) -> Mapping[str, Artifact]:
        return {self.list_file: self.artifact}

    def removal(self) -> tuple[Resource, ...]:
        return (DebsGone((self.package,)),)


@dataclass(frozen=True, slots=True)
class RepoDropped(Resource):
    r"""A repository on the host's own disk is removed once all states that need it are reached.

    A plan for a new host includes the removal. Packages that were installed from the repository are kept.

    >>> from hostwright.resources.packages.packages import Debs
    >>> dropped = RepoDropped("tool-repo", Differs((Debs(("tool",)),)))
    >>> print(plan_text(dropped, {"dpkg-query": "tool\t1.2\tii \ntool-repo\t1.2-1\tii \n"}))
    ~ repository tool-repo: installed → absent (frees its copy in /var)
    """

    package: str  #: name of the package that contains the repository, as in ``LocalRepo``
    needed_for: Differs  #: condition that holds while the repository is needed

    def probes(self) -> tuple[Probe, ...]:
        return (DPKG, *self.needed_for.probes())

    def plan(self, facts: Facts) -> Change | None:
        row = dpkg_table(facts).get(self.package)
        present = row is not None and (row.present or row.broken)
        if not present and not self.needed_for.holds(facts):
            return None
        script = TAKE + sh("take purge %s", self.package)
        have = "installed" if present else "installed by this plan"
        want = f"{ABSENT} (frees its copy in /var)"
        return Change(f"repository {self.package}", have, want, (Step(script, DPKG_LOCK),))

    def removal(self) -> tuple[Resource, ...]:
        return (DebsGone((self.package,)),)


@dataclass(frozen=True, slots=True)
class Keyring(Resource):
    r"""A repository's key is at ``path``, where apt reads it, and is the key in ``source``.

    If the key in ``source`` has another fingerprint than ``fingerprint``, the change fails. If ``source`` is a missing
    copy of an artifact, a key at ``path`` with the right fingerprint is enough. If ``source`` is the file of a missing
    package, that package is first installed again. When the role is removed, the former file at ``path`` is restored.

    >>> print(plan_text(Keyring("/usr/share/keyrings/tool.gpg", "/var/tool-repo/key.pub")))
    ~ key /usr/share/keyrings/tool.gpg: absent → the key in /var/tool-repo/key.pub
    """

    path: str  #: path of the keyring
    source: str  #: path of a key file from a package, or of the host's copy of ``artifact``, ASCII-armored or not
    #: fingerprint of the key in 40 uppercase hexadecimal digits
    fingerprint: str | None = None
    artifact: str = ""  #: name of the artifact of which ``source`` is a copy; empty if a package contains ``source``

    def probes(self) -> tuple[Probe, ...]:
        folder = self.path.rpartition("/")[0]
        lines = [
            f"{DEARMOR}held() {{",
            sh("test -x %s || { stat -c 'directory of mode %%a of %%U' -- %s; return 1; }", folder, folder),
            sh("test -f %s && test -s %s || return 1", self.path, self.path),
            sh("test -r %s || { stat -c 'mode %%a of %%U' -- %s; return 1; }", self.path, self.path),
            sh("key=$(base64 -w 0 <%s) && printf '%%s\\n' \"$key\"", self.path),
            sh('[ "$(stat -c %%a:%%U -- %s)" = 644:root ] || return 1', self.path),
            sh("test -e %s || return %s", self.source, NO_SOURCE),
            sh('armored %s "$key" || dearmor %s | cmp -s - %s', self.source, self.source, self.path),
            "}\nheld",
        ]
        return (Probe("\n".join(lines), shared=True),)

    def plan(self, facts: Facts) -> Change | None:
        answer = facts[self.probes()[0]]
        held = _held(answer.text)
        is_right = not self.fingerprint or held == self.fingerprint
        if is_right and (answer.ok or (answer.status == NO_SOURCE and self.artifact)):
            return None
        take = sh_file(
            __file__, "sh/keyring.sh", source=self.source, path=self.path, fingerprint=self.fingerprint or ""
        )
        script = keep_original(self.path) + "\n" + DEARMOR + take
        return Change(
            f"key {self.path}",
            f"{held}, but in another file or mode" if held == self.fingerprint else held,
            self.fingerprint or f"the key in {self.source}",
            # steps of several roles may write the key of a shared repository at the same time
            (Step(script, DPKG_LOCK),),
            artifacts=(self.artifact,) if self.artifact else (),
        )

    def removal(self) -> tuple[Resource, ...]:
        return (Original(self.path),)


def _held(text: str) -> str:
    if not text.strip():
        return ABSENT
    if text.startswith(("mode ", "directory of mode ")):
        return f"{text.strip()}, readable only by root"
    try:
        found = fingerprints(base64.b64decode(text, validate=False))
    # a damaged or ASCII-armored keyring raises these errors, and apt reads an ASCII-armored keyring only from *.asc
    except (ValueError, IndexError):
        found = ()
    return ", ".join(found) or "no OpenPGP key"


@dataclass(frozen=True, slots=True)
class AptSource(Resource):
    r"""A source list names one repository and the key that signs it.

    When the role is removed, the former file at ``path`` is restored. apt's lists of the repository are removed, unless
    another source names this repository.

    >>> path, key = "/etc/apt/sources.list.d/tool.list", "/usr/share/keyrings/tool.gpg"
    >>> source = AptSource(path, "https://example.org/{distribution}", "{codename}", key, ("main",))
    >>> print(plan_text(source, {"os-release": "ID=debian\nVERSION_CODENAME=bookworm\n"}))
    ~ file /etc/apt/sources.list.d/tool.list: absent → 644 root:root
    """

    path: str  #: path of the source list, below ``/etc/apt/sources.list.d``
    #: URI of the repository. ``{distribution}`` stands for the host's ``ID`` in os-release, ``{codename}`` for
    #: ``VERSION_CODENAME``, and ``{release}`` for ``VERSION_ID`` without the dot.
    uri: str
    suite: str  #: suite of the repository, with the same placeholders as in ``uri``
    keyring: str  #: path of the keyring with the key that signs the repository (``Keyring.path``)
    components: tuple[str, ...] = ()  #: components of the repository; empty if ``suite`` ends with ``/``

    def probes(self) -> tuple[Probe, ...]:
        known = "{" not in self.uri + self.suite
        return (OS_RELEASE, *File(self.path, self._line({}) if known else "").probes())

    def plan(self, facts: Facts) -> Change | Refusal | None:
        # steps of several roles may write the list of a shared repository at the same time
        return File(self.path, self._line(os_release(facts)), lock=DPKG_LOCK).plan(facts)

    def _line(self, release: Mapping[str, str]) -> str:
        line = f"deb [signed-by={self.keyring}] {' '.join((self.uri, self.suite, *self.components))}\n"
        return of_release(line, release)

    def removal(self) -> tuple[Resource, ...]:
        return (Original(self.path), ListsGone(self.uri, self.path))


def signed_repository(repository: AptRepository, stack: Stack) -> Iterator[Resource]:
    """States of an apt repository: its key, checked against the fingerprint, and its source list."""
    key = stack.artifact(repository.key)
    yield Keyring(repository.keyring, host_path(key), repository.fingerprint, key.name)
    yield AptSource(repository.list_file, repository.uri, repository.suite, repository.keyring, repository.components)


@dataclass(frozen=True, slots=True)
class SourcesDisabled(Resource):
    r"""apt reads no source with one of these texts in its line, except the files ``keep`` and ``others``.

    A line of a ``.list`` file becomes a comment. In a ``.sources`` file the stanza gets ``Enabled: no``, or loses the
    matching URIs if the stanza names other repositories too. When the role is removed, the sources are enabled again.

    >>> source = "/etc/apt/sources.list.d/tool.list"
    >>> single = SourcesDisabled(("example.org/tool",), "one source is enough", keep=source)
    >>> print(plan_text(single, {"grep": "/etc/apt/sources.list:deb https://example.org/tool ./\n"}))
    ~ apt sources example.org/tool: /etc/apt/sources.list: deb https://example.org/tool ./
    → not read (one source is enough)
    """

    texts: tuple[str, ...]  #: texts that identify the source lines to disable, such as ``example.org/tool``
    because: str = field(metadata=NO_IDENTITY)  #: reason in the plan for disabling the sources
    keep: str = ""  #: path of a source list that stays enabled
    others: tuple[str, ...] = ()  #: paths of other roles' source lists that stay enabled

    @property
    def kept(self) -> frozenset[str]:
        return frozenset({self.keep, *self.others})

    def probes(self) -> tuple[Probe, ...]:
        lines = (
            naming(self.texts, LISTS_READ),
            "for path in /etc/apt/sources.list.d/*.sources; do",
            '  [ ! -f "$path" ] || stanzas look "$path"',
            "done; exit 0",
        )
        return (Probe(deb822(self.texts) + "\n".join(lines), root=True, part=named_in_lists(self.texts)),)

    def plan(self, facts: Facts) -> Change | None:
        sources: dict[str, str] = {}
        for entry in facts[self.probes()[0]].text.splitlines():
            path, _, line = entry.partition(":")
            if path.endswith((".list", ".sources")) and path not in self.kept and not line.lstrip().startswith("#"):
                sources.setdefault(path, line.strip())
        if not sources:
            return None
        have = "; ".join(f"{path}: {line}" for path, line in sources.items())
        return Change(
            "apt sources " + " ".join(self.texts),
            have,
            f"not read ({self.because})",
            (Step("\n".join(self._disable(path) for path in sources), DPKG_LOCK),),
        )

    def _disable(self, path: str) -> str:
        if path.endswith(".sources"):
            return deb822(self.texts) + in_place("off", path)
        edits = [f"\\|^[[:space:]]*deb.*{basic_regex(text)}|s|^|{DISABLED}|" for text in self.texts]
        return sh("sed -i --follow-symlinks %s %s", "\n".join(edits), path)

    def removal(self) -> tuple[Resource, ...]:
        return (SourcesRead(self.texts),)


LISTS_READ = "/etc/apt/sources.list /etc/apt/sources.list.d/*.list"
STANZAS_READ = "/etc/apt/sources.list.d/*.sources"


def naming(texts: Sequence[str], files: str) -> str:
    """Command that searches ``files`` (shell words) for ``texts``, and prints ``FILE:LINE`` for each match."""
    return f"grep -HsF {' '.join(sh('-e %s', text) for text in texts)} -d skip -D skip -- {files}"


class SourcePass(Pass):
    """Combined probe that searches apt's sources for the texts of many probes with one ``grep``.

    A text in a deb822 file needs its own probe, because the stanza may be disabled.
    """

    fails_with = 2

    def script(self, asked: Sequence[str]) -> str:
        """Search apt's sources and standard input: a match of the first text in standard input proves that ``grep``
        worked.
        """
        return "\n".join([f"{naming(asked, f'{LISTS_READ} {STANZAS_READ} -')} <<'END'", asked[0], "END"])

    def differing(self, _word: str, /) -> str:
        return ".sources:"

    def found(self, asked: Sequence[str], text: str) -> Mapping[str, str]:
        own = f"(standard input):{asked[0]}\n"
        if not text.endswith(own):
            raise ValueError("grep printed unexpected output")
        return dict.fromkeys(asked, text.removesuffix(own))


SOURCES = SourcePass()


def named_in_lists(texts: Sequence[str]) -> PassPart:
    """Part of the combined probe: lines with one of ``texts`` in source lists, as ``naming`` prints them."""

    def read(found: Mapping[str, str]) -> Answer:
        lines = found[texts[0]].splitlines(keepends=True)
        return Answer(0, "".join(line for line in lines if any(text in line.partition(":")[2] for text in texts)))

    return PassPart(SOURCES, tuple(texts), read)

"""Runs this machine's apt on the archive of any distribution, with a separate directory for apt's state.

apt uses this machine's archive addresses, proxies and credentials, but not this machine's package lists and caches.
Package lists must be signed by the distribution's key.
"""

from __future__ import annotations

import gzip
import os
import platform
import shutil
import subprocess
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from hostwright.common.command import Command
from hostwright.common.errors import ArtifactError
from hostwright.common.places import write_whole
from hostwright.common.text import one_line, printable
from hostwright.stack.store.debs import LockedPackages

#: maximum size in bytes of the package list in a repository (our choice)
_MOST_LIST_BYTES = 64 * 1024 * 1024


def list_in(repository: Path) -> bytes:
    """Return the package list in ``repository``, a package file with an apt repository.

    Raises ``ArtifactError`` if the file contains no package list.
    """
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
        raise ArtifactError(f"{repository} contains no package list (Packages or Packages.gz)")
    return found


def _found(program: subprocess.Popen[bytes]) -> bytes | None:
    with tarfile.open(fileobj=program.stdout, mode="r|") as tar:
        for member in tar:
            name = PurePosixPath(member.name).name
            if name in {"Packages", "Packages.gz"} and member.isfile() and (file := tar.extractfile(member)):
                data = file.read(_MOST_LIST_BYTES)
                return data if name == "Packages" else gzip.decompress(data)
    return None


ARCHITECTURE = "amd64"
#: distribution as in lock files → codename that apt sources use
CODENAMES = {
    "debian-10": "buster", "debian-11": "bullseye", "debian-12": "bookworm", "debian-13": "trixie",
    "ubuntu-18.04": "bionic", "ubuntu-20.04": "focal", "ubuntu-22.04": "jammy", "ubuntu-24.04": "noble",
    "ubuntu-26.04": "resolute",
}  # fmt: skip
#: suffixes of a release's suites (``/updates`` for security before Debian 11)
_POCKETS = ("", "-updates", "-security", "/updates")
_COMPONENTS = {
    "debian": {"main", "contrib", "non-free", "non-free-firmware"},
    "ubuntu": {"main", "restricted", "universe", "multiverse"},
}
#: path of the keyring that the package DISTRIBUTION-archive-keyring installs
_KEYRING = "/usr/share/keyrings/{}-archive-keyring.gpg"
#: time limit in seconds for fetching package lists, our estimate for 50 MB at 0.03 MB/s
_APT_TIMEOUT_S = 1800.0
_TARGETS = "$(REPO_URI) $(RELEASE) $(COMPONENT) $(ORIGIN)"
#: prefixes of names of apt settings that are copied from this machine
_TAKEN = ("Acquire::http", "Acquire::https", "Acquire::Retries", "Acquire::ForceIPv")
_ONLINE = "check this machine's network and apt's list of sources, or select another with --sources FILE"
_EXPLAINED = 3  #: maximum number of lines from apt's output in an error text


@dataclass(frozen=True, slots=True)
class Distribution:
    """A release of a distribution: ID, VERSION_ID and VERSION_CODENAME in ``/etc/os-release``."""

    identity: str
    version: str
    codename: str

    def __str__(self) -> str:
        return f"{self.identity}-{self.version}"


@dataclass(frozen=True, slots=True)
class AptArchive:
    """The distribution's archive to use: apt sources and signing keys.

    ``sources`` is a file with apt sources, by default this machine's sources. ``keyring`` is a file with keys, by
    default from the distribution's keyring package. ``components`` are used in addition to the components in the
    sources.
    """

    sources: Path | None = None
    keyring: Path | None = None
    components: tuple[str, ...] = ()


class PrivateApt:
    """This machine's apt with a separate state directory, for the archive of one distribution."""

    def __init__(self, folder: Path, distribution: Distribution, archive: AptArchive):
        if shutil.which("apt-get") is None:
            raise ArtifactError(
                f"this machine has no apt to resolve packages; run {Command('mirror')} with the same inventory on a "
                "Debian or Ubuntu machine (or in a container), and commit the lock file. With this file, any machine "
                "can fetch the packages, or take them from a directory by --from DIR"
            )
        self._folder = folder
        self._of = distribution
        self._archive = archive
        self._config = folder / "apt.conf"

    @property
    def local(self) -> str:
        """The prefix of the addresses of packages that come from ``repositories`` instead of the archive."""
        return f"file://{self._folder}/local/"

    def prepare(self, before: LockedPackages, repositories: Sequence[Path]) -> None:
        """Fetch the archive's package lists, and make apt prefer the versions in ``before``.

        ``repositories`` are package files that contain further packages.
        """
        for name in ("lists/partial", "cache/archives/partial", "named"):
            (self._folder / name).mkdir(parents=True, exist_ok=True)
        keyring = self._keyring()
        lines = [
            f"deb [arch={ARCHITECTURE} signed-by={keyring}] {uri} {suite} {' '.join(sorted(components))}\n"
            for (uri, suite), components in self._repositories().items()
        ]
        stanzas = (
            f"Package: {deb.package}\nPin: version {deb.version}\nPin-Priority: 991\n" for deb in before.packages
        )
        lines += [f"deb [trusted=yes] file:{place} ./\n" for place in map(self._unpacked, repositories)]
        (self._folder / "sources.list").write_text("".join(lines))
        (self._folder / "preferences").write_text("\n".join(stanzas))
        (self._folder / "status").touch()
        self._config.write_text(_settings(self._folder) + "".join(_reached()))
        done = self._run("apt-get", "-q", "update")
        faults = [line for line in (done.stdout + done.stderr).splitlines() if _is_fault(line)]
        if done.returncode != 0 or faults:
            text = printable(one_line("; ".join(faults[:_EXPLAINED]) or "apt-get update failed")).rstrip(".")
            raise ArtifactError(f"the package lists of {self._of} could not be fetched ({text}); {_ONLINE}")

    def _unpacked(self, repository: Path) -> Path:
        place = self._folder / "local" / repository.parent.name
        if not (place / "Packages").is_file():
            place.mkdir(parents=True, exist_ok=True)
            write_whole(place / "Packages", list_in(repository), 0o644)
        return place

    def _keyring(self) -> Path:
        keyring = self._archive.keyring or Path(_KEYRING.format(self._of.identity))
        if not keyring.is_file():
            raise ArtifactError(
                f"the keyring {keyring} for the packages of {self._of} does not exist; install "
                f"{self._of.identity}-archive-keyring on this machine, or pass --keyring FILE"
            )
        return keyring.absolute()

    def _repositories(self) -> Mapping[tuple[str, str], set[str]]:
        found = list(self._targets(self._of.codename))
        mine = platform.freedesktop_os_release() if self._archive.sources is None else {}
        if not found and mine.get("ID") == self._of.identity and mine.get("VERSION_CODENAME"):
            found = list(self._targets(mine["VERSION_CODENAME"]))
        if not found:
            where = self._archive.sources or "apt on this machine"
            raise ArtifactError(
                f"{where} has no archive of {self._of} ({self._of.codename}); pass apt sources for it, as in /etc/apt "
                "of a host: `mirror --sources FILE`"
            )
        repositories: dict[tuple[str, str], set[str]] = {}
        for uri, pocket, component in found:
            more = self._archive.components if component == "main" else ()
            repositories.setdefault((uri, self._of.codename + pocket), set()).update((component, *more))
        return repositories

    def _targets(self, codename: str) -> Iterator[tuple[str, str, str]]:
        options: list[str] = []
        if named := self._archive.sources:
            shutil.rmtree(self._folder / "named")
            (self._folder / "named").mkdir()
            shutil.copyfile(named, self._folder / "named" / named.name)
            options = ["-o", "Dir::Etc::SourceList=/dev/null", "-o", f"Dir::Etc::SourceParts={self._folder}/named"]
        asked = ["apt-get", *options, "indextargets", "--format", _TARGETS, "Created-By: Packages"]
        listed = _program(asked)
        known = [line.split(" ") for line in listed.stdout.splitlines()]
        others = {(row[0], row[1]) for row in known if len(row) == 4 and row[3].casefold() != self._of.identity}
        all_of_them = _program([*asked[:-3], "--no-release-info", *asked[-3:]])
        components = _COMPONENTS.get(self._of.identity)
        for row in dict.fromkeys(all_of_them.stdout.splitlines()):
            uri, suite, component, *_ = [*row.split(" "), "", "", ""]
            pocket = suite.removeprefix(codename)
            ours = suite.startswith(codename) and pocket in _POCKETS and (uri, suite) not in others
            if ours and component and (components is None or component in components):
                yield uri, pocket, component

    def known(self, words: Iterable[str]) -> frozenset[str]:
        """Return those of ``words`` (``name`` or ``name=version``) that the archive or a repository has."""
        chosen = sorted(words)
        shown = {(stanza["Package"], stanza["Version"]) for stanza in self._show(chosen)}
        names = {name for name, _ in shown}
        parts = ((word, *word.partition("=")[::2]) for word in chosen)
        return frozenset(
            word for word, name, version in parts if ((name, version) in shown if version else name in names)
        )

    def resolve(self, words: Sequence[str]) -> Iterator[tuple[str, str, str]]:
        """Yield name, version and address of each package that a host without any package needs for ``words``."""
        done = self._run("apt-get", "-q", "--print-uris", "install", *words)
        if done.returncode != 0:
            kept = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
            why = [line for line in kept if "epends: " in line or "onflicts: " in line or "reaks: " in line] or kept[
                -1:
            ]
            raise ArtifactError(
                f"apt cannot install these packages together on {self._of}: {' '.join(words)}: "
                f"{printable(one_line('; '.join(why[:_EXPLAINED])))}"
            )
        for line in done.stdout.splitlines():
            uri, _, rest = line.removeprefix("'").partition("' ")
            # apt names a file NAME_VERSION_ARCHITECTURE.deb and writes the colon after an epoch as %3a
            parts = rest.split(" ")[0].split("_")
            if line.startswith("'") and len(parts) == 3:
                yield parts[0], parts[1].replace("%3a", ":"), self._address(uri)

    def _address(self, uri: str) -> str:
        """Raises ``ArtifactError`` if only apt can fetch from an address of this scheme."""
        scheme, _, rest = uri.partition(":")
        if scheme in {"http", "https"}:
            return uri
        if scheme == "file":
            return f"file:///{rest.lstrip('/')}"
        raise ArtifactError(
            f"apt fetches packages of {self._of} with the unsupported scheme '{scheme}'; pass sources with http, "
            "https or file addresses: `mirror --sources FILE`"
        )

    def stanzas(self, chosen: Mapping[str, tuple[str, str]]) -> list[dict[str, str]]:
        """Return the entries in the package lists for the packages and versions in ``chosen``."""
        return list(self._show([f"{name}={version}" for name, (version, _) in chosen.items()]))

    def _show(self, words: Sequence[str]) -> Iterator[dict[str, str]]:
        if not words:
            return
        # apt-cache exits with an error for one unknown name, but still prints all other entries
        done = self._run("apt-cache", "show", *words)
        for text in done.stdout.split("\n\n"):
            fields = [line.partition(":") for line in text.splitlines() if line[:1] not in {"", " ", "\t"}]
            stanza = {name: value.strip() for name, _, value in fields}
            if stanza.get("Package") and stanza.get("Version"):
                yield stanza

    def _run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return _program(command, APT_CONFIG=str(self._config))


def _program(command: Sequence[str], **settings: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            env={**os.environ, "LC_ALL": "C", **settings},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_APT_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ArtifactError(f"{command[0]} did not end within {_APT_TIMEOUT_S:.0f} s; {_ONLINE}") from None


def _settings(folder: Path) -> str:
    values = {
        "Dir::Etc::Main": "/dev/null",
        "Dir::Etc::Parts": "/dev/null",
        "Dir::Etc::SourceList": f"{folder}/sources.list",
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::Etc::Preferences": f"{folder}/preferences",
        "Dir::Etc::PreferencesParts": "/dev/null",
        "Dir::State": str(folder),
        "Dir::State::Lists": f"{folder}/lists",
        "Dir::State::status": f"{folder}/status",
        "Dir::State::extended_states": f"{folder}/extended_states",
        "Dir::Cache": f"{folder}/cache",
        "Dir::Log": f"{folder}/log",
        "APT::Architecture": ARCHITECTURE,
        "APT::Architectures": ARCHITECTURE,
        "APT::Install-Recommends": "false",
        "APT::Sandbox::User": "root",  # apt's user _apt may have no access to this directory
        # Ubuntu offers a phased update to some machines only, but all hosts must get the same versions.
        "APT::Get::Always-Include-Phased-Updates": "true",
        "APT::Update::Error-Mode": "any",
        "Acquire::Languages": "none",
        # a release's suite changes when the release becomes oldstable
        "Acquire::AllowReleaseInfoChange::Suite": "true",
        "Acquire::AllowReleaseInfoChange::Version": "true",
    }
    return "".join(f'{name} "{value}";\n' for name, value in values.items())


def _reached() -> Iterator[str]:
    for line in _program(["apt-config", "dump"]).stdout.splitlines():
        if line.startswith((*_TAKEN, "Dir::Etc::netrc", "Dir::Etc::netrcparts")):
            name, _, value = line.partition(" ")
            if name.startswith("Dir::"):
                value = f'"{Path("/etc/apt") / value.strip(chr(34) + ";")}";'
            yield f"{name} {value}\n"


def _is_fault(line: str) -> bool:
    return line.startswith(("E: ", "W: Failed to fetch", "W: GPG error", "W: An error occurred during the signature"))

"""Builds `.deb` packages and signed flat apt repositories of them, in the vendor's shape."""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from lab.programs import run
from lab.vendor.model import sha256_of

MAINTAINER = "Hostwright lab <lab@hostwright.invalid>"
#: value of the control field X-Hostwright-Stand-In
STAND_IN = "yes"
REPACKAGED = "packaging only; the files are NVIDIA's own, from Debian bullseye non-free"


@dataclass(frozen=True, slots=True)
class Control:
    """The control fields of a package; `summary` is the first line of its description."""

    package: str
    version: str
    summary: str
    depends: str = ""
    architecture: str = "amd64"
    stand_in: str = STAND_IN
    more: tuple[tuple[str, str], ...] = ()  #: further fields, as they stand

    @property
    def file_name(self) -> str:
        """The name that apt and vendors give the file."""
        return f"{self.package}_{self.version}_{self.architecture}.deb"

    def render(self, installed_kib: int) -> str:
        """Return the text of `DEBIAN/control`, without a final empty line."""
        fields = {
            "Package": self.package,
            "Version": self.version,
            "Architecture": self.architecture,
            "Maintainer": MAINTAINER,
            "Installed-Size": str(installed_kib),
            "Depends": self.depends,
            **dict(self.more),
            "X-Hostwright-Stand-In": self.stand_in,
            "Description": f"{self.summary}\n {self.notice}",
        }
        return "".join(f"{name}: {value}\n" for name, value in fields.items() if value)

    @property
    def notice(self) -> str:
        """One sentence that says what this package is, for whoever finds it on a host."""
        if self.stand_in == STAND_IN:
            return "Hostwright lab stand-in: has the vendor's package name, none of the vendor's files."
        return f"Hostwright lab: {self.stand_in}."


def build_deb(tree: Path, control: Control, directory: Path, scripts: Mapping[str, str] | None = None) -> Path:
    """Pack `tree` as a package into `directory` and return the file. `scripts` are maintainer scripts by name.

    Nothing is compressed: compressing 1.5 GB takes minutes, and dpkg of old suites cannot read zstd. Each package gets
    a file of its own outside /usr/share/doc that says what it is: dpkg lets packages without one "disappear".
    """
    own = tree / "usr/share/hostwright" / control.package
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text(f"{control.package} {control.version}: {control.notice}\n")
    files = sorted(path for path in tree.rglob("*") if path.is_file() and not path.is_symlink())
    sums = "".join(f"{_md5(path)}  {path.relative_to(tree)}\n" for path in files)
    meta = tree / "DEBIAN"
    meta.mkdir()
    (meta / "md5sums").write_text(sums)
    kib = sum(path.stat().st_size for path in files) // 1024 + 1
    (meta / "control").write_text(control.render(kib))
    for name, text in (scripts or {}).items():
        (meta / name).write_text(text)
        (meta / name).chmod(0o755)
    target = directory / control.file_name
    run(["dpkg-deb", "--root-owner-group", "-Znone", "--build", tree, target])
    shutil.rmtree(meta)
    return target


def write_repository(directory: Path, debs: Mapping[str, str], origin: str, label: str) -> None:
    """Write `Packages` and `Release` of a flat repository; `debs` maps each file name in it to its control text."""
    paragraphs = []
    for name, control in sorted(debs.items()):
        path = directory / name
        paragraphs.append(f"{control}Filename: ./{name}\nSize: {path.stat().st_size}\nSHA256: {sha256_of(path)}\n")
    packages = "\n".join(paragraphs).encode()
    (directory / "Packages").write_bytes(packages)
    digest = hashlib.sha256(packages).hexdigest()
    date = datetime.now(UTC).strftime("%a, %d %b %Y %H:%M:%S +0000")
    (directory / "Release").write_text(
        f"Origin: {origin}\nLabel: {label}\nArchitectures: amd64\nDate: {date}\n"
        f"Description: Hostwright lab stand-in repository\nSHA256:\n {digest} {len(packages)} Packages\n"
    )


def control_of(deb: Path) -> str:
    """Return the control text of a package file."""
    return run(["dpkg-deb", "--field", deb])


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A key that exists as long as its GnuPG home; only the signatures and the public half outlive a build."""

    home: Path

    def public(self) -> str:
        """Return the armored public key."""
        return self._gpg("--armor", "--export")

    def fingerprint(self) -> str:
        """Return the key's fingerprint: 40 hexadecimal digits."""
        rows = [line.split(":") for line in self._gpg("--with-colons", "--list-keys").splitlines()]
        return next(row[9] for row in rows if row[0] == "fpr")

    def sign(self, directory: Path) -> None:
        """Sign `directory/Release` in both of apt's ways: `InRelease` and `Release.gpg`."""
        release = directory / "Release"
        self._gpg("--yes", "--armor", "--output", str(directory / "Release.gpg"), "--detach-sign", str(release))
        self._gpg("--yes", "--output", str(directory / "InRelease"), "--clearsign", str(release))

    def _gpg(self, *arguments: str) -> str:
        return run(["gpg", "--homedir", self.home, "--batch", "--quiet", "--pinentry-mode", "loopback", *arguments])


@contextmanager
def signing_key(owner: str) -> Iterator[SigningKey]:
    """Make a signing key for the body and destroy its secret half afterwards."""
    with tempfile.TemporaryDirectory(prefix="hw-gpg.") as name:  # in /tmp: a socket's path holds 107 bytes
        key = SigningKey(Path(name))
        identity = f"{owner} (Hostwright lab stand-in) <lab@hostwright.invalid>"
        try:
            key._gpg("--passphrase", "", "--quick-generate-key", identity, "rsa3072", "sign", "never")
            yield key
        finally:
            run(["gpgconf", "--homedir", key.home, "--kill", "gpg-agent"])


def _md5(path: Path) -> str:
    """Return the MD5 that dpkg's `md5sums` (and `dpkg -V`) wants; no security hangs on it."""
    digest = hashlib.md5(usedforsecurity=False)
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def link_or_copy(source: Path, target: Path) -> None:
    """Put a file or symbolic link at `target` without copying its bytes where the filesystem allows it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_symlink():
        target.symlink_to(source.readlink())
        return
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Strip times and owners off a tar entry, so that the same files make the same archive."""
    entry.mtime = entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    return entry

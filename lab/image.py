"""Base images: one Debian root filesystem per distribution, built once with mmdebstrap and cached.

The image contains downloaded packages for Hostwright's roles, so that a host installs them without a network.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from hostwright.common.errors import LabError
from lab import surroundings
from lab.config import USER, Distro, cache_directory, state_directory
from lab.locking import locked
from lab.programs import run_logged

# version of the build code, part of an image's hash. Increase the number when code changes the image.
RECIPE = 2

#: name of a program that the lab runs on this machine → Debian package
TOOLS = {
    "systemd-nspawn": "systemd-container",
    "mmdebstrap": "mmdebstrap",
    "nft": "nftables",
    "ip": "iproute2",
    "nsenter": "util-linux",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "openssl": "openssl",
    "mkfs.ext4": "e2fsprogs",
    "zstd": "zstd",
    "dpkg-deb": "dpkg",
    "makeself": "makeself",
    "gpg": "gnupg",
    "gcc": "gcc",
}
#: path of a file that the build needs → Debian package. Ubuntu does not install Debian's archive keys.
FILES = {
    Path("/usr/share/keyrings/debian-archive-keyring.gpg"): "debian-archive-keyring",
    Path("/usr/include/stdio.h"): "libc6-dev",
}

SIGNED_BY = "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg"
POLICY = Path("/usr/sbin/policy-rc.d")

PACKAGES = (
    *("systemd", "systemd-sysv", "dbus", "libpam-systemd", "openssh-server", "sudo", "iproute2", "procps", "kmod"),
    *("python3-venv", "python3-pip", "gnupg", "ca-certificates", "curl", "pciutils", "cron", "less"),
)
#: names of packages that the image contains as downloads for the roles
PREFILLED = ("build-essential", "dkms", "linux-headers-amd64", "docker.io", "apparmor", "unattended-upgrades")
#: packages of Debian 11's compiler for CUDA 11.2 on Debian 12. apt may install no other packages of Debian 11.
GCC_10 = ("g++-10", "gcc-10", "cpp-10", "gcc-10-base", "libgcc-10-dev", "libstdc++-10-dev")
#: shell command that links the directories in $1 into /usr, as in an installed Debian
_MERGE_USR = 'for d in bin sbin lib lib32 lib64 libx32; do mkdir -p "$1/usr/$d"; ln -s "usr/$d" "$1/$d"; done'
MASKED = ("systemd-networkd.service", "systemd-networkd.socket", "systemd-resolved.service")


def ensure_tools() -> list[str]:
    """Install missing programs of the lab on this machine; return the names of the packages."""
    files = {package for path, package in FILES.items() if not path.exists()}
    return _ensure_packages({TOOLS[program] for program in missing_programs(TOOLS)} | files)


def ensure_programs(wanted: Mapping[str, str], *, path: str | None = None) -> None:
    """Install the packages in ``wanted`` (program → package) with programs that ``path`` lacks.

    The default path is the PATH of this process.
    """
    _ensure_packages({wanted[program] for program in missing_programs(wanted, path=path)})


def missing_programs(wanted: Iterable[str], *, path: str | None = None) -> list[str]:
    """Return the ``wanted`` programs that ``path`` (default: the PATH) lacks, in the same order."""
    return [program for program in wanted if not shutil.which(program, path=path)]


def _ensure_packages(missing: set[str]) -> list[str]:
    if not missing:
        return []
    if not shutil.which("apt-get"):
        raise LabError(f"this machine has no apt-get; install these packages for the lab: {', '.join(sorted(missing))}")
    with locked("packages"), _no_service_starts():
        return _install(missing)


@contextmanager
def _no_service_starts() -> Iterator[None]:
    """Use Debian's policy-rc.d, so that installed packages start no services."""
    if POLICY.exists():
        yield
        return
    POLICY.write_text("#!/bin/sh\nexit 101\n")
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        POLICY.unlink()


def _install(missing: set[str]) -> list[str]:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300"]
    log = cache_directory() / "tools.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    run_logged(["apt-get", "update"], log, env=environment)
    run_logged([*install, *sorted(missing)], log, env=environment)
    return sorted(missing)


def ensure_base(distro: Distro, cache: Path) -> Path:
    """Return the directory of the base image of ``distro``. An image of the current recipe is built if missing."""
    recipe = _recipe(distro)
    key = hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()[:12]
    base = cache / "base" / f"{distro}-{key}"
    if base.is_dir():
        return base
    base.parent.mkdir(parents=True, exist_ok=True)
    with locked(f"image-{distro}"):
        if not base.is_dir():
            with _scratch(base) as root:
                _build(distro, root, base.parent / f"{distro}.log")
                root.rename(base)
            _prune(base)
    return base


def _prune(current: Path) -> None:
    mounts = Path("/proc/self/mountinfo").read_text()
    records = (
        f for kind in ("hosts/*/host.json", "snapshots/*/snapshot.json") for f in state_directory().glob(f"*/{kind}")
    )
    used = {json.loads(file.read_text())["base"] for file in records}
    distro = current.name.partition("-")[0]
    for base in current.parent.glob(f"{distro}-*"):
        if base != current and base.name not in used and str(base) not in mounts:
            shutil.rmtree(base)


def _recipe(distro: Distro) -> dict[str, object]:
    """Return all inputs of the base image. The hash of the inputs is part of the image's name."""
    return {
        "recipe": RECIPE,
        "distro": distro,
        "user": USER,
        "packages": PACKAGES,
        "prefilled": _prefilled(distro),
        "masked": MASKED,
        "apt": surroundings.apt_settings(),
        "sources": surroundings.apt_sources(),
        "certificates": surroundings.certificates(),
    }


def _prefilled(distro: Distro) -> tuple[str, ...]:
    of_bookworm = GCC_10[:1] if distro == "bookworm" else ()
    return () if distro == "trixie" else (*PREFILLED, *of_bookworm)


def _sources(distro: Distro) -> tuple[str, ...]:
    mirrors = surroundings.debian_mirrors()
    if mirrors is None:
        return ()
    debian, security = mirrors
    components = _components(distro)
    return (
        f"deb {debian} {distro} {components}",
        f"deb {debian} {distro}-updates {components}",
        f"deb {security} {distro}-security {components}",
    )


def _components(distro: Distro) -> str:
    return "main contrib non-free" + ("" if distro == "bullseye" else " non-free-firmware")


@contextmanager
def _scratch(base: Path) -> Iterator[Path]:
    root = base.with_name(f".building-{base.name}")
    shutil.rmtree(root, ignore_errors=True)
    try:
        yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _build(distro: Distro, root: Path, log: Path) -> None:
    print(f"lab: building the {distro} base image (a minute or two, once; log {log})", file=sys.stderr, flush=True)
    log.unlink(missing_ok=True)
    excludes = [f"--dpkgopt=path-exclude=/usr/share/{part}/*" for part in ("man", "doc", "info", "locale")]
    options = [
        *("--variant=minbase", "--mode=root", "--format=directory", f"--include={','.join(PACKAGES)}"),
        f"--components={_components(distro)}",
        *excludes,
        "--dpkgopt=path-include=/usr/share/doc/*/copyright",
        *(f"--aptopt={line}" for line in surroundings.apt_settings()),
        '--aptopt=Acquire::Check-Valid-Until "false"',  # package lists of old suites have expired
        '--aptopt=APT::Keep-Downloaded-Packages "true"',
        '--aptopt=Acquire::Languages "none"',
        "--skip=cleanup/apt/lists",
        *(("--setup-hook=" + _MERGE_USR,) if distro == "bullseye" else ()),
    ]
    run_logged(["mmdebstrap", *options, distro, root, *_sources(distro)], log)
    _settle(distro, root, log)
    packages = _prefilled(distro)
    if packages:
        run_logged([*_in(root), "apt-get", "install", "-y", "--download-only", *packages], log)


def _settle(distro: Distro, root: Path, log: Path) -> None:
    """Turn a bootstrapped root filesystem into a base image, with login user and certificates, without host keys."""
    for name, text in surroundings.certificates().items():
        (root / "usr/local/share/ca-certificates" / name).write_text(text)
    run_logged([*_in(root), "update-ca-certificates"], log)
    (root / "etc/default/locale").write_text("LANG=C.UTF-8\n")
    run_logged([*_in(root), "useradd", "--create-home", "--shell", "/bin/bash", "--groups", "sudo", USER], log)
    for unit in MASKED:
        mask(root, unit)
    for identity in (root / "etc/ssh").glob("ssh_host_*"):
        identity.unlink()
    if distro == "bookworm":
        _deb822(root / "etc/apt")
        _compiler_of_bullseye(root / "etc/apt")
        run_logged([*_in(root), "apt-get", "update"], log)
    # sshd logs an error for each missing key type
    (root / "etc/ssh/sshd_config.d/lab.conf").write_text("HostKey /etc/ssh/ssh_host_ed25519_key\n")


def _deb822(apt: Path) -> None:
    stanzas = []
    for line in filter(None, (apt / "sources.list").read_text().splitlines()):
        kind, uri, suite, *components = re.sub(r"\[.*?\] ", "", line).split()
        stanzas.append(
            f"Types: {kind}\nURIs: {uri}\nSuites: {suite}\nComponents: {' '.join(components)}\n{SIGNED_BY}\n"
        )
    (apt / "sources.list.d/debian.sources").write_text("\n".join(stanzas))
    (apt / "sources.list").unlink()


def _compiler_of_bullseye(apt: Path) -> None:
    """Let a Debian 12 host's apt install gcc 10 from Debian 11 (docs/operators/stacks.md)."""
    (uri,) = re.findall(r"(?m)^URIs: (.*)\nSuites: bookworm$", (apt / "sources.list.d/debian.sources").read_text())
    stanza = f"Types: deb\nURIs: {uri}\nSuites: bullseye\nComponents: main\n{SIGNED_BY}\n"
    (apt / "sources.list.d/bullseye.sources").write_text(stanza)
    pins = {"*": -1, " ".join(GCC_10): 100}
    rows = (f"Package: {names}\nPin: release n=bullseye\nPin-Priority: {pin}\n" for names, pin in pins.items())
    (apt / "preferences.d/bullseye").write_text("\n".join(rows))


def mask(root: Path, unit: str) -> None:
    """Mask a systemd unit in the root filesystem of a host that is off."""
    link = root / "etc/systemd/system" / unit
    link.unlink(missing_ok=True)
    link.symlink_to("/dev/null")


def _in(root: Path) -> tuple[str | Path, ...]:
    return ("chroot", root, "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive")

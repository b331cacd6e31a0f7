"""Generated host keys, authorities, certificates and lists of revoked keys, and servers that present them."""

from __future__ import annotations

import base64
import hmac
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin") or "/usr/sbin/sshd"
HOST = "gpu01.example.org"
_PRINCIPALS = f"{HOST},gpu01,rack1"
_TYPES = {
    "ed": "ed25519",
    "ec": "ecdsa",
    "rsa": "rsa",
    "other": "ed25519",
    "ca": "ed25519",
    "ca2": "ed25519",
    "carsa": "rsa",
}
#: certificate name → authority, host key, and arguments of ssh-keygen
_CERTIFICATES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "good": ("ca", "ed", ("-h", "-n", _PRINCIPALS, "-z", "7")),
    "good-ec": ("ca", "ec", ("-h", "-n", _PRINCIPALS)),
    "good-rsa": ("ca", "rsa", ("-h", "-n", _PRINCIPALS)),
    "wildcard": ("ca", "ed", ("-h", "-n", "*.example.org")),
    "upper": ("ca", "ed", ("-h", "-n", HOST.upper())),
    "nobody": ("ca", "ed", ("-h",)),
    "stranger": ("ca", "ed", ("-h", "-n", "gpu02.example.org")),
    "expired": ("ca", "ed", ("-h", "-n", _PRINCIPALS, "-V", "19800101:19900101")),
    "future": ("ca", "ed", ("-h", "-n", _PRINCIPALS, "-V", "20990101:21000101")),
    "now": ("ca", "ed", ("-h", "-n", _PRINCIPALS, "-V", "-1w:+2w")),
    "user": ("ca", "ed", ("-n", _PRINCIPALS)),
    "critical": ("ca", "ed", ("-h", "-n", _PRINCIPALS, "-O", "force-command=false")),
    "extended": ("ca", "ed", ("-h", "-n", _PRINCIPALS, "-O", "extension:x@example.org")),
    "by-ca2": ("ca2", "ed", ("-h", "-n", _PRINCIPALS)),
    "by-rsa-512": ("carsa", "ed", ("-h", "-n", _PRINCIPALS, "-t", "rsa-sha2-512")),
    "by-rsa-256": ("carsa", "ed", ("-h", "-n", _PRINCIPALS, "-t", "rsa-sha2-256")),
    "by-rsa-sha1": ("carsa", "ed", ("-h", "-n", _PRINCIPALS, "-t", "ssh-rsa")),
    "by-itself": ("ed", "ed", ("-h", "-n", _PRINCIPALS)),
    "port": ("ca", "ed", ("-h", "-n", f"[{HOST}]:2222")),
}
#: server name → its host keys, and the certificate of the first
SERVERS: dict[str, tuple[str, ...]] = {
    "ed": ("ed",),
    "ec": ("ec",),
    "rsa": ("rsa",),
    "ed+ec": ("ed", "ec"),
    "ec+rsa": ("ec", "rsa"),
    "all": ("ed", "ec", "rsa"),
}


@dataclass(frozen=True)
class World:
    folder: Path

    def public(self, name: str) -> str:
        """``type base64`` of a key or a certificate."""
        return " ".join((self.folder / f"{name}.pub").read_text().split()[:2])

    def filled(self, text: str, case: Path) -> str:
        """Expand a text of the tables: ``<ed>`` is a public key, ``<hash NAME>`` a hashed name, ``<dir>`` the case's
        folder.
        """

        def value(match: re.Match[str]) -> str:
            word, _, rest = match[1].partition(" ")
            if word == "hash":
                return hashed(rest)
            if word == "blob":
                return self.public(rest).split()[1]
            return {"dir": str(case), "world": str(self.folder), "sshd": SSHD}.get(word) or self.public(word)

        return re.sub(r"<([a-z][a-z0-9-]*(?: [^>]*)?)>", value, text)

    def proxy(self, server: str) -> str:
        return f"{SSHD} -i -f {self.folder}/{server}.conf"


def hashed(name: str) -> str:
    salt = b"a salt of 20 letters"
    digest = hmac.digest(salt, name.encode(), "sha1")
    return f"|1|{base64.b64encode(salt).decode()}|{base64.b64encode(digest).decode()}"


def make_world(folder: Path) -> World:
    """Generate all keys and files for the tables."""
    world = World(folder)
    for name, kind in _TYPES.items():
        bits = ("-b", "2048") if kind == "rsa" else ()
        _keygen("-N", "", "-t", kind, *bits, "-C", name, "-f", str(folder / name))
    for name, (authority, key, options) in _CERTIFICATES.items():
        shutil.copy(folder / f"{key}.pub", folder / f"{name}.pub")
        _keygen("-s", str(folder / authority), "-I", name, *options, str(folder / f"{name}.pub"))
        (folder / f"{name}-cert.pub").replace(folder / f"{name}.pub")
        _server(folder, f"cert-{name}", (key,), name)
    for server, keys in SERVERS.items():
        _server(folder, server, keys)
    _revoked(folder)
    shutil.copy(folder / "ed.pub", folder / f"{HOST}.list")
    return world


def _server(folder: Path, name: str, keys: tuple[str, ...], certificate: str = "") -> None:
    lines = [f"HostKey {folder}/{key}" for key in keys]
    lines += [f"HostCertificate {folder}/{certificate}.pub"] if certificate else []
    lines += ["UsePAM no", "LogLevel QUIET", f"PidFile {folder}/{name}.pid", "StrictModes no"]
    (folder / f"{name}.conf").write_text("".join(f"{line}\n" for line in lines))


def _revoked(folder: Path) -> None:
    """Lists of revoked keys, created by ssh-keygen."""
    for name, specification in {
        "plain": (folder / "ed.pub").read_text(),
        "others": (folder / "other.pub").read_text(),
        "empty": "",
        "serial": "serial: 7\n",
        "serials": "serial: 8-99\n",
        "id": "id: good\n",
        "hash": f"sha256: {(folder / 'ed.pub').read_text()}",
    }.items():
        (folder / f"{name}.spec").write_text(specification)
        _keygen("-k", "-f", str(folder / f"{name}.krl"), "-s", str(folder / "ca.pub"), str(folder / f"{name}.spec"))
    for name in ("good", "ca"):
        _keygen("-k", "-f", str(folder / f"{name}.krl"), str(folder / f"{name}.pub"))


def _keygen(*arguments: str) -> None:
    subprocess.run(["ssh-keygen", "-q", *arguments], check=True, capture_output=True, stdin=subprocess.DEVNULL)

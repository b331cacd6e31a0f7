"""apt, pip, certificate and resolver settings of this machine, which lab hosts inherit."""

from __future__ import annotations

import configparser
import os
import pwd
import re
from pathlib import Path
from urllib.parse import urlsplit

from lab.programs import run

CERTIFICATES = Path("/usr/local/share/ca-certificates")
CA_BUNDLE = "/etc/ssl/certs/ca-certificates.crt"

#: pattern of names of apt settings for access to mirrors
_APT_SETTING = re.compile(r"Acquire::(https?::(Proxy|Timeout)|Retries|Check-Valid-Until|Check-Date)(::|\b)")
#: names of pip settings for package indexes and timeouts
_PIP_SETTINGS = ("index-url", "extra-index-url", "trusted-host", "proxy", "timeout", "default-timeout")


def apt_settings() -> tuple[str, ...]:
    """Return this machine's apt settings for mirrors, as lines of apt.conf."""
    return tuple(line for line in run(["apt-config", "dump", "Acquire"]).splitlines() if _APT_SETTING.match(line))


def debian_mirrors() -> tuple[str, str] | None:
    """Return this machine's mirrors of (Debian, Debian-Security); ``None`` for the default mirrors."""
    rows = run(["apt-get", "indextargets", "--format", "$(ORIGIN)|$(LABEL)|$(REPO_URI)", "Created-By: Packages"])
    found: dict[str, str] = {}
    for row in rows.splitlines():
        origin, label, uri = row.split("|", 2)
        if origin == "Debian" and urlsplit(uri).scheme in ("http", "https"):
            found.setdefault(label, uri)
    if "Debian" in found and "Debian-Security" in found:
        return found["Debian"], found["Debian-Security"]
    return None


def apt_sources() -> dict[str, str]:
    """Return this machine's apt source files: name → text."""
    directory = Path("/etc/apt")
    files = [directory / "sources.list", *sorted((directory / "sources.list.d").glob("*"))]
    return {file.name: file.read_text() for file in files if file.is_file()}


def pip_conf() -> str:
    """Return /etc/pip.conf for hosts, with the package indexes of this machine that a host can reach."""
    wanted: dict[str, str] = {}
    parser = configparser.RawConfigParser()
    parser.read(_pip_files(), encoding="utf-8")
    for name in _PIP_SETTINGS:
        found = [parser.get(section, name, fallback="") for section in ("global", "install")]
        variable = os.environ.get("PIP_" + name.upper().replace("-", "_"), "")
        value = _reachable(variable or found[1] or found[0])
        if value:
            wanted[name] = value
    return "".join(("[global]\n", f"cert = {CA_BUNDLE}\n", *(f"{name} = {value}\n" for name, value in wanted.items())))


def _pip_files() -> list[Path]:
    """Return pip's configuration files of the user who called sudo, lowest precedence first."""
    home = Path(pwd.getpwuid(int(os.environ.get("SUDO_UID", os.getuid()))).pw_dir)
    chosen = os.environ.get("PIP_CONFIG_FILE", os.devnull)
    names = ("/etc/xdg/pip/pip.conf", "/etc/pip.conf", home / ".pip/pip.conf", home / ".config/pip/pip.conf", chosen)
    return [Path(name) for name in names]


def _reachable(value: str) -> str:
    """Remove file URLs and loopback URLs from ``value``, because a host cannot reach them."""
    words = []
    for word in value.split():
        url = urlsplit(word)
        if url.scheme == "file" or url.hostname in ("localhost", "127.0.0.1", "::1"):
            continue
        words.append(word)
    return " ".join(words)


def certificates() -> dict[str, str]:
    """Return file name → PEM text of this machine's local certificate authorities."""
    return {path.name: path.read_text() for path in sorted(CERTIFICATES.glob("**/*.crt"))}


def resolv_conf() -> str:
    """Return a resolver configuration for hosts, with this machine's name servers.

    If this machine uses a resolver on the loopback address, the upstream servers of that resolver are used.
    """
    text = Path("/etc/resolv.conf").read_text()
    upstream = Path("/run/systemd/resolve/resolv.conf")
    servers = re.findall(r"^\s*nameserver\s+(\S+)", text, re.MULTILINE)
    if servers and all(server.startswith("127.") or server == "::1" for server in servers) and upstream.exists():
        return upstream.read_text()
    return text

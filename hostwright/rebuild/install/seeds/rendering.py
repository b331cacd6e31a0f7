"""Rendering of a host's installation settings to a seed: files for the installer, and arguments for its kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from hostwright.common.templates import render
from hostwright.rebuild.install.seeds import TEMPLATES, debian, ubuntu
from hostwright.rebuild.install.seeds.escaping import to_yaml
from hostwright.rebuild.install.seeds.settings import Install
from hostwright.transport.identity.keys import KeyPair

PRIVATE, PUBLIC = "ssh_host_ed25519_key", "ssh_host_ed25519_key.pub"


@dataclass(frozen=True, slots=True)
class Seed:
    """Files and kernel arguments for an installer. ``files`` include the private host key and are never shown.

    The installer fetches the file ``first`` before all others. The site's boot loader must pass ``command_line`` to the
    kernel; quote a ``;`` in it for GRUB. With the kernel argument ``checksum``, if any, the installer accepts only this
    version of ``first``.
    """

    files: Mapping[str, bytes] = field(repr=False)
    command_line: str
    first: str
    checksum: str = ""


def render_seed(install: Install, *, host: str, keys: KeyPair, url: str) -> Seed:
    """Render the seed for the installation ``install`` of a host, to be served below ``url``.

    ``keys`` are the new host key. Raises ``InputError`` for a value that cannot be escaped safely.
    """
    base = url.rstrip("/")
    if install.os == "ubuntu":
        files = ubuntu.files(install, keys=keys)
        return _seed(files, ubuntu.command_line(install, base), "user-data")
    files = debian.files(install, host=host, url=base) | _key_files(keys)
    return _seed(files, debian.command_line(install, base), "preseed.cfg", debian.checksum(files))


def render_keys(keys: KeyPair) -> Seed:
    """Render a seed for a site's own reinstall command, with only the new host key ``keys``.

    The key is in two files for sshd, and in user-data for cloud-init.
    """
    private, public = to_yaml(keys.private.reveal()), to_yaml(f"{keys.public.line}\n")
    data = render("keys.j2", [TEMPLATES], private=private, public=public)
    return _seed({"user-data": data} | _key_files(keys), "", PRIVATE)


def _key_files(keys: KeyPair) -> dict[str, str]:
    return {PRIVATE: keys.private.reveal(), PUBLIC: f"{keys.public.line}\n"}


def _seed(files: Mapping[str, str], command_line: str, first: str, checksum: str = "") -> Seed:
    encoded = MappingProxyType({name: text.encode() for name, text in files.items()})
    return Seed(encoded, command_line, first, checksum)

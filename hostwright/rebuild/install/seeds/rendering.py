"""From settings to a seed: the files that an installer fetches, and what its kernel is told about them."""

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
    """What an installer is given. ``files`` hold the private host key and are never shown.

    ``first`` names the file whose fetching shows that the installer has begun. ``command_line`` is what the site's PXE
    or the boot loader on the media must give the installer's kernel; a ``;`` in it must be quoted for GRUB.
    ``checksum`` is one argument more, with which the installer takes nothing else for the first file; empty where it
    knows none.
    """

    files: Mapping[str, bytes] = field(repr=False)
    command_line: str
    first: str
    checksum: str = ""


def render_seed(install: Install, *, host: str, keys: KeyPair, url: str) -> Seed:
    """The seed of a host that is to come up with exactly this host key, to be served below ``url``.

    ``host`` is its name in the inventory. Raises ``InputError`` for a value that cannot be written down safely.
    """
    base = url.rstrip("/")
    if install.os == "ubuntu":
        files = ubuntu.files(install, keys=keys)
        return _seed(files, ubuntu.command_line(install, base), "user-data")
    files = debian.files(install, host=host, url=base) | _key_files(keys)
    return _seed(files, debian.command_line(install, base), "preseed.cfg", debian.checksum(files))


def render_keys(keys: KeyPair) -> Seed:
    """The host key alone, for a site's own command: as sshd's two files, and as user-data for cloud-init."""
    private, public = to_yaml(keys.private.reveal()), to_yaml(f"{keys.public.line}\n")
    data = render("keys.j2", [TEMPLATES], private=private, public=public)
    return _seed({"user-data": data} | _key_files(keys), "", PRIVATE)


def _key_files(keys: KeyPair) -> dict[str, str]:
    return {PRIVATE: keys.private.reveal(), PUBLIC: f"{keys.public.line}\n"}


def _seed(files: Mapping[str, str], command_line: str, first: str, checksum: str = "") -> Seed:
    encoded = MappingProxyType({name: text.encode() for name, text in files.items()})
    return Seed(encoded, command_line, first, checksum)

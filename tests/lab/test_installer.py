"""Debian's real installer boots over PXE, fetches the seed over HTTPS, validates it and asks no question.

The test ends when the installer contacts the mirror: the rest requires a mirror and a disk. A stand-in covers the
seed's disk layout and last command (tests/lab/rebuild/test_reinstall.py).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hostwright.rebuild.install.seeds.rendering import render_seed
from hostwright.rebuild.install.seeds.serving import SeedServer
from hostwright.rebuild.install.tls.authority import open_authority
from tests.lab import emulated
from tests.lab.unpacking import unpack
from tests.unit.support.seeds import KEYS, install

pytestmark = pytest.mark.long  # emulation takes 90 s of one core
PATIENCE_S = 900.0  # it takes two minutes on two idle cores


def test_debians_installer_takes_a_seed_and_asks_nothing(tmp_path: Path) -> None:
    installer = emulated.newest_installer()
    if installer is None:
        pytest.skip("this machine's apt has no installer of Debian's")
    images = installer.images(unpack(f"netboot-{installer.release}", (installer.package,)))
    network = {
        "mac": emulated.MAC,
        "address": emulated.ADDRESS,
        "gateway": emulated.HERE,
        "nameservers": [emulated.NAMESERVER],
    }
    authority = open_authority(tmp_path)
    with SeedServer("127.0.0.1", 0, authority.context(emulated.HERE)) as server, emulated.listener() as log:
        url = server.reserve("metal").replace("127.0.0.1", emulated.HERE)
        mirror = f"{url}/debian"
        wanted = install(
            os="debian", release=installer.release, disk="/dev/vda", hostname="metal", network=network, mirror=mirror,
            keyboard="de", locale="de_DE.UTF-8", timezone="Europe/Berlin", kernel_arguments=emulated.log_arguments(log),
        )  # fmt: skip
        seed = render_seed(wanted, host="metal", keys=KEYS, url=url)
        server.publish("metal", seed, only_from=None)
        command_line = f"{seed.command_line} {seed.checksum}"
        with emulated.booted(images, command_line, log, tmp_path, part=authority.part) as machine:
            machine.await_line(rf"choose-mirror.* {mirror}/dists/[a-z]+/Release", PATIENCE_S)
        assert server.fetched("metal") == {"preseed.cfg"}
        assert server.failures("metal") == frozenset()
        assert url.startswith("https://")
    said = "\n".join(machine.said)
    assert f"successfully loaded preseed file from {url}/preseed.cfg" in said
    assert "System locale (debian-installer/locale) = 'de_DE.UTF-8'" in said
    assert "Writing static IPv4 stanza" in said

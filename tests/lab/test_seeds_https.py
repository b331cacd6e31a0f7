"""Seeds over HTTPS with the installers' own programs: each fetches the seed only with this site's certificate.

Debian: the ramdisk of its netboot image, with its own wget. Ubuntu: initramfs-tools, which starts the live system, and
cloud-init, which fetches the seed there, both as Debian's packages. tests/lab/test_installer.py tests a seed over HTTPS
with Debian's whole installer.
"""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostwright.rebuild.install.seeds.rendering import Seed
from hostwright.rebuild.install.seeds.serving import SeedServer
from hostwright.rebuild.install.tls.authority import Authority, open_authority
from tests.lab import emulated
from tests.lab.test_seeds import PACKAGES
from tests.lab.unpacking import unpack

HERE = "127.0.0.1"
SEED = Seed(
    {"user-data": b"#cloud-config\n{}\n", "meta-data": b"instance-id: x\n", "vendor-data": b""}, "", "user-data"
)
UNTRUSTED = 5  #: wget's status for an untrusted certificate
INIT = "usr/share/initramfs-tools"


@pytest.fixture(scope="module")
def busybox() -> Path:
    unpacked = unpack("seeds", PACKAGES)
    return next(path for path in (unpacked / "bin/busybox", unpacked / "usr/bin/busybox") if path.exists())


@pytest.fixture(scope="module")
def ramdisk(tmp_path_factory: pytest.TempPathFactory, busybox: Path) -> Path:
    """The files of Debian's installer as its kernel unpacks them."""
    installer = emulated.newest_installer()
    if installer is None:
        pytest.skip("this machine's apt has no installer of Debian's")
    images = installer.images(unpack(f"netboot-{installer.release}", (installer.package,)))
    root = tmp_path_factory.mktemp("ramdisk")
    unpack_part(busybox, images / "initrd.gz", root)
    return root


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return open_authority(tmp_path)


@pytest.fixture
def server(authority: Authority) -> Iterator[SeedServer]:
    with SeedServer(HERE, 0, authority.context(HERE)) as opened:
        yield opened


def unpack_part(busybox: Path, archive: Path, root: Path) -> None:
    """Unpack an initial ramdisk over existing files, as a kernel does."""
    command = [str(busybox), "cpio", "-idmu"]
    content = gzip.decompress(archive.read_bytes())
    subprocess.run(command, input=content, cwd=root, capture_output=True, check=True)


def wget(root: Path, url: str) -> subprocess.CompletedProcess[bytes]:
    """Run the installer's own wget with the options that the installer uses."""
    command = ["chroot", str(root), "wget", "--no-verbose", "-U", "debian-installer", "-O", "-", url]
    return subprocess.run(command, capture_output=True, check=False, timeout=60)


def test_debians_installer_trusts_us_with_the_part_alone(
    ramdisk: Path, busybox: Path, authority: Authority, server: SeedServer, tmp_path: Path
) -> None:
    url = server.publish("metal", SEED, only_from=None)
    before = wget(ramdisk, f"{url}/user-data")
    assert (before.returncode, before.stdout) == (UNTRUSTED, b"")
    other = open_authority(tmp_path / "other")
    unpack_part(busybox, other.part, ramdisk)
    assert wget(ramdisk, f"{url}/user-data").returncode == UNTRUSTED
    assert server.fetched("metal") == frozenset()
    unpack_part(busybox, authority.part, ramdisk)
    after = wget(ramdisk, f"{url}/user-data")
    assert (after.returncode, after.stdout) == (0, SEED.files["user-data"])
    with SeedServer(HERE, 0, other.context("127.0.0.2")) as elsewhere:  # a certificate for another address
        assert wget(ramdisk, f"{elsewhere.publish('metal', SEED, only_from=None)}/user-data").returncode == UNTRUSTED
    with SeedServer("::1", 0, authority.context("::1")) as six:
        assert (
            wget(ramdisk, f"{six.publish('metal', SEED, only_from=None)}/user-data").stdout == SEED.files["user-data"]
        )


@pytest.fixture
def live(tmp_path: Path, busybox: Path, authority: Authority) -> Path:
    """The root of a live system after initramfs-tools, booted with Hostwright's part beside its own ramdisk."""
    package = unpack("initramfs-tools", ("initramfs-tools-core",))
    ramdisk = tmp_path / "initramfs"
    root = ramdisk / "root"
    (root / "etc/ssl/certs").mkdir(parents=True)
    (root / "etc/ssl/certs/ca-certificates.crt").write_text("# others\n")
    for folder in ("bin", "conf/conf.d", "scripts/init-bottom"):
        (ramdisk / folder).mkdir(parents=True)
    shutil.copy(busybox, ramdisk / "bin/busybox")
    for name in ("sh", "mkdir", "cat"):
        (ramdisk / "bin" / name).symlink_to("busybox")
    shutil.copy(package / INIT / "scripts/functions", ramdisk / "scripts/functions")
    (ramdisk / "scripts/init-bottom/ORDER").write_text(
        '[ -e /conf/param.conf ] && . /conf/param.conf\necho "$@" >/ran\n'
    )
    unpack_part(busybox, authority.part, ramdisk)
    init = (package / INIT / "init").read_text()
    reading = init[init.index("for conf in conf/conf.d/*") :].partition("\ndone\n")[0] + "\ndone\n"
    script = f"set -e\nexport rootmnt=/root\n. /scripts/functions\n{reading}run_scripts /scripts/init-bottom\n"
    subprocess.run(["chroot", str(ramdisk), "/bin/sh", "-c", script], cwd=ramdisk, check=True, timeout=60)
    assert (ramdisk / "ran").exists()
    return root


def test_a_live_system_knows_the_authority_beside_all_others(live: Path, authority: Authority) -> None:
    ours = authority.certificate_file.read_text()
    assert (live / "etc/ssl/certs/ca-certificates.crt").read_text() == f"# others\n{ours}"
    assert (live / "usr/local/share/ca-certificates/hostwright.crt").read_text() == ours


FETCH = """
import sys
from cloudinit import util
found = util.read_seeded(sys.argv[1], timeout=20, retries=0)
sys.stdout.write(repr(found))
"""


def cloud_init(url: str, bundle: Path) -> subprocess.CompletedProcess[str]:
    """Run cloud-init's NoCloud for this URL, with these certificate authorities."""
    modules = str(unpack("seeds", PACKAGES) / "usr/lib/python3/dist-packages")
    environment = {**os.environ, "PYTHONPATH": modules, "REQUESTS_CA_BUNDLE": str(bundle)}
    command = [sys.executable, "-c", FETCH, f"{url}/"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)


def test_cloud_init_takes_the_seed_in_that_system_and_in_no_other(
    live: Path, server: SeedServer, tmp_path: Path
) -> None:
    url = server.publish("metal", SEED, only_from=None)
    stranger = open_authority(tmp_path / "other").certificate_file
    refused = cloud_init(url, stranger)
    assert refused.returncode != 0
    assert "certificate verify failed" in refused.stderr
    assert server.fetched("metal") == frozenset()
    taken = cloud_init(url, live / "etc/ssl/certs/ca-certificates.crt")
    assert taken.returncode == 0, taken.stderr
    assert "cloud-config" in taken.stdout
    assert server.fetched("metal") >= {"user-data", "meta-data"}

"""Additional initial ramdisk for an installer's kernel, with the CA certificate of seed servers and no secrets.

A kernel unpacks all its ramdisks into one tree. Debian's installer reads certificates there. Ubuntu's installer has
another root file system, and initramfs-tools copies the certificate into it.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator

from hostwright.common.quoting import sh_file

CERTIFICATE, TRUST, ORDER = "hostwright/ca.pem", "hostwright/trust", "scripts/init-bottom/ORDER"
SHELL = "#!/bin/sh\n"
_FOLDER, _FILE, _PROGRAM = 0o040755, 0o100644, 0o100755


def boot_part(certificate: bytes, subject_hash: str) -> bytes:
    """Return an initial ramdisk with ``certificate`` (PEM), reproducible byte for byte."""
    trust = sh_file(__file__, "trust.sh", certificate=f"/{CERTIFICATE}")
    order = sh_file(__file__, "order.sh", order=f"/{ORDER}", trust=f"/{TRUST}")
    files = {
        f"etc/ssl/certs/{subject_hash}.0": (_FILE, certificate),
        CERTIFICATE: (_FILE, certificate),
        TRUST: (_PROGRAM, (SHELL + trust).encode()),
        "conf/conf.d/hostwright": (_FILE, order.encode()),
    }
    entries = [_entry(name, _FOLDER) for name in _folders(files)]
    entries += [_entry(name, mode, content) for name, (mode, content) in files.items()]
    # The archive is compressed, because kernels find an uncompressed archive only at a multiple of four bytes.
    return gzip.compress(b"".join([*entries, _entry("TRAILER!!!", 0)]), mtime=0)


def _folders(files: dict[str, tuple[int, bytes]]) -> Iterator[str]:
    parts = [name.split("/")[:-1] for name in files]
    yield from dict.fromkeys("/".join(words[:depth]) for words in parts for depth in range(1, len(words) + 1))


def _entry(name: str, mode: int, content: bytes = b"") -> bytes:
    inode = uid = gid = mtime = device = check = 0
    links = 1
    numbers = (
        inode, mode, uid, gid, links, mtime, len(content), device, device, device, device, len(name) + 1, check,
    )  # fmt: skip
    head = "070701" + "".join(f"{number:08X}" for number in numbers) + f"{name}\0"
    return _padded(head.encode("ascii")) + _padded(content)


def _padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % 4)

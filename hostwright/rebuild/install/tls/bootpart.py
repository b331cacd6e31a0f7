"""What a boot loader gives an installer's kernel beside its own initial ramdisk: whom to trust, and nothing secret.

A kernel unpacks several archives one over the other. Debian's installer looks for authorities in the ramdisk itself.
Ubuntu's is a live system with another root: initramfs-tools writes the authority there before it starts.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator

from hostwright.common.quoting import sh_file

CERTIFICATE, TRUST, ORDER = "hostwright/ca.pem", "hostwright/trust", "scripts/init-bottom/ORDER"
SHELL = "#!/bin/sh\n"
_FOLDER, _FILE, _PROGRAM = 0o040755, 0o100644, 0o100755


def boot_part(certificate: bytes, subject_hash: str) -> bytes:
    """The archive, the same for the same certificate: in PEM, with the name that OpenSSL gives it in a folder."""
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
    # Compressed, for a kernel finds what is not at multiples of four bytes only: boot loaders put archives anywhere.
    return gzip.compress(b"".join([*entries, _entry("TRAILER!!!", 0)]), mtime=0)


def _folders(files: dict[str, tuple[int, bytes]]) -> Iterator[str]:
    """The folders of these files, outer ones first: a kernel makes none by itself."""
    parts = [name.split("/")[:-1] for name in files]
    yield from dict.fromkeys("/".join(words[:depth]) for words in parts for depth in range(1, len(words) + 1))


def _entry(name: str, mode: int, content: bytes = b"") -> bytes:
    """One file of an archive in the form newc (cpio(5)): root's, of 1970."""
    inode = uid = gid = mtime = device = check = 0
    links = 1
    numbers = (
        inode, mode, uid, gid, links, mtime, len(content), device, device, device, device, len(name) + 1, check,
    )  # fmt: skip
    head = "070701" + "".join(f"{number:08X}" for number in numbers) + f"{name}\0"
    return _padded(head.encode("ascii")) + _padded(content)


def _padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % 4)

"""A container image for GPU smoke tests, as a root filesystem for `docker import`, which needs no registry.

The image has glibc and busybox of Debian bullseye and no NVIDIA file: all driver files in a container come from the
container toolkit.
"""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path

from lab.vendor import debian, packaging
from lab.vendor.model import Profile, VendorFile, build_once, describe, recipe_key

FILE_NAME = "hostwright-gpu-smoke.tar"
VERSION = "1"
_FILES = {
    "libc6": ("./lib/x86_64-linux-gnu/*.so*", "./lib64/*"),
    "busybox-static": ("./bin/busybox",),
}
_APPLETS = ("sh", "ls", "cat", "echo", "env", "find", "grep", "head", "mount", "readlink", "sleep", "test", "true")
_TEXTS = {
    "etc/passwd": "root:x:0:0:root:/:/bin/sh\n",
    "etc/group": "root:x:0:\n",
    "etc/hostwright-gpu-smoke": "GPU smoke test image of the Hostwright lab: glibc and busybox, no file of NVIDIA's.\n",
}


def build(out: Path, profile: Profile) -> list[VendorFile]:
    """Build the image into `out` if it is missing."""
    key = recipe_key(profile, (Path(__file__), Path(packaging.__file__)))
    return build_once(out, "smoke", key, lambda work: _make(work, out.parent / "sources"))


def _make(work: Path, sources: Path) -> list[VendorFile]:
    root = work / "root"
    for place in debian.trees(sources, _FILES).values():
        for source in sorted(place.rglob("*")):
            if source.is_symlink() or source.is_file():
                packaging.link_or_copy(source, root / source.relative_to(place))
    for applet in _APPLETS:
        (root / "bin" / applet).symlink_to("busybox")
    for directory in ("dev", "etc", "proc", "run", "sys", "tmp", "usr/bin", "usr/lib/x86_64-linux-gnu"):
        (root / directory).mkdir(parents=True, exist_ok=True)
    for name, text in _TEXTS.items():
        (root / name).write_text(text)
    archive = work / FILE_NAME
    with tarfile.open(archive, "w", format=tarfile.GNU_FORMAT) as tar:
        tar.add(root, arcname=".", filter=packaging.anonymous)
    shutil.rmtree(root)
    note = "the lab's own image, from Debian's glibc and busybox"
    return [describe(archive, artifact="gpu-smoke", version=VERSION, stand_in=True, note=note)]

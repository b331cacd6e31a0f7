"""Kernel headers for lab hosts.

A lab host runs this machine's kernel, for which no distribution has headers. A stand-in package with the distribution's
package name depends on Debian's `linux-headers-amd64` and links `/lib/modules/$(uname -r)/build` and `source` to
Debian's headers. So an unchanged role finds headers, and dkms really compiles against Debian's kernel.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from lab.vendor.model import Profile, VendorBuildError, VendorFile, build_once, describe, recipe_key
from lab.vendor.packaging import Control, build_deb, control_of, write_repository

#: path of the repository below the vendor directory
REPOSITORY = "apt/headers"
_DEBIAN_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]+")
_NOTE = "stand-in: an empty package for the running kernel that leads to Debian's own kernel headers"

#: lists of built-in modules, which depmod reads when dkms runs it
_LISTS = ("modules.builtin", "modules.order", "modules.builtin.modinfo")

_POSTINST = """#!/bin/sh
# Hostwright lab stand-in: leads to the newest of Debian's headers, whose version is known only here.
set -e
build=$(ls -d /usr/src/linux-headers-*-amd64 | sort -V | tail -n 1)
ln -sfn "$build" /lib/modules/{release}/build
ln -sfn "${{build%-amd64}}-common" /lib/modules/{release}/source
"""

_POSTRM = """#!/bin/sh
set -e
rm -f /lib/modules/{release}/build /lib/modules/{release}/source
"""


def build(out: Path, profile: Profile) -> list[VendorFile]:
    """Build the repository for the running kernel; each kernel release has its own recipe."""
    release = os.uname().release
    package = f"linux-headers-{release}"
    if not _DEBIAN_NAME.fullmatch(package):
        raise VendorBuildError(
            f"the running kernel's release '{release}' cannot be part of a Debian package name, so lab hosts cannot "
            "have kernel headers; boot a kernel whose release has only lowercase letters"
        )
    key = recipe_key(profile, [Path(__file__), Path(__file__).with_name("packaging.py")], release=release)
    return build_once(out, "headers", key, lambda work: [_repository(work, package, release)])


def _repository(work: Path, package: str, release: str) -> VendorFile:
    tree, repository = work / "tree", work / REPOSITORY
    modules = tree / "lib/modules" / release
    for directory in (modules, repository):
        directory.mkdir(parents=True)
    for name in _LISTS:
        (modules / name).touch()
    control = Control(
        package, "1.0", f"Header files for Linux {release} (hostwright stand-in)", depends="linux-headers-amd64"
    )
    scripts = {"postinst": _POSTINST.format(release=release), "postrm": _POSTRM.format(release=release)}
    deb = build_deb(tree, control, repository, scripts)
    shutil.rmtree(tree)
    write_repository(repository, {deb.name: control_of(deb)}, "Hostwright lab", "kernel headers")
    version = control.version
    return describe(repository, artifact="headers", version=version, stand_in=True, note=_NOTE, name=REPOSITORY)

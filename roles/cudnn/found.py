"""cuDNN found on a host, in toolkits, system libraries and wheels, whether or not Hostwright installed it."""

from __future__ import annotations

from hostwright.roles import OTHER, Adopted, Finder, OnHost, placed_libraries, sh_file
from hostwright.standard.roles.cudnn.section import CudnnSection


def _adopted(host: OnHost, section: CudnnSection) -> Adopted:
    found = [(place, version) for place, version, *_ in host.all("library")]
    if not found:
        return Adopted(left_out="the host has cuDNN only in wheels", unlike=OTHER)
    if any(version == section.library_version for _, version in found):
        return Adopted()
    there = ", ".join(f"{version} in {place}" for place, version in found)
    return Adopted(left_out=f"{there} is not {section.library_version}, and is kept", unlike=OTHER)


WHEELS = ("nvidia-cudnn-cu11", "nvidia-cudnn-cu12", "nvidia-cudnn-cu13", "cudnn")
FOUND = Finder(placed_libraries, sh_file(__file__, "found.sh"), WHEELS, _adopted)

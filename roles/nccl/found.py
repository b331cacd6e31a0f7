"""NCCL found on a host, in system libraries, toolkits and wheels, whether or not Hostwright installed it."""

from __future__ import annotations

from hostwright.roles import OTHER, Adopted, Finder, OnHost, placed_libraries, sh_file
from hostwright.standard.roles.nccl.section import PACKAGE, NcclSection


def _adopted(host: OnHost, section: NcclSection) -> Adopted:
    if host.debs.get(PACKAGE) == section.package_version:
        return Adopted()
    found = [version for _, version, *_ in host.all("library")]
    if not found:
        return Adopted(left_out="the host has NCCL only in wheels", unlike=OTHER)
    there = ", ".join(found)
    sentence = f"{there} did not come from the packages of {section.package_version}, and is kept"
    return Adopted(left_out=sentence, unlike=OTHER)


WHEELS = ("nvidia-nccl-cu11", "nvidia-nccl-cu12", "nvidia-nccl-cu13", "nccl")
FOUND = Finder(placed_libraries, sh_file(__file__, "found.sh"), WHEELS, _adopted)

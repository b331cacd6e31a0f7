"""TensorRT found on a host, in directories, system libraries and wheels, whether or not Hostwright installed it."""

from __future__ import annotations

from hostwright.roles import OTHER, Adopted, Finder, OnHost, placed_libraries, sh_file
from hostwright.standard.roles.tensorrt.section import TensorrtSection


def _adopted(host: OnHost, section: TensorrtSection) -> Adopted:
    found = [(place, version) for place, version, *_ in host.all("library")]
    if not found:
        return Adopted(left_out="the host has TensorRT only in wheels", unlike=OTHER)
    if (f"{section.prefix}/lib", section.library_version) in found:
        return Adopted()
    there = ", ".join(f"{version} in {place}" for place, version in found)
    sentence = f"{there} is not {section.library_version} in {section.prefix}, and is kept"
    return Adopted(left_out=sentence, unlike=OTHER)


WHEELS = ("tensorrt", "tensorrt-cu11", "tensorrt-cu12", "tensorrt-cu13")
FOUND = Finder(placed_libraries, sh_file(__file__, "found.sh"), WHEELS, _adopted)

"""Failures of a host as a whole: disks, memory, hardware, kernel, boot and units.

Those of apt and dpkg, and of the networks that they need, are a family with a page of its own.
"""

from __future__ import annotations

from hostwright.standard.roles.base.failures.packages import DISK, PACKAGES

FAILURES = (*DISK, *PACKAGES)
FAMILIES = {"apt": ("Failures of apt, dpkg and dnf, and of the way to their mirrors.", PACKAGES)}

"""Failures of a host as a whole: disks, memory, hardware, kernel, boot and units.

Failures of apt and dpkg are a separate family with its own page.
"""

from __future__ import annotations

from hostwright.standard.roles.base.failures.packages import DISK, PACKAGES

FAILURES = (*DISK, *PACKAGES)
FAMILIES = {"apt": ("Failures of apt, dpkg and dnf, and of the network to their mirrors.", PACKAGES)}

"""Failures of apt and dpkg, of the disks and networks that they need, and of a host as a whole."""

from __future__ import annotations

from hostwright.standard.roles.base.failures.packages import DISK, PACKAGES

FAILURES = (*DISK, *PACKAGES)

"""Failures of apt and dpkg, of disks and networks under them, and of a host as a whole."""

from __future__ import annotations

from hostwright.standard.roles.base.failures.packages import DISK, PACKAGES

FAILURES = (*DISK, *PACKAGES)

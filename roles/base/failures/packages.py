"""Failures of apt and dpkg, and of the disks and networks that they need."""

from __future__ import annotations

from hostwright.audit.failures import FailureRule, ForPeople, NoRoom
from hostwright.standard.roles.base.failures.apt import APT_RULES, CONFLICTING, INTERRUPTED, LOCKED
from hostwright.standard.roles.base.failures.disks import DISK_RULES, FULL
from hostwright.standard.roles.base.failures.host import HOST_RULES

#: A full disk makes every tool fail with a message of its own, so this rule comes before all others.
DISK = (
    FailureRule(
        "no-space",
        r"No space left on device|You don't have enough free space",
        "a filesystem is full",
        "Free space (df -h names the filesystem; apt-get clean is a start) and provision again",
        "dpkg, apt, pip",
        sign=FULL,
        treatment=NoRoom(),
        weight="root cause",
    ),
    *DISK_RULES,
)

PACKAGES = (
    FailureRule(
        "apt-lock",
        r"Could not get lock /var/(lib|cache)/(dpkg|apt)|Unable to acquire the dpkg frontend lock"
        r"|dpkg frontend lock was locked by another process",
        "another process held apt's lock for longer than the ten minutes that a run waits",
        "See who it is (fuser -v /var/lib/dpkg/lock-frontend), let it end, provision again; never delete the lock",
        "Azure/aks-engine#1538, #3068",
        transient=True,
        sign=LOCKED,
    ),
    FailureRule(
        "dpkg-interrupted",
        r"dpkg was interrupted",
        "dpkg was killed in the middle of its work",
        "Provision again: the base role runs dpkg --configure -a first",
        "apt",
        sign=INTERRUPTED,
    ),
    FailureRule(
        "no-public-key",
        r"NO_PUBKEY|repository .* is not signed",
        "an apt repository is signed with a key that the host does not have",
        "Remove the repository from /etc/apt/sources.list.d, or install its key and name it with signed-by",
        "apt-secure(8)",
    ),
    FailureRule(
        "signed-by-conflict",
        r"Conflicting values set for option Signed-By",
        "the same repository is configured twice with different keys",
        "Delete the older of the two lists in /etc/apt/sources.list.d",
        "NVIDIA/nvidia-docker#1631",
        sign=CONFLICTING,
        treatment=ForPeople(),
    ),
    FailureRule(
        "repository-date",
        r"Release file for .* (is not valid yet|is expired)",
        "the host's clock is wrong, or the mirror is no longer updated",
        "Set the clock (timedatectl) or name another mirror",
        "apt-secure(8)",
    ),
    FailureRule(
        "package-unknown",
        r"Unable to locate package|has no installation candidate|^E: Version '.*' for '.*' was not found",
        "no repository of the host has this package at this version",
        "Look at apt-cache policy PACKAGE on the host: a repository is missing, or a pin forbids it",
        "apt-get(8)",
    ),
    FailureRule(
        "name-resolution",
        r"Temporary failure (in name resolution|resolving)|Could not resolve( host)?",
        "the host cannot resolve names",
        "Repair DNS on the host, or point apt and pip at a mirror that it reaches",
        "apt, pip, curl",
        transient=True,
    ),
    FailureRule(
        "download-interrupted",
        r"Could not connect to .*[Cc]onnection (refused|timed out)|[Cc]onnection reset by peer"
        r"|Error reading from server|Failed to connect to .*|NewConnectionError|ReadTimeoutError|IncompleteRead",
        "a mirror or a package index did not answer, or broke off, at every attempt",
        "See from the host whether it answers (curl -I the address above); take another mirror, or provision later",
        "apt, pip, curl",
        transient=True,
    ),
    FailureRule(
        "download-damaged",
        r"Hash Sum mismatch|THESE PACKAGES DO NOT MATCH THE HASHES",
        "a downloaded file is not what its index says: a proxy or a mirror in the middle of an update",
        "Provision again; when it stays, go around the proxy or take another mirror",
        "apt, pip",
        transient=True,
    ),
    FailureRule(
        "download-missing",
        r"Failed to fetch .* 404 |HTTP error 404|The requested URL returned error: 404",
        "a file is no longer at its address, or the address is wrong",
        "Run apt-get update; for CUDA 11.2.2 the file's name ends in 11.2.2-460.32.03-1, not 460.27.04",
        "conda-forge/cudatoolkit-feedstock",
    ),
    FailureRule(
        "held-packages",
        r"you have held broken packages|packages have unmet dependencies",
        "the packages asked for cannot be installed together with what is held or installed",
        "Look at apt-mark showhold on the host, and at the lines above this message for the package that clashes",
        "NVIDIA/ansible-role-nvidia-driver#33",
    ),
    *APT_RULES,
    *HOST_RULES,
)

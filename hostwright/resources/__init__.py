"""Everything that authors of roles import: states, conditions, the types of their fields, and shared probes.

A state that only one role uses is in the folder of that role.
"""

from __future__ import annotations

from hostwright.plan.host import jobs, release
from hostwright.plan.host.hostfacts import (
    AVX,
    HOST_PROBES,
    MEMORY,
    PCI,
    PYTHONS,
    UNAME,
    display_controllers,
    interpreters,
    memory_bytes,
    pci_devices,
    pythons,
    read_host,
)
from hostwright.plan.host.jobs import ERROR
from hostwright.plan.host.release import RELEASE
from hostwright.plan.model import (
    Answer,
    Change,
    Condition,
    Deferred,
    Facts,
    Pass,
    PassPart,
    Planned,
    Probe,
    Reboot,
    Refusal,
    Resource,
    Step,
)
from hostwright.plan.roles.software import Software
from hostwright.plan.state_identity import NO_IDENTITY
from hostwright.resources.conditions import Answers, Differs, Require, Script, When
from hostwright.resources.files import passes
from hostwright.resources.files.archives import ArchiveUnpacked, Delivered, NoStrayFiles, Part
from hostwright.resources.files.aside import KEEP_ASIDE, kept_aside
from hostwright.resources.files.files import Absent, Directory, File, JsonMerged, Link, merge
from hostwright.resources.files.paths import ABSENT, content_probe, few, stat_probe
from hostwright.resources.originals import INSTALLED_BY_US, PACKAGES_BEFORE, changed, installed_by_us, packages_before
from hostwright.resources.packages.components import AptComponents
from hostwright.resources.packages.debfile import DebFile, DebFiles
from hostwright.resources.packages.debs_gone import DebsGone
from hostwright.resources.packages.dpkg import DPKG, dpkg_table
from hostwright.resources.packages.mirrored import take
from hostwright.resources.packages.openpgp import expired_on
from hostwright.resources.packages.others import PackageDirectory
from hostwright.resources.packages.packaged import CommandReports, PackagedPrograms, PackagedTree, reinstall_script
from hostwright.resources.packages.packages import (
    DPKG_LOCK,
    JOURNAL,
    MIRROR_TRIES,
    Debs,
    DebsAbsent,
    DpkgInOrder,
    Installed,
    NamedLike,
    dpkg_rows,
    is_broken,
    named_like,
)
from hostwright.resources.packages.repositories import (
    DEARMOR,
    AptSource,
    Keyring,
    LocalRepo,
    RepoDropped,
    SourcesDisabled,
    signed_repository,
)
from hostwright.resources.python.environments import (
    ENVIRONMENT_RULES,
    EnvironmentSection,
    EnvironmentVariables,
    environment_states,
    environment_values,
    on_section,
    pins_are_there,
)
from hostwright.resources.python.found import environment_finder
from hostwright.resources.python.hashes import read_constraints
from hostwright.resources.python.interpreters import VenvPackage
from hostwright.resources.python.python import Recipe, Venv
from hostwright.resources.python.users_files import HOMES
from hostwright.resources.python.venv_audit import Dist, Drift, FoundVenv, find_drifts, parse_audit
from hostwright.resources.system.accounts import SystemUser
from hostwright.resources.system.bootloader import BOOT_LOADER, NextBoot, next_boot, words_set
from hostwright.resources.system.kernel import (
    HEADERS,
    KERNEL_GONE,
    UPDATE_INITRAMFS,
    Initramfs,
    KernelPackages,
    KernelThere,
    is_loose_kernel,
)
from hostwright.resources.system.loader import Alternative, FormerName, LoaderCache
from hostwright.resources.system.room import FreeSpace
from hostwright.resources.system.services import Disturbing, RestartedAfter, Running, Service, bus_path
from hostwright.resources.system.services_gone import UserGone
from hostwright.stack.stack import IndexFile, RoleFile
from hostwright.stack.store.artifacts import sha256_of
from hostwright.stack.store.debs import PackageMirror
from hostwright.stack.store.hostcache import CACHE, host_path

__all__ = [
    "ABSENT", "AVX", "BOOT_LOADER", "CACHE", "DEARMOR", "DPKG", "DPKG_LOCK", "ENVIRONMENT_RULES", "ERROR", "HEADERS",
    "HOMES", "HOST_PROBES", "INSTALLED_BY_US", "JOURNAL", "KEEP_ASIDE", "KERNEL_GONE", "MEMORY", "MIRROR_TRIES",
    "NO_IDENTITY", "PACKAGES_BEFORE", "PCI", "PYTHONS", "RELEASE", "UNAME", "UPDATE_INITRAMFS", "Absent",
    "Alternative", "Answer", "Answers", "AptComponents", "AptSource", "ArchiveUnpacked", "Change", "CommandReports",
    "Condition", "DebFile", "DebFiles", "Debs", "DebsAbsent", "DebsGone", "Deferred", "Delivered", "Differs",
    "Directory", "Dist", "Disturbing", "DpkgInOrder", "Drift", "EnvironmentSection", "EnvironmentVariables", "Facts",
    "File", "FormerName", "FoundVenv", "FreeSpace", "IndexFile", "Initramfs", "Installed", "JsonMerged",
    "KernelPackages", "KernelThere", "Keyring", "Link", "LoaderCache", "LocalRepo", "NamedLike", "NextBoot",
    "NoStrayFiles", "PackageDirectory", "PackageMirror", "PackagedPrograms", "PackagedTree", "Part", "Pass",
    "PassPart", "Planned", "Probe", "Reboot", "Recipe", "Refusal", "RepoDropped", "Require", "Resource",
    "RestartedAfter", "RoleFile", "Running", "Script", "Service", "Software", "SourcesDisabled", "Step", "SystemUser",
    "UserGone", "Venv", "VenvPackage",
    "When", "bus_path", "changed", "content_probe", "display_controllers", "dpkg_rows", "dpkg_table",
    "environment_finder", "environment_states", "environment_values", "expired_on", "few", "find_drifts", "host_path",
    "installed_by_us", "interpreters", "is_broken", "is_loose_kernel", "jobs", "kept_aside", "memory_bytes", "merge",
    "named_like", "next_boot", "on_section", "packages_before", "parse_audit", "passes", "pci_devices",
    "pins_are_there", "pythons", "read_constraints", "read_host", "reinstall_script", "release", "sha256_of",
    "signed_repository", "stat_probe", "take", "words_set",
]  # fmt: skip

"""For authors of roles: types of a role's declarations (function, context, variables, stack section, rules, audits).

Also helpers for all files of a role: shell quoting, errors for operators, and strict parsers for a host's output. A
role imports only this module, ``hostwright.resources``, ``hostwright.failures``, ``hostwright.proofs`` and
``hostwright.cli.verb``; see docs/roles.md.
"""

from __future__ import annotations

from hostwright.audit.hardware.gpu import EccCounts, Gpu, GpuEvent, GpuLink, GpuProcess
from hostwright.audit.readings.answers import check_lines
from hostwright.audit.readings.program import user_program
from hostwright.common.canonical import Same
from hostwright.common.command import Command
from hostwright.common.errors import AS_DESIRED, DIFFERS, HostError, InputError, InputErrors
from hostwright.common.input.hostpath import HostPath, clean_path
from hostwright.common.input.nearest import nearest, suggestion
from hostwright.common.input.unquoted import Unquoted, text_as_written
from hostwright.common.input.validation import describe
from hostwright.common.input.yamlfile import parse_document
from hostwright.common.interruption import on_interrupt
from hostwright.common.places import write_whole
from hostwright.common.quoting import sh, sh_file, words
from hostwright.common.secret import Secret
from hostwright.common.templates import render
from hostwright.common.text import count, one_line, printable, short, shown_bytes
from hostwright.common.untrusted import Match, Pattern, json_object, whole
from hostwright.common.userpaths import expanded
from hostwright.plan.host.occupancy import Occupancy, services_at_work
from hostwright.plan.roles.auditvalue import (
    DISTRIBUTION,
    KERNEL,
    PRODUCT,
    AuditValue,
    FileLine,
    FileThere,
    LibraryPath,
    LibraryVersion,
    PackageHold,
    PackageOf,
    PackageVersion,
    Snippet,
    UnitProperty,
    VenvPython,
    VenvVersion,
)
from hostwright.plan.roles.found import (
    OTHER,
    Adopted,
    Finder,
    FoundValues,
    OnHost,
    distance,
    placed_libraries,
)
from hostwright.plan.roles.role import EVERY, RoleContext, discover, role
from hostwright.stack.fitting import Choice, Ground, Misfit, RoleRules
from hostwright.stack.rules import check_host, disk_is_enough, memory_is_enough
from hostwright.stack.stack import BOOT, WORK, AptRepository, Artifact, Section, Share, Stack, taken
from hostwright.stack.stackvalues import (
    AbsolutePath,
    ArtifactName,
    DebianVersion,
    ExactVersion,
    FileName,
    Fingerprint,
    Kernels,
    Name,
    PythonVersion,
    RelativePath,
    StackPart,
    TextFile,
    WithoutNulls,
)
from hostwright.stack.versions import kernel_version, series, version

__all__ = [
    "AS_DESIRED", "BOOT", "DIFFERS", "DISTRIBUTION", "EVERY", "KERNEL", "OTHER", "PRODUCT", "WORK", "AbsolutePath",
    "Adopted", "AptRepository", "Artifact", "ArtifactName", "AuditValue", "Choice", "Command", "DebianVersion",
    "EccCounts", "ExactVersion", "FileLine", "FileName", "FileThere", "Finder", "Fingerprint", "FoundValues", "Gpu",
    "GpuEvent", "GpuLink", "GpuProcess", "Ground", "HostError", "HostPath", "InputError", "InputErrors", "Kernels",
    "LibraryPath", "LibraryVersion", "Match", "Misfit", "Name", "Occupancy", "OnHost", "PackageHold", "PackageOf",
    "PackageVersion", "Pattern", "PythonVersion", "RelativePath", "RoleContext", "RoleRules", "Same",
    "Secret", "Section", "Share", "Snippet", "Stack", "StackPart", "TextFile", "UnitProperty", "Unquoted",
    "VenvPython", "VenvVersion", "WithoutNulls", "check_host", "check_lines", "clean_path", "count", "describe",
    "discover", "disk_is_enough", "distance", "expanded", "json_object", "kernel_version", "memory_is_enough",
    "nearest", "on_interrupt", "one_line", "parse_document", "placed_libraries", "printable", "render", "role",
    "series", "services_at_work", "sh", "sh_file", "short", "shown_bytes", "suggestion", "taken", "text_as_written",
    "user_program",
    "version", "whole", "words", "write_whole",
]  # fmt: skip

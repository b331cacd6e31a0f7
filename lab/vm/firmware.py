"""Enrolment of machine owner keys (MOKs) in the firmware variables of a virtual machine that is off.

The enrolment needs no confirmation at the console. A certificate is written into shim's variable ``MokList``. The
layout is edk2's (MdeModulePkg, Include/Guid/VariableFormat.h); the value of ``MokList`` is an EFI_SIGNATURE_LIST of the
UEFI specification.
"""

from __future__ import annotations

import struct
import uuid
from pathlib import Path

from hostwright.common.errors import LabError

_SHIM = uuid.UUID("605dab50-e046-4300-abb6-3dd810dd8b23")  # GUID of the variables of shim (SHIM_LOCK_GUID)
# GUID of the type X.509 in a list of certificates (EFI_CERT_X509_GUID)
_X509 = uuid.UUID("a5c059a1-94e4-4aa7-87b5-ab155c2bf072")
# GUID of a variable store (gEfiAuthenticatedVariableGuid)
_AUTHENTICATED = uuid.UUID("aaf32c78-947b-439a-a180-2e144ec37792")
_OWNER = uuid.UUID("4857a0c4-1ab0-4d1e-9f5b-6f2d7c0e3a12")  # GUID of the lab as owner of the certificate (our choice)

_VOLUME_LENGTH = struct.Struct("<H")  # layout of the length of the firmware volume's header, at offset 48
#: layout of a variable store's header: GUID, size, format, state, two reserved fields
_STORE = struct.Struct("<16sIBBHI")
#: layout of a variable's header: start, state, reserved, attributes, count, time, key's index, sizes of name and data,
#: vendor
_VARIABLE = struct.Struct("<HBBIQ16sIII16s")
_START, _ADDED = 0x55AA, 0x3F
# variable attributes "non-volatile" and "boot services", which shim requires of a MokList
_KEPT_FOR_BOOT = 0x3


def mok_list(certificate: bytes) -> bytes:
    """Return shim's variable ``MokList`` with ``certificate`` (DER) as its only entry."""
    one = _OWNER.bytes_le + certificate
    return _X509.bytes_le + struct.pack("<III", 28 + len(one), 0, len(one)) + one


def enrol(variables: Path, certificate: bytes) -> None:
    """Add ``MokList`` with ``certificate`` (DER) to the file ``variables`` of firmware variables."""
    data = bytearray(variables.read_bytes())
    at, end = _free(bytes(data))
    entry = _entry("MokList", _SHIM, mok_list(certificate))
    if at + len(entry) > end:
        raise LabError(f"{variables} has no room for a key")
    data[at : at + len(entry)] = entry
    variables.write_bytes(data)


def names(variables: Path) -> list[str]:
    """Return the names of the valid variables in the file ``variables``, in file order."""
    data = variables.read_bytes()
    return [name for _, name, state in _walk(data) if state == _ADDED]


def _entry(name: str, vendor: uuid.UUID, value: bytes) -> bytes:
    text = name.encode("utf-16-le") + b"\0\0"
    header = (_START, _ADDED, 0, _KEPT_FOR_BOOT, 0, bytes(16), 0, len(text), len(value), vendor.bytes_le)
    return _VARIABLE.pack(*header) + text + value


def _store(data: bytes) -> tuple[int, int]:
    """Raise `LabError` if ``data`` is not a store of firmware variables with Secure Boot.

    Returns the offset of the first variable and the offset of the store's end.
    """
    start = _VOLUME_LENGTH.unpack_from(data, 48)[0]
    guid, size, *_ = _STORE.unpack_from(data, start)
    if guid != _AUTHENTICATED.bytes_le:
        raise LabError("the file does not contain firmware variables with Secure Boot support")
    return start + _STORE.size, start + size


def _walk(data: bytes) -> list[tuple[int, str, int]]:
    """Return (end, name, state) of every variable in ``data``. The next variable starts at ``end``, which is
    aligned.
    """
    at, end = _store(data)
    found = []
    while at + _VARIABLE.size <= end and _VARIABLE.unpack_from(data, at)[0] == _START:
        _, state, *_, of_name, of_data, _ = _VARIABLE.unpack_from(data, at)
        name = data[at + _VARIABLE.size : at + _VARIABLE.size + of_name].decode("utf-16-le").rstrip("\0")
        at = (at + _VARIABLE.size + of_name + of_data + 3) & ~3
        found.append((at, name, state))
    return found


def _free(data: bytes) -> tuple[int, int]:
    first, end = _store(data)
    return max((at for at, _, _ in _walk(data)), default=first), end

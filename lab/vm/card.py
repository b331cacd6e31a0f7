"""An emulated NVIDIA card on the PCI bus of a virtual machine: only the ids by which drivers find the card.

This program is the device's process (QEMU's ``x-pci-proxy-dev``). The program starts QEMU, and receives from QEMU every
access to the card. The guest's drivers find a card that does not work.
"""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from lab.hardware import T4, Card, display_config

#: layout of the header of QEMU's messages: command, number of data bytes (include/hw/remote/mpqemu-link.h)
_HEADER = struct.Struct("<i4xQ")
_ACCESS = struct.Struct("<IIi")  # layout of an access to the configuration space: address, value, length
_MEMORY = struct.Struct("<QQI")  # layout of an access to a register: address, value, length
_NUMBER = struct.Struct("<Q")
_RETURN, _CONFIG_WRITE, _CONFIG_READ, _MEMORY_WRITE, _MEMORY_READ, _RESET = 1, 2, 3, 4, 5, 7
_ANSWERED = (_CONFIG_READ, _CONFIG_WRITE, _MEMORY_WRITE, _MEMORY_READ, _RESET)

_COMMAND, _BAR0, _LINE = 0x04, 0x10, 0x3C
#: sizes in bytes of the card's BARs for registers, memory and instance memory. QEMU's proxy does not support the 64-bit
#: BARs of a real card.
_WINDOWS_BYTES = (16 * 2**20, 64 * 2**20, 32 * 2**20)
#: address of an unused configuration byte. The value 1 makes the chip's identity readable until power-off.
_IDENTIFIES = 0xF0
#: identity of a T4's chip, TU104 A1: register → value (NV_PMC_BOOT_0 and NV_PMC_BOOT_42)
_IDENTITY = {0x0: 0x1640_00A1, 0xA00: 0x164A_1000}


@dataclass
class Function:
    """PCI function of the emulated card. The guest may write the command, BARs and interrupt line."""

    card: Card = T4
    config: bytearray = field(init=False)
    writable: bytearray = field(init=False)

    def __post_init__(self) -> None:
        self.config = bytearray(display_config(self.card))
        self.config[0x3D] = 1  # byte 0x3D is the interrupt pin, and 1 means pin A
        self.writable = bytearray(len(self.config))
        struct.pack_into("<H", self.writable, _COMMAND, 0x0407)
        masks = (0x1_0000_0000 - size for size in _WINDOWS_BYTES)
        struct.pack_into("<III", self.writable, _BAR0, *masks)
        self.writable[_LINE] = 0xFF
        self.writable[_IDENTIFIES] = 1

    def read(self, address: int, length: int) -> int:
        """Read ``length`` bytes of the configuration space at ``address``, as a number."""
        return int.from_bytes(self.config[address : address + length], "little")

    def write(self, address: int, value: int, length: int) -> None:
        """Store the writable bits of ``value`` at ``address`` of the configuration space."""
        for at, byte in enumerate(value.to_bytes(4, "little")[:length], address):
            mask = self.writable[at]
            self.config[at] = self.config[at] & ~mask | byte & mask

    def answer(self, command: int, data: bytes) -> int | None:
        """Return the number in the response to QEMU's message ``command``; ``None`` without a response.

        Every register reads as 0, so that drivers ignore the card, until the guest makes the chip's identity readable.
        """
        if command in (_CONFIG_READ, _CONFIG_WRITE):
            address, value, length = _ACCESS.unpack_from(data)
            if command == _CONFIG_READ:
                return self.read(address, length)
            self.write(address, value, length)
        if command == _MEMORY_READ and self.config[_IDENTIFIES]:
            return _IDENTITY.get(_MEMORY.unpack_from(data)[0] - self.read(_BAR0, 4), 0)
        return 0 if command in _ANSWERED else None


def serve(connection: socket.socket, function: Function) -> None:
    """Answer QEMU's requests over ``connection`` until QEMU ends."""
    while header := _receive(connection, _HEADER.size):
        command, size = _HEADER.unpack(header)
        number = function.answer(command, _receive(connection, size))
        if number is not None:
            connection.sendall(_HEADER.pack(_RETURN, _NUMBER.size) + _NUMBER.pack(number))


def _receive(connection: socket.socket, size: int) -> bytes:
    """Read exactly ``size`` bytes, or none if the other end is closed. Received file descriptors are closed."""
    data = b""
    while len(data) < size:
        part, files, _, _ = socket.recv_fds(connection, size - len(data), 16)
        for file in files:
            socket.close(file)
        if not part:
            return b""
        data += part
    return data


def main(command: Sequence[str]) -> int:
    """Run the QEMU command ``command`` with the card added; return the exit status."""
    ours, theirs = socket.socketpair()
    number = theirs.fileno()
    card = ("-device", f"x-pci-proxy-dev,id=card0,fd={number}")
    with subprocess.Popen([*command, *card], pass_fds=(number,)) as emulator:
        theirs.close()
        serve(ours, Function())
    return emulator.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

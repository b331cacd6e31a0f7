"""Virtual machines of the lab: their command line, their made-up card, the keys in their firmware."""

from __future__ import annotations

import socket
import struct
import threading
import uuid
from pathlib import Path

import pytest

from hostwright.common.errors import LabError
from lab.config import HostOptions, Lab, Machine
from lab.hardware import T4
from lab.vm import firmware, qemu, system
from lab.vm.card import Function, serve

ADDRESS, VALUE = 0x10, 0xFFFFFFFF
SYNC, CONFIG_WRITE, CONFIG_READ, MEMORY_READ = 0, 2, 3, 5


@pytest.mark.parametrize(
    ("flags", "device", "chosen"),
    [
        ("fpu vmx sse", True, "kvm"),
        ("fpu svm sse", True, "kvm"),
        ("fpu sse", True, "tcg"),  # as under a hypervisor that runs only kernels made for it
        ("fpu vmxnet sse", True, "tcg"),
        ("fpu vmx sse", False, "tcg"),
    ],
)
def test_kvm_is_taken_where_the_processor_has_it(flags: str, device: bool, chosen: str) -> None:
    assert qemu.accelerator(f"model name\t: x\nflags\t\t: {flags}\nbugs\t\t: svm vmx\n", device) == chosen


def test_a_record_without_a_kind_is_a_containers() -> None:
    old = {key: value for key, value in HostOptions().to_json().items() if key != "kind"}
    assert HostOptions.from_json(old).kind == "container"
    assert HostOptions.from_json(HostOptions(kind="vm").to_json()).kind == "vm"


def test_a_machine_has_the_cable_and_address_of_its_number() -> None:
    machine = Machine(Lab("tests", 3), "vm01", 7)
    command = qemu.command(machine, "tcg")
    assert f"tap,id=cable,ifname={machine.link},script=no,downscript=no" in command
    assert f"virtio-net-pci,netdev=cable,mac={machine.mac},romfile=" in command
    assert command[command.index("-cpu") + 1] == "max"
    assert "host" in qemu.command(machine, "kvm")


def test_a_machines_files_name_its_cable_its_disk_and_its_console(tmp_path: Path) -> None:
    machine = Machine(Lab("tests", 3, tmp_path, tmp_path), "vm01", 7)
    units = machine.merged / "etc/systemd/system"
    units.mkdir(parents=True)
    (units / "systemd-networkd.service").symlink_to("/dev/null")
    system.settle(machine, 1400)
    network = (machine.merged / "etc/systemd/network/lab.network").read_text()
    assert f"MACAddress={machine.mac}\n" in network
    assert f"Address={machine.address}/22\nGateway={machine.lab.gateway.ip}\n" in network
    assert not (units / "systemd-networkd.service").is_symlink()
    uuid_of_root = f"UUID={system.ROOT_UUID}"
    assert (machine.merged / "etc/fstab").read_text().startswith(f"{uuid_of_root} / ext4 ")
    assert f"linux /vmlinuz root={uuid_of_root} ro" in (machine.merged / "boot/grub/grub.cfg").read_text()
    assert "console=ttyS0" in (machine.merged / "etc/default/grub").read_text()


def test_the_card_is_found_by_its_ids_and_class() -> None:
    card = Function()
    assert (card.read(0x00, 2), card.read(0x02, 2)) == (0x10DE, T4.device)
    assert card.read(0x0A, 2) == 0x0302  # a 3D controller


def test_a_window_tells_its_size_and_other_registers_keep_their_value() -> None:
    card = Function()
    card.write(ADDRESS, VALUE, 4)
    assert card.read(ADDRESS, 4) == 0xFF000000  # 16 MiB, as 32-bit memory
    card.write(ADDRESS, 0xFE000000, 4)
    assert card.read(ADDRESS, 4) == 0xFE000000
    for other in (0x00, 0x08, 0x14, 0x28, 0x2C):
        before = card.read(other, 4)
        card.write(other, VALUE, 4)
        assert card.read(other, 4) == before


def test_qemu_is_answered_until_it_ends() -> None:
    ours, theirs = socket.socketpair()
    server = threading.Thread(target=serve, args=(ours, Function()))
    server.start()

    def ask(command: int, data: bytes) -> int:
        theirs.sendall(struct.pack("<i4xQ", command, len(data)) + data)
        kind, size, value = struct.unpack("<i4xQQ", theirs.recv(24, socket.MSG_WAITALL))
        assert (kind, size) == (1, 8)
        return int(value)

    theirs.sendall(struct.pack("<i4xQ", SYNC, 8) + bytes(8))  # which it does not answer
    assert ask(CONFIG_READ, struct.pack("<IIi", 0, 0, 4)) == T4.device << 16 | 0x10DE
    assert ask(CONFIG_WRITE, struct.pack("<IIi", ADDRESS, VALUE, 4)) == 0
    assert ask(CONFIG_READ, struct.pack("<IIi", ADDRESS, 0, 4)) == 0xFF000000
    assert ask(MEMORY_READ, bytes(24)) == 0  # no chip's number
    theirs.close()
    server.join(timeout=60)
    assert not server.is_alive()


def variables(path: Path, guid: str = "aaf32c78-947b-439a-a180-2e144ec37792") -> Path:
    """A firmware's variables with one in force: the volume's header, the store's, the variable, free flash."""
    volume = bytearray(72)
    struct.pack_into("<H", volume, 48, len(volume))
    name, value = "Boot0000".encode("utf-16-le") + b"\0\0", b"abc"
    header = (0x55AA, 0x3F, 0, 7, 0, bytes(16), 0, len(name), len(value), uuid.uuid4().bytes_le)
    one = struct.pack("<HBBIQ16sIII16s", *header) + name + value
    store = struct.pack("<16sIBBHI", uuid.UUID(guid).bytes_le, 4096, 0x5A, 0xFE, 0, 0)
    path.write_bytes(bytes(volume) + (store + one).ljust(4096, b"\xff"))
    return path


def test_a_key_is_enrolled_behind_the_other_variables(tmp_path: Path) -> None:
    file = variables(tmp_path / "vars.fd")
    firmware.enrol(file, b"certificate")
    assert firmware.names(file) == ["Boot0000", "MokList"]
    data = file.read_bytes()
    assert len(data) == 72 + 4096
    listed = data[data.index(b"certificate") - 16 - 28 :]
    assert struct.unpack_from("<III", listed, 16) == (28 + 16 + 11, 0, 16 + 11)
    assert listed[:16] == uuid.UUID("a5c059a1-94e4-4aa7-87b5-ab155c2bf072").bytes_le


def test_a_key_that_does_not_fit_or_another_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="no room"):
        firmware.enrol(variables(tmp_path / "a"), bytes(5000))
    with pytest.raises(LabError, match="Secure Boot"):
        firmware.enrol(variables(tmp_path / "b", str(uuid.UUID(int=0))), b"key")

"""Proofs (tests on a host) of the disk, memory, processors and network of every host."""

from __future__ import annotations

from pathlib import Path

from hostwright.proofs import Program, Proof
from hostwright.roles import RoleContext, sh_file
from hostwright.standard.roles.base import Base
from hostwright.standard.roles.base.proofs import judges
from hostwright.standard.roles.base.proofs.sources import source

DISK_BYTES = 4 * 1024**3  #: size in bytes of the disk test's file. Most disk controllers cache less (1 to 4 GiB).
#: size in bytes of each array of the memory test. The STREAM benchmark requires four times the last-level cache.
MEMORY_BYTES = 512 * 1024**2

MEMORY_S = 2.5  #: duration in seconds of a memory test (our choice)
NETWORK_PORT = 29472  #: TCP port of the proof ``network``, unassigned in IANA's registry

_COMPILER = ("g++", "-std=c++14", "-O2", "-pthread", "-o", "{program}", "{source}")


def proofs(variables: Base, _ctx: RoleContext) -> tuple[Proof, ...]:
    """Return the proofs of disk throughput, memory, processors, and the network between hosts."""
    disk = Program("disk.cpp", source(__file__, "disk.cpp"), compiler=_COMPILER, arguments={"bytes": DISK_BYTES})
    memory = Program(
        "memory.cpp",
        source(__file__, "memory.cpp"),
        compiler=_COMPILER,
        arguments={"bytes": MEMORY_BYTES, "seconds": MEMORY_S},
    )
    processors = Program("processors.sh", sh_file(__file__, "processors.sh"), interpreter=("sh",))
    text = (Path(__file__).with_name("programs") / "network.py").read_text("utf-8")
    ring = {"port": NETWORK_PORT, "streams": 4, "seconds": 10, "start_limit_s": 60}
    network = Program("network.py", text, interpreter=("python3",), arguments=ring)
    asked = judges.network(variables.network_mb_per_s)
    return (
        Proof("processors", "base", processors, judges.processors, "quick", 60, needs_gpu=False),
        Proof("memory", "base", memory, judges.memory, "quick", 120, needs_gpu=False),
        Proof("disk", "base", disk, judges.disk, "full", 180, needs_gpu=False),
        Proof("network", "base", network, asked, "full", 180, needs_gpu=False, hosts=2),
    )

"""Proofs of every host: its disk, memory, processors and network, which can slow down a good GPU."""

from __future__ import annotations

from pathlib import Path

from hostwright.proofs import Program, Proof
from hostwright.roles import RoleContext, sh_file
from hostwright.standard.roles.base import Base
from hostwright.standard.roles.base.proofs import judges
from hostwright.standard.roles.base.proofs.sources import source

#: Size of the test file: larger than the cache of a disk's controller (up to 8 GiB on large ones, 1 to 4 on most),
#: small enough for a minute on the slowest disk that is not a finding.
DISK_BYTES = 4 * 1024**3
#: Size of each of three arrays: STREAM requires four times the last-level cache. The largest current processor has 384
#: MiB; with such caches only the comparison with peers counts.
MEMORY_BYTES = 512 * 1024**2

#: Seconds of the memory measurement with one processor, and again with all: our choice. The best round counts; a round
#: takes a tenth of a second.
MEMORY_S = 2.5
#: Port of the proof `network` while it runs; unassigned in IANA's registry.
NETWORK_PORT = 29472

_COMPILER = ("g++", "-std=c++14", "-O2", "-pthread", "-o", "{program}", "{source}")


def proofs(variables: Base, _ctx: RoleContext) -> tuple[Proof, ...]:
    """Return proofs of disk throughput, memory bandwidth, processor and memory configuration, and the network between
    hosts.
    """
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

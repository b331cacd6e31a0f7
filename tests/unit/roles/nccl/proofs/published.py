"""NCCL's logs on other people's hosts, and the way that it took there. Each case is named after the issue with the log,
and holds only the lines that matter, with names of our own.
"""

from __future__ import annotations

import pytest


def log(*lines: str) -> str:
    return "".join(f"gpu01:4711:4712 [0] NCCL INFO {line}\n" for line in lines)


def ring(kind: str, speed: str = "bw 20.000000/20.000000", channels: int = 12) -> str:
    return f"Pattern 4, crossNic 0, nChannels {channels}, {speed}, type {kind}, sameChannels 1"


NVLS = "NVLS comm 0x55a7be5601c0 headRank 0 nHeads 2 buffSize 4194304 memSize 2097152 nvlsPerRankSize 201326592"


LOGS = (
    pytest.param(
        log(
            "NET/Socket : Using [0]lo:127.0.0.1<0>",
            "Using network Socket",
            ring("SYS/PIX", "speed 9.000000/9.000000"),
            "Channel 00 : 1[89000] -> 0[3d000] via direct shared memory",
            "Connected all rings",
        ),
        "host memory",
        id="NVIDIA/nccl#1190",
    ),
    pytest.param(
        log(
            "Channel 00/1 : 0[41000] -> 3[81000] [receive] via NET/IB/1/Shared",
            "Could not enable P2P between dev 1(=81000) and dev 0(=41000)",
            "Channel 00 : 3[81000] -> 2[41000] via SHM/direct/direct",
        ),
        "network",
        id="NVIDIA/nccl#1516",
    ),
    pytest.param(
        log(
            "NCCL_P2P_LEVEL set by environment to LOC",
            ring("SYS/PIX", channels=1),
            "Channel 00 : 7[ca000] -> 6[c7000] via SHM/direct/direct",
            "Connected all rings",
        ),
        "host memory",
        id="NVIDIA/nccl-tests#228",
    ),
    pytest.param(
        log(
            "P2P is disabled between connected GPUs 1 and 0.",
            "Pattern 4, crossNic 0, nChannels 1, bw 5.000000/5.000000, type SYS/PIX, sameChannels 1",
            " 0 : GPU/0 GPU/1 GPU/2 GPU/3 GPU/4 GPU/5 GPU/6 GPU/7",
            "Pattern 1, crossNic 0, nChannels 1, bw 5.000000/5.000000, type SYS/PIX, sameChannels 1",
            "Channel 00 : 0[0] -> 1[1] via SHM/direct/direct",
        ),
        "host memory",
        id="NVIDIA/nccl-tests#307",
    ),
    pytest.param(
        log(
            ring("NVL/PIX"),
            "Channel 03/1 : 0[0] -> 1[1] via P2P/direct pointer/read",
            "Channel 02/1 : 1[1] -> 0[0] via P2P/direct pointer/read",
        ),
        "NVLink",
        id="NVIDIA/nccl-tests#331",
    ),
    pytest.param(
        log(
            ring("NVL/PIX"),
            "NVLS multicast support is not available on dev 0",
            "Channel 15/0 : 7[7] -> 4[4] via P2P/direct pointer",
            "Connected all trees",
            "16 coll channels, 0 nvls channels, 16 p2p channels, 16 p2p channels per peer",
        ),
        "NVLink",
        id="NVIDIA/nccl#892",
    ),
    pytest.param(
        log(
            ring("NVL/PIX"),
            "NVLS multicast support is available on dev 0",
            "Channel 14/0 : 5[5] -> 4[4] via P2P/direct pointer",
            "Connected all trees",
            NVLS,
        ),
        "NVLink",
        id="NVIDIA/nccl-tests#213",
    ),
    pytest.param(
        log(
            ring("NVL/PIX", channels=24),
            "NVLS multicast support is available on dev 0 (NVLS_NCHANNELS 16)",
            "comm 0x563cb8ca7160 rank 6 nRanks 8 nNodes 1 localRanks 8 localRank 6 MNNVL 0",
            "Channel 00/24 :    0   1   2   3   4   5   6   7",
            "24 coll channels, 24 collnet channels, 16 nvls channels, 32 p2p channels, 32 p2p channels per peer",
            NVLS,
        ),
        "NVLink",
        id="NVIDIA/nccl#2094 and #1453: since 2.22 a way is opened when it is first used, and NVLS needs no other",
    ),
    pytest.param(
        log(
            ring("NODE/PIX"),
            "Channel 02 : 3[3] -> 0[0] via SHM/direct/direct",
            "Channel 02 : 1[1] -> 2[2] via SHM/direct/direct",
            "Channel 00/0 : 2[2] -> 3[3] via P2P/CUMEM/read",
            "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read",
        ),
        "host memory",
        id="four A100 with bridges between two and two: a public report, found by its text",
    ),
    pytest.param(
        log(
            ring("NVB/PIX", "speed 9.000000/9.000000"),
            "Channel 00 : 0[1a000] -> 5[1d000] via P2P/indirect/4[1c000]",
            "Channel 00 : 5[1d000] -> 4[1c000] via P2P/IPC",
        ),
        "NVLink",
        id="NVIDIA/nccl src/transport/p2p.cc, through a third card",
    ),
    pytest.param(
        log(
            "NET/Plugin: Could not find: libnccl-net.so. Using internal network plugin.",
            "NET/IB : No device found.",
            "NET/Socket : Using [0]eno1:10.0.0.9<0>",
            ring("PXB/PIX"),
            "Channel 00/1 : 2[2] -> 3[3] via P2P/direct pointer",
        ),
        "PCIe",
        id="NVIDIA/nccl#1817 and #1637",
    ),
)

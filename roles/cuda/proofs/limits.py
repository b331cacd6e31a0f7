"""What a sound card gives at least, by model, each number with its source. Cards are told apart by their PCI id.

Azure: azurehpc-health-checks (commit 0e0a1ac), conf/*.conf, ``check_gpu_bw HOST PEER``: GB/s between host and card, and
between cards, with nvbandwidth's copy engines; the virtual machines' names say which cards they have.

DCGM: NVIDIA/DCGM (commit 72fa3fe), nvvs/diag-skus.yaml.in, ``memory_bandwidth.minimum_bandwidth`` in MB/s, of STREAM's
triad in the card's memory. Of an id that stands there twice, the lower one. Left out are 20b0 (A100-SXM4-40GB, 137500)
and 2335 (H200, 2333), which are a tenth and a thousandth of their neighbours': mistakes there, and no limit here.
"""

from __future__ import annotations

#: PCI id → GB/s between the host and the card, in each direction
HOST = {
    "1db4": 10.0,  # V100-PCIE-16GB: Azure, nc6s_v3, nc12s_v3, nc24s_v3, nc24rs_v3
    "1db5": 9.0,  # V100-SXM2-32GB: Azure, nd40rs_v2
    "20b0": 21.0,  # A100-SXM4-40GB: Azure, nd96asr_v4
    "20b2": 21.0,  # A100-SXM4-80GB: Azure, nd96amsr_a100_v4
    "20b5": 21.0,  # A100 80GB PCIe: Azure, nc24ads_a100_v4, nc48ads_a100_v4, nc96ads_a100_v4
    "2321": 48.0,  # H100 NVL: Azure, nc40ads_h100_v5, nc80adis_h100_v5
    "2330": 48.0,  # H100 80GB HBM3: Azure, nd96isr_h100_v5
    "2335": 48.0,  # H200: Azure, nd96isr_h200_v5
}

#: of a card that is not above: this part of what its PCIe link carries. Azure asks 57 to 76 % of cards on links of 16
#: lanes (9 of 15.75 GB/s, 21 of 31.5, 48 of 63): ours is below the lowest
LEAST_OF_LINK = 0.55

#: PCI id → GB/s from card to card, where they reach each other's memory
PEER = {
    "20b0": 235.0,  # A100-SXM4-40GB: Azure, nd96asr_v4
    "20b2": 238.0,  # A100-SXM4-80GB: Azure, nd96amsr_a100_v4
    "2330": 335.0,  # H100 80GB HBM3: Azure, nd96isr_h100_v5
    "2335": 335.0,  # H200: Azure, nd96isr_h200_v5
}

#: PCI id → GB/s within the card's memory, read and written bytes together
WITHIN = {
    "1bb3": 123.75,  # Tesla P4: DCGM, as all of these
    "1bb4": 114.263,  # Tesla P6
    "1db0": 607.5,  # V100-SXM2-16GB
    "1db1": 607.5,  # V100-SXM2-16GB and -32GB
    "1db4": 607.5,  # V100-PCIE-16GB
    "1db5": 607.5,  # V100-SXM2-32GB
    "1db6": 607.5,  # V100-PCIE-32GB
    "1df6": 675.0,  # V100S-PCIE-32GB
    "1e30": 415.275,  # Quadro RTX 6000 and 8000
    "1e78": 360.225,  # Quadro RTX 6000 and 8000, passive
    "1eb8": 183.0,  # T4
    "20b2": 1173.0,  # A100-SXM4-80GB
    "20b5": 1121.25,  # A100 80GB PCIe
    "20b7": 585.0,  # A30
    "20f1": 969.75,  # A100-PCIE-40GB
    "2230": 506.0,  # RTX A6000
    "2231": 507.5,  # RTX A5000
    "2235": 423.675,  # A40
    "2237": 362.7,  # A10G
    "24b0": 290.75,  # RTX A4000
    "25b6": 123.225,  # A2 and A16, which DCGM asks for 135
    "2321": 2043.0,  # H100 NVL
    "2330": 1905.0,  # H100 80GB HBM3
}

#: of the cards of one model in one host: one that is slower than the others' median by more is a finding. Our choice,
#: as for peers among hosts (hostwright/prove/peers/comparing.py): they share a chassis, and vary less
SLOWER_THAN_NEIGHBOURS = 0.15

#: the part of its throughput that a card may lose between the first and the last third of a burn-in: our choice. Boost
#: clocks fall by some 5 % while a card grows warm; one that loses more is held back by heat or power
LOST_UNDER_LOAD = 0.10

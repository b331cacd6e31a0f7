"""Figures of NVIDIA's data sheets: each GPU's dense TFLOPS by number format, and its memory bandwidth, by PCI id.

Figures are without sparsity (halved if a sheet has only figures with sparsity), and with sums in FP32, as in PyTorch.
Public excerpts confirm the figures of A100, H100 PCIe, B200, L40S and RTX 4090, and the TFLOPS of H100 and H200 (SXM).
For the RTX 5090, they state twice these TFLOPS (with sparsity). **No figure was checked against a GPU**: no machine
with a GPU was available.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

FORMATS = ("fp32", "tf32", "bf16", "fp16", "fp8")  #: number formats of matrix products, in the order of measurement
MEMORY = "memory copy"

#: measurement → minimum percentage of the data sheet's figure (our choice). Public measurements reach 73 to 84 %
#: (stas00/ml-engineering, GOATnote-Inc/periodicdent42, mikamirai.com).
LEAST = {**dict.fromkeys(FORMATS, 50.0), MEMORY: 70.0}


@dataclass(frozen=True, slots=True)
class Datasheet:
    """Data sheet of a GPU: PCI IDs, TFLOPS in the order of ``FORMATS`` (0: no hardware), and memory bandwidth in
    GB/s.
    """

    card: str
    ids: tuple[str, ...]
    tflops: tuple[float, float, float, float, float]
    memory: float
    source: str


_A100, _H100 = "A100 data sheet (June 2021)", "H100 data sheet, figures with sparsity halved"
DATASHEETS = (
    Datasheet("A100-SXM4-40GB, A100-PCIE-40GB", ("20b0", "20f1"), (19.5, 156, 312, 312, 0), 1555, _A100),
    Datasheet("A100-SXM4-80GB", ("20b2",), (19.5, 156, 312, 312, 0), 2039, _A100),
    Datasheet("A100 80GB PCIe", ("20b5",), (19.5, 156, 312, 312, 0), 1935, _A100),
    Datasheet("H100 80GB HBM3 (SXM)", ("2330",), (67, 494.5, 989.5, 989.5, 1979), 3350, _H100),
    Datasheet("H100 PCIe", ("2331",), (51, 378, 756.5, 756.5, 1513), 2000, _H100),
    Datasheet("H200 (SXM)", ("2335",), (67, 494.5, 989.5, 989.5, 1979), 4800, "H200 data sheet, sparsity halved"),
    Datasheet("B200 (HGX)", ("2901",), (75, 1125, 2250, 2250, 4500), 8000, "HGX B200 data sheet, an eighth of a board"),
    Datasheet("L40S", ("26b9",), (91.6, 183, 362, 362, 733), 864, "L40S data sheet"),
    Datasheet("RTX 4090", ("2684",), (82.6, 82.6, 165.2, 165.2, 330.3), 1008, "Ada GPU architecture, appendix A"),
    Datasheet("RTX 5090", ("2b85",), (104.8, 104.8, 209.5, 209.5, 419), 1792, "RTX Blackwell architecture, appendix A"),
)


def by_pci_id() -> Mapping[str, Mapping[str, float]]:
    """Return PCI id → measurement name → figure of the data sheet."""
    return {each: _figures(sheet) for sheet in DATASHEETS for each in sheet.ids}


def _figures(sheet: Datasheet) -> Mapping[str, float]:
    products = {name: figure for name, figure in zip(FORMATS, sheet.tflops, strict=True) if figure}
    return {**products, MEMORY: sheet.memory}

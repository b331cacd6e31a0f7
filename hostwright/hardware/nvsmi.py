"""nvidia-smi's report, whatever driver generation wrote it."""

from __future__ import annotations

from hostwright.hardware.gpu import GpuReport
from hostwright.model import Probe

NVIDIA_SMI = Probe("timeout 30 nvidia-smi -q -x", cap_bytes=4 * 1024 * 1024)
NVLINKS = Probe("timeout 30 nvidia-smi nvlink --status")


def read_report(xml: str, links: str = "") -> GpuReport:
    """The report in nvidia-smi's XML and its NVLink status. Raises ``ValueError`` when it is not such a report."""
    raise NotImplementedError

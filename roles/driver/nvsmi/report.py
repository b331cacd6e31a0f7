"""Parser of nvidia-smi's report, for all driver generations, with NVLinks from ``nvidia-smi nvlink --status``.

The status has a line for each GPU, such as ``GPU 0: Tesla V100-SXM2-32GB (UUID: GPU-…)``, and then a line for each of
its links: ``Link 0: 25.781 GB/s`` or ``Link 3: <inactive>``. Without such lines, the links are unknown. If the status
reports "all links are inActive", the GPU is assigned as many inactive links as other GPUs of the same model on the host
have links.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import ParseError, fromstring

from hostwright.resources import Probe
from hostwright.roles import Gpu, sh_file
from hostwright.standard.roles.driver.nvsmi.fields import MAX_CHARACTERS, MAX_SMALL_COUNT, count, text_of
from hostwright.standard.roles.driver.nvsmi.gpu import read_gpu

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element


from collections.abc import Mapping, Sequence
from dataclasses import replace

from hostwright.roles import GpuLink

MAX_LINKS = 64  #: maximum number of NVLinks per GPU in a report. Blackwell has 18.
_MAX_LINES = 16_384  #: maximum number of lines of the NVLink status, twice the lines of 64 GPUs with all links
_CARD = re.compile(r"GPU ([0-9]{1,3}):(.*)")
_UUID = re.compile(r"\(UUID: (GPU-[0-9A-Za-z-]{1,64})\)")
_ALL_DOWN = re.compile(r"(?:NVML: ?)?Unable to retrieve NVLink information as all links are inactive", re.IGNORECASE)
_LINK = re.compile(r"Link ([0-9]{1,2}): *(?:([0-9]{1,6}(?:\.[0-9]{1,6})?) ?[GM]B/s|<?inactive>?)", re.IGNORECASE)


def with_links(gpus: Sequence[Gpu], status: str) -> tuple[Gpu, ...]:
    """Return ``gpus`` with NVLinks from ``status``, matched by UUID, else by index."""
    links, down = _read(status)
    known = [replace(gpu, links=links.get(gpu.uuid) or links.get(str(gpu.index), ())) for gpu in gpus]
    most: dict[str, tuple[GpuLink, ...]] = {}
    for gpu in known:
        most[gpu.model] = max(most.get(gpu.model, ()), gpu.links, key=len)
    return tuple(
        replace(gpu, links=tuple(GpuLink(link.number, False) for link in most[gpu.model]))
        if not gpu.links and (gpu.uuid in down or str(gpu.index) in down)
        else gpu
        for gpu in known
    )


def _read(status: str) -> tuple[Mapping[str, tuple[GpuLink, ...]], frozenset[str]]:
    """Return the NVLinks by GPU, and the GPUs with only inactive links. Keys are UUIDs or, if missing, indexes."""
    cards: dict[str, dict[int, bool]] = {}
    down: set[str] = set()
    name = ""
    links: dict[int, bool] = {}
    for line in status.splitlines()[:_MAX_LINES]:
        text = line.strip()[:400]
        if card := _CARD.match(text):
            uuid = _UUID.search(card[2])
            name = uuid[1] if uuid else str(int(card[1]))
            links = cards.setdefault(name, {})
        elif name and _ALL_DOWN.match(text):
            down.add(name)
        elif (link := _LINK.fullmatch(text)) and int(link[1]) < MAX_LINKS:
            links[int(link[1])] = bool(link[2]) and float(link[2]) > 0
    by_card = {
        card: tuple(GpuLink(number, states[number]) for number in sorted(states)) for card, states in cards.items()
    }
    return by_card, frozenset(down)


MAX_GPUS = 64  #: maximum number of GPUs in a report. Real hosts have at most 16.
#: maximum size of a report in bytes. A GPU takes about 15 KB without supported clocks.
MAX_REPORT_BYTES = 4 * 1024 * 1024
_MAX_NOTICES = 8

#: maximum size of nvidia-smi's output in bytes, with supported clocks
_MAX_PRINTED_BYTES = 2 * MAX_REPORT_BYTES

#: probe that prints nvidia-smi's report, then the NVLink status on one line. A complete report is used, whatever the
#: exit status is.
NVIDIA_SMI = Probe(sh_file(__file__, "report.sh", most=_MAX_PRINTED_BYTES), cap_bytes=MAX_REPORT_BYTES)
NVLINKS = Probe("command -v nvidia-smi >/dev/null 2>&1 || exit 127; timeout -k 1 15 nvidia-smi nvlink --status")

_ROOT = "nvidia_smi_log"
_BEGIN = re.compile(rf"<\?xml\b|<!DOCTYPE\b|<{_ROOT}\b")
_END = f"</{_ROOT}>"
#: pattern of characters that XML must not contain. A process name in the report may have any bytes.
_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_PROCESS_NAME = re.compile(r"^([ \t]*<process_name>)(.*)(</process_name>[ \t\r]*)$", re.MULTILINE)
_BARE_AMPERSAND = re.compile(r"&(?!(?:amp|lt|gt|quot|apos);)")


@dataclass(frozen=True, slots=True)
class GpuReport:
    """nvidia-smi's report: the driver's version and the GPUs."""

    driver: str = ""
    cuda: str = ""  #: newest CUDA version that the driver supports
    gpus: tuple[Gpu, ...] = ()
    attached: int | None = None  #: number of GPUs that the driver uses. The report may describe fewer GPUs.
    #: lines of nvidia-smi's output outside the report, such as ``WARNING: infoROM is corrupted at gpu …``
    notices: tuple[str, ...] = ()


def read_report(xml: str, links: str = "") -> GpuReport:
    """Parse ``xml``, nvidia-smi's report, and ``links``, the NVLink status. Raises ``ValueError`` without a report."""
    root, notices = _open(xml)
    gpus = [read_gpu(index, gpu) for index, gpu in enumerate(root.findall("gpu")[:MAX_GPUS])]
    return GpuReport(
        # Since CUDA 14, the element is called "kmd_version".
        driver=text_of(root, "driver_version") or text_of(root, "kmd_version"),
        cuda=text_of(root, "cuda_version") or text_of(root, "cuda_umd_version"),
        gpus=with_links(gpus, links),
        attached=count(root, "attached_gpus", MAX_SMALL_COUNT),
        notices=notices,
    )


def _open(text: str) -> tuple[Element, tuple[str, ...]]:
    if not text.strip():
        raise ValueError("nvidia-smi printed nothing")
    if len(text) > MAX_REPORT_BYTES:
        raise ValueError(f"the report is larger than {MAX_REPORT_BYTES // 2**20} MiB")
    begin, end = _BEGIN.search(text), text.rfind(_END)
    if begin is None or f"<{_ROOT}" not in text:
        raise ValueError(f"nvidia-smi printed no report: {_glimpse(text)}")
    if end < begin.start():
        raise ValueError("the report is truncated")
    end += len(_END)
    around = (text[: begin.start()] + "\n" + text[end:]).replace("\ufeff", "").splitlines()
    notices = [" ".join(line[: 10 * MAX_CHARACTERS].split())[:MAX_CHARACTERS] for line in around if line.strip()]
    # In such a text, the last end tag need not be the end of the report.
    if any(line.startswith("<") for line in notices):
        raise ValueError("the report is inside another XML element")
    return _parsed(text[begin.start() : end]), tuple(notices[:_MAX_NOTICES])


def _parsed(xml: str) -> Element:
    """Parse ``xml`` without fetching a DTD. A document that declares entities is rejected."""
    sound = _PROCESS_NAME.sub(_escaped, _NO_XML.sub("\ufffd", xml))
    try:
        return fromstring(sound, forbid_dtd=False, forbid_entities=True, forbid_external=True)
    except DefusedXmlException:
        raise ValueError("the report has XML entity declarations, which nvidia-smi never writes") from None
    except ParseError as error:
        raise ValueError(f"the report is not well-formed XML (line {error.position[0]})") from None


def _escaped(line: re.Match[str]) -> str:
    """Escape the process name in the report line, because nvidia-smi may not escape it (cwltool pull request 1910)."""
    name = _BARE_AMPERSAND.sub("&amp;", line[2]).replace("<", "&lt;").replace(">", "&gt;")
    return line[1] + name + line[3]


def _glimpse(text: str) -> str:
    words = " ".join(text[:4096].split())[:80]
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in words)

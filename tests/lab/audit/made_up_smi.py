"""Cards in nvidia-smi's report and on the PCI bus: the clean host's or a sample's, with edits."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, tostring

from defusedxml.ElementTree import fromstring

from hostwright.plan.host.hostfacts import PCI
from hostwright.plan.model import Answer, Facts
from hostwright.resources.packages.packages import DPKG
from hostwright.resources.system.services import Service
from hostwright.standard.roles.driver.failures.units import UNITS
from hostwright.standard.roles.driver.nvsmi.report import NVIDIA_SMI, NVLINKS
from hostwright.standard.roles.driver.states.device_files import DEVICES
from hostwright.standard.roles.driver.states.fabric import FABRIC_MANAGER
from tests.lab.audit.made_up_case import Answers, Change, says, together

SAMPLES = Path(__file__).parents[2] / "fixtures" / "nvidia-smi"
GPU = "0x10de 0x030200 {:#06x}\n"
NVSWITCH = "0x10de 0x068000 0x1af1\n"
BEGIN = '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v11.dtd">\n'

#: PCI device ids; the stack's driver does not support the last
K80, V100, V100_PCIE, T4, A100, A100_PCIE, A10, A6000, RTX3090, H100 = (
    0x102D, 0x1DB5, 0x1DB4, 0x1EB8, 0x20B0, 0x20F1, 0x2236, 0x2230, 0x2204, 0x2331,
)  # fmt: skip

Edit = Callable[[Element], None]  #: edits the report's root in place


def own(*edits: Edit) -> Change:
    """The clean host's card, a T4, with edits."""
    return lambda facts: _cards(facts, _root(facts), T4, edits)


def sample(name: str, device: int, *edits: Edit) -> Change:
    """The cards of a sample report with the clean host's driver; ``device`` is their PCI device id."""
    text = (SAMPLES / f"{name}.xml").read_text(encoding="utf-8")

    def change(facts: Facts) -> Answers:
        root = fromstring(text)
        for words in ("driver_version", "cuda_version"):
            _at(root, words).text = _root(facts).findtext(words)
        return _cards(facts, root, device, edits)

    return change


def put(values: Mapping[str, str], card: int | None = None) -> Edit:
    """Set values of one card, or of all, by their path below ``gpu``; missing elements are created."""

    def edit(root: Element) -> None:
        gpus = root.findall("gpu")
        for gpu in gpus if card is None else gpus[card : card + 1]:
            for path, text in values.items():
                _at(gpu, path).text = text

    return edit


def reasons(*names: str, card: int = 0) -> Edit:
    """Set exactly these clock throttle reasons."""

    def edit(root: Element) -> None:
        part = _at(root.findall("gpu")[card], "clocks_throttle_reasons")
        for old in list(part):
            part.remove(old)
        for name in names:
            SubElement(part, f"clocks_throttle_reason_{name}").text = "Active"

    return edit


def works(card: int | None = None) -> Edit:
    """A program computes on the card, or on all."""
    process = {"pid": "4711", "type": "C", "process_name": "python3", "used_memory": "9000 MiB"}
    below = {f"processes/process_info/{tag}": text for tag, text in process.items()}
    idle = {"clocks_throttle_reasons/clocks_throttle_reason_gpu_idle": "Not Active"}
    return put({"performance_state": "P0", **idle, **below}, card)


def idle(card: int | None = None) -> Edit:
    """No program uses the card, or any card."""

    def edit(root: Element) -> None:
        put({"clocks_throttle_reasons/clocks_throttle_reason_gpu_idle": "Active"}, card)(root)
        gpus = root.findall("gpu")
        for gpu in gpus if card is None else gpus[card : card + 1]:
            processes = _at(gpu, "processes")
            for process in list(processes):
                processes.remove(process)

    return edit


def times(count: int) -> Edit:
    """Copy the first card this many times, each with a unique address and ids."""

    def edit(root: Element) -> None:
        first, *others = root.findall("gpu")
        for gpu in others:
            root.remove(gpu)
        for number in range(1, count):
            root.append(_another(first, number))

    return edit


def blank(*, keep: tuple[str, ...], word: str = "N/A", card: int | None = None) -> Edit:
    """Set all values of one card, or of all, to ``word``, except for those in ``keep``."""

    def edit(root: Element) -> None:
        gpus = root.findall("gpu")
        for gpu in gpus if card is None else gpus[card : card + 1]:
            for part in gpu:
                for element in part.iter() if part.tag not in keep else ():
                    element.text = word if len(element) == 0 else element.text

    return edit


def fails(status: int, words: str = "", *, report: bool = False) -> Change:
    """nvidia-smi ends with this status; with ``report``, after the message and a complete report."""

    def change(facts: Facts) -> Answers:
        if not report:
            return {NVIDIA_SMI: Answer(status, words)}
        return {NVIDIA_SMI: Answer(0, f"{words}{facts[NVIDIA_SMI].text}\nnvidia-smi ended with status {status}\n")}

    return change


def fabric_manager(active: str = "active", version: str = "") -> Change:
    """Fabric Manager is installed and held, in the driver's version or ``version``, and its unit is enabled."""
    service, sub = Service(FABRIC_MANAGER).probes()[0], {"active": "running", "inactive": "dead"}.get(active, active)

    def change(facts: Facts) -> Answers:
        driver = _root(facts).findtext("driver_version", "")
        shown = f"Id={FABRIC_MANAGER}\nLoadState=loaded\nActiveState={active}\nSubState={sub}\nResult=success"
        blocks = facts[UNITS.states].text.rstrip("\n").split("\n\n")
        units = [shown if f"Id={FABRIC_MANAGER}\n" in f"{block}\n" else block for block in blocks]
        return {
            DPKG: Answer(0, f"{facts[DPKG].text}nvidia-fabricmanager-{driver[:3]}\t{version or driver}-1\thi \n"),
            UNITS.states: Answer(0, "\n\n".join(units) + "\n"),
            service: Answer(0, f"LoadState=loaded\nActiveState={active}\nUnitFileState=enabled\n"),
        }

    return change


def on_bus(*devices: int) -> Change:
    """These cards are on the PCI bus, independent of nvidia-smi, with their device files."""
    return together(says(PCI, "".join(map(GPU.format, devices))), device_files(len(devices)))


def device_files(count: int, driven: int | None = None) -> Change:
    """/dev has files for ``count`` cards; the driver has ``driven`` cards, by default as many."""

    def change(facts: Facts) -> Answers:
        lines = facts[DEVICES].text.splitlines()
        card = next(line for line in lines if line.endswith("/dev/nvidia0"))
        stem = card.removesuffix("0")
        others = [line for line in lines if not (line.startswith("card ") or line[:-1] == stem)]
        cards = [f"card {minor}" for minor in range(count if driven is None else driven)]
        files = [f"{stem}{minor}" for minor in range(count)]
        return {DEVICES: Answer(0, "\n".join([*others, *cards, *files, ""]))}

    return change


def nvswitches(count: int) -> Change:
    """Add this many NVSwitches."""
    return lambda facts: {PCI: Answer(0, facts[PCI].text + NVSWITCH * count)}


def nvlinks(count: int, dead: Mapping[int, tuple[int, ...]] | None = None, *, card: int | None = None) -> Change:
    """Set the NVLinks of each card, or of one; ``dead`` maps a card to its inactive links."""

    def change(facts: Facts) -> Answers:
        lines: list[str] = []
        for index, gpu in enumerate(_root(facts).findall("gpu")):
            lines.append(f"GPU {index}: {gpu.findtext('product_name')} (UUID: {gpu.findtext('uuid')})")
            down = (dead or {}).get(index, ())
            numbers = range(count if card in {None, index} else 0)
            lines += (f"\t Link {link}: {'<inactive>' if link in down else '25 GB/s'}" for link in numbers)
        return {NVLINKS: Answer(0, "\n".join([*lines, ""]))}

    return change


def _cards(facts: Facts, root: Element, device: int, edits: tuple[Edit, ...]) -> Answers:
    """Return consistent answers to all probes of the cards."""
    for edit in edits:
        edit(root)
    count = len(root.findall("gpu"))
    _at(root, "attached_gpus").text = str(count)
    report = Answer(0, BEGIN + tostring(root, encoding="unicode"))
    return {NVIDIA_SMI: report, PCI: Answer(0, GPU.format(device) * count), **device_files(count)(facts)}


def _root(facts: Facts) -> Element:
    return fromstring(facts[NVIDIA_SMI].text)


def _at(parent: Element, path: str) -> Element:
    """Return the element at this path; create it if it is missing."""
    for tag in path.split("/"):
        found = parent.find(tag)
        parent = SubElement(parent, tag) if found is None else found
    return parent


def _another(first: Element, number: int) -> Element:
    gpu = copy.deepcopy(first)
    bus = f"00000000:{0x40 + number:02X}:00.0"
    gpu.set("id", bus)
    _at(gpu, "pci/pci_bus_id").text = bus
    _at(gpu, "minor_number").text = str(number)
    _at(gpu, "uuid").text = f"GPU-5e2d7740-93ab-4c1d-b7aa-{number:012x}"
    _at(gpu, "serial").text = f"13249900077{number:02d}"
    return gpu


#: two of the clean host's cards, and eight A100 with six NVSwitches (HGX)
two_cards = partial(own, times(2))


def hgx(*edits: Edit, dead: Mapping[int, tuple[int, ...]] | None = None) -> Change:
    """Eight A100, each with twelve links to six NVSwitches; ``dead`` as for ``nvlinks``."""
    cards = sample("a100-sxm4-470.57.02-mig-remaps", A100, whole, times(8), *edits)
    return together(cards, nvswitches(6), nvlinks(12, dead), fabric_manager())


def whole(root: Element) -> None:
    """Keep only the first card, without MIG instances: the samples' second cards are faulty."""
    gpu = root.findall("gpu")[0]
    gpu.remove(_at(gpu, "mig_devices"))
    put({"mig_mode/current_mig": "Disabled"}, 0)(root)
    times(1)(root)

"""Host facts for compatibility rules: distribution, kernel, GPUs, processor, Pythons, memory.

GPUs are read from ``/sys/bus/pci`` instead of with a driver's tools. GPUs are therefore also found on a host without a
driver.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from hostwright.plan.model import Answer, Facts, Probe
from hostwright.stack.rules import HostFacts

OS_RELEASE = Probe("while IFS= read -r line; do printf '%s\\n' \"$line\"; done </etc/os-release", shared=True)
#: probe for the kernel release and the machine type, as in ``uname -rm``. Kernels before 6.1 lack
#: /proc/sys/kernel/arch.
UNAME = Probe(
    'read -r k </proc/sys/kernel/osrelease && read -r m </proc/sys/kernel/arch && echo "$k $m" || uname -rm',
    shared=True,
)
#: probe for the PCI vendor, class and device IDs of display controllers (0x03…) and "other bridges" (0x0680)
PCI = Probe(
    'for d in /sys/bus/pci/devices/*; do read -r v <"$d/vendor" || continue; read -r c <"$d/class"; '
    'case $c in 0x03*|0x0680*) read -r i <"$d/device"; echo "$v $c $i" ;; esac; done; :',
    shared=True,
)
#: probe for AVX. It reads only the first CPU, because reading a hundred CPUs would take milliseconds.
AVX = Probe(
    'avx=; while read -r name _ flags; do case $name" $flags " in flags*" avx "*) avx=yes; break ;; " "*) break ;; '
    'esac; done </proc/cpuinfo; [ "$avx" ]',
    shared=True,
)
#: probe for the path and version of each Python that can create a venv
PYTHONS = Probe(
    "IFS=:; set --; for p in python3 python3.7 python3.8 python3.9 python3.10 python3.11 python3.12 python3.13 "
    'python3.14; do for d in $PATH /usr/local/bin /usr/bin; do [ ! -x "$d/$p" ] || [ -d "$d/$p" ] || '
    'set -- "$@" "$d/$p"; done; done; IFS=\'\n\'; set -f; '
    '[ $# -eq 0 ] || for t in $(readlink -f -- "$@"); do echo "$1 ${t##*/python}"; shift; done',
    shared=True,
)
MEMORY = Probe('read -r name kb _ </proc/meminfo; [ "$name" != MemTotal: ] || echo "$kb"', shared=True)
_PCI_ROW = re.compile(r"^(0x[0-9a-f]{1,4}) (0x[0-9a-f]{1,6}) (0x[0-9a-f]{1,4})$", re.MULTILINE)
HOST_PROBES = (OS_RELEASE, UNAME, PCI, AVX, PYTHONS, MEMORY)


def os_release(facts: Facts) -> dict[str, str]:
    r"""The variables in the host's ``/etc/os-release``, without quotes around values.

    >>> from hostwright.plan.model import Answer
    >>> os_release(Facts({OS_RELEASE: Answer(0, 'ID=debian\nVERSION_ID="12"\n')}))
    {'ID': 'debian', 'VERSION_ID': '12'}
    """
    lines = (line.partition("=") for line in facts[OS_RELEASE].text.splitlines())
    return {key: value.strip("\"'") for key, sign, value in lines if sign}


class PciDevice(NamedTuple):
    """A device on the PCI bus. ``kind`` is the class code with the programming interface, such as 0x030200."""

    vendor: int
    kind: int
    device: int


def pci_devices(facts: Facts) -> tuple[PciDevice, ...]:
    r"""The display controllers and bridges of class 0x0680 on a host's PCI bus.

    >>> from hostwright.plan.model import Answer
    >>> [f"{card.device:04x}" for card in pci_devices(Facts({PCI: Answer(0, "0x10de 0x030200 0x1eb8\n")}))]
    ['1eb8']
    """
    return tuple(PciDevice(*(int(part, 16) for part in row)) for row in _PCI_ROW.findall(facts[PCI].text))


def display_controllers(facts: Facts) -> tuple[PciDevice, ...]:
    """The host's display controllers with the PCI classes VGA (0x0300) and 3D (0x0302)."""
    return tuple(device for device in pci_devices(facts) if device.kind >> 8 in {0x0300, 0x0302})


def pythons(facts: Facts) -> dict[str, str]:
    r"""The host's Python interpreters: version (``3.11``) → path of the first interpreter of that version on PATH.

    >>> from hostwright.plan.model import Answer
    >>> pythons(Facts({PYTHONS: Answer(0, "/usr/bin/python3.9 3.9\n/usr/local/bin/python3.11 3.11\n")}))
    {'3.9': '/usr/bin/python3.9', '3.11': '/usr/local/bin/python3.11'}
    """
    versions: dict[str, str] = {}
    for line in facts[PYTHONS].text.splitlines():
        path, _, version = line.partition(" ")
        if version.startswith("3."):
            versions.setdefault(version, path)
    return versions


def with_python(python: str) -> Facts:
    """Return the facts of a host on which only Python ``python`` (``3.9``) of the distribution is known."""
    return Facts({PYTHONS: Answer(0, f"/usr/bin/python{python} {python}\n")})


def interpreters(facts: Facts) -> tuple[str, ...]:
    r"""The host's Python versions with their paths, oldest version first, as texts for messages.

    >>> from hostwright.plan.model import Answer
    >>> interpreters(Facts({PYTHONS: Answer(0, "/usr/local/bin/python3.11 3.11\n/usr/bin/python3.9 3.9\n")}))
    ('3.9 (/usr/bin/python3.9)', '3.11 (/usr/local/bin/python3.11)')
    """
    by_age = sorted(pythons(facts).items(), key=lambda item: (len(item[0]), item[0]))
    return tuple(f"{version} ({path})" for version, path in by_age)


def memory_bytes(facts: Facts) -> int | None:
    """The host's memory in bytes; ``None`` if unknown."""
    text = facts[MEMORY].strip()
    return int(text) * 1024 if re.fullmatch(r"[0-9]{1,15}", text) else None


def read_host(facts: Facts) -> HostFacts:
    """Return the host's facts for compatibility rules. Unreadable facts count as unknown."""
    release = os_release(facts)
    kernel, _, machine = facts[UNAME].strip().partition(" ")
    return HostFacts(
        distribution=release.get("ID", "unknown"),
        version=release.get("VERSION_ID", release.get("VERSION_CODENAME", "unknown")),
        kernel=kernel,
        machine=machine,
        gpus=tuple((card.vendor, card.device) for card in display_controllers(facts)),
        avx=facts[AVX].ok,
        pythons=tuple(sorted(pythons(facts))),
        interpreters=interpreters(facts),
        memory_bytes=memory_bytes(facts),
    )

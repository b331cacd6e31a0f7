"""Dataclasses for proofs: the programs to run on a host, their measurements, and findings. They do no I/O.

A role's folder may contain a module ``proofs``:

    def proofs(variables: Chrony, ctx: RoleContext) -> tuple[Proof, ...]:
        clock = Program("clock.py", text(__file__, "clock.py"), interpreter=("python3",), arguments={"seconds": 5})
        return (Proof("clock", "chrony", clock, judge=steady, level="quick", time_limit_s=60, needs_gpu=False),)

A program is one file. Its first argument is the path of a file that contains ``arguments`` as a JSON object. The
program prints one JSON object per line:

    {"measure": "offset", "value": 0.2, "unit": "ms", "device": "cpu", "better": "less"}
    {"error": "no server answers"}                 the proof fails
    {"not run": "no compiler is there"}            the proof could not be run
    {"end": true}                                  last line of a complete output

Without a GPU, measurements of a GPU have the value null and the device ``no GPU``. The program runs as root in an empty
directory in which programs may be executed. The directory is removed when the program has ended.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Literal

from hostwright.audit.hardware.gpu import Gpu

NO_GPU = "no GPU"  #: device name of a measurement that needs a GPU, on a host without a GPU
CPU = "cpu"  #: device name of measurements on the processor
GPU = "GPU-"  #: prefix of a GPU's UUID; the UUID is the device name of the GPU's measurements

Level = Literal["quick", "full"]

Better = Literal["more", "less", ""]  #: whether a higher or a lower value is better; empty if values are not compared
Severity = Literal["failed", "outlier", "note"]
#: outcome of a proof. With ``no GPU``, all measurements need a GPU, and the host has none.
Outcome = Literal["passed", "failed", "no GPU", "not run"]

_NAME = re.compile(r"[a-z0-9][a-z0-9_]{0,63}")
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_]{0,63}(\.[a-z]{1,4})?")
_MODEL = re.compile(r"[^(]*\((.*)\)")


@dataclass(frozen=True, slots=True)
class Program:
    """The program of a proof: one file. ``interpreter`` runs this file, with the path of a JSON file as argument.

    The JSON file contains ``arguments``. With a ``compiler``, the program is built first, and runs without an
    interpreter. ``{source}`` and ``{program}`` in the compiler's command are the paths of the file and of the compiled
    program. ``environment`` has additional environment variables.
    """

    file: str
    source: str = field(repr=False)
    interpreter: tuple[str, ...] = ()
    arguments: Mapping[str, Any] = field(default_factory=dict)
    compiler: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if not _FILE.fullmatch(self.file):
            raise ValueError(f"{self.file!r} is not a valid file name for a program")
        if bool(self.compiler) == bool(self.interpreter):
            raise ValueError(f"{self.file}: a proof's program needs either an interpreter or a compiler")

    @property
    def sha256(self) -> str:
        """The SHA-256 digest of ``source`` in lowercase hex."""
        return sha256(self.source.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Measurement:
    """One value that a proof measured on a device. If the device is ``no GPU``, ``value`` is ``None``."""

    name: str
    value: float | str | bool | None
    unit: str
    #: name of the device: ``cpu``, ``cpu (Xeon Gold 6230)``, ``GPU-6e2c… (A100-SXM4-80GB)`` or ``no GPU``; never empty
    device: str
    better: Better = ""

    @property
    def number(self) -> float | None:
        """``value`` if it is a number, else ``None``."""
        return None if isinstance(self.value, bool | str) else self.value

    @property
    def compared(self) -> bool:
        """Whether ``value`` is a number that can be compared with the values of other hosts."""
        return bool(self.better) and self.number is not None and self.device != NO_GPU

    @property
    def model(self) -> str:
        """The model of the device: the text in parentheses in ``device``, else ``device``."""
        match = _MODEL.fullmatch(self.device)
        return match[1] if match else self.device


@dataclass(frozen=True, slots=True)
class Measurements:
    """All measurements of one proof on one host, in the order in which the program printed them."""

    each: tuple[Measurement, ...] = ()

    def __iter__(self) -> Iterator[Measurement]:
        return iter(self.each)

    def __len__(self) -> int:
        return len(self.each)

    def named(self, name: str) -> tuple[Measurement, ...]:
        """Return the measurements with the name ``name``, without those for the device ``no GPU``."""
        return tuple(each for each in self.each if each.name == name and each.device != NO_GPU)

    def number(self, name: str, device: str = "") -> float | None:
        """Return the first number with the name ``name`` on a device that starts with ``device``, or ``None``."""
        found = (each.number for each in self.named(name) if each.device.startswith(device))
        return next(found, None)


@dataclass(frozen=True, slots=True)
class Expected:
    """The properties of a host that its measurements should match. ``cards`` is ``None`` if the host's cards could not
    be read.
    """

    host: str
    cards: tuple[Gpu, ...] | None = None
    gpus: int | None = None  #: number of the host's GPUs in the inventory (``hostwright_gpus``)
    cards_on_bus: int = 0  #: number of GPU cards on the PCI bus, with or without a driver
    processor: str = ""  #: model name of the host's processor
    processors: int = 0
    models: tuple[str, ...] = ()  #: allowed models of the host's cards (``hostwright_gpu_model``); empty: any


@dataclass(frozen=True, slots=True)
class ProofFinding:
    """One conclusion from a proof's measurements on one device.

    ``proof`` is the proof's key ``layer.name``; if it is empty, Hostwright sets the key.
    """

    sentence: str
    device: str
    severity: Severity = "failed"
    measured: str = ""
    expected: str = ""
    proof: str = ""


def nothing(_measured: Measurements, _expected: Expected) -> tuple[ProofFinding, ...]:
    """Return no findings: ``judge`` of a proof that passes whenever its program succeeds."""
    return ()


@dataclass(frozen=True, slots=True)
class Proof:
    """A proof of a layer: a program to run on a host, and the pure function ``judge``, which returns findings about the
    program's measurements.
    """

    name: str
    layer: str
    program: Program
    judge: Callable[[Measurements, Expected], tuple[ProofFinding, ...]] = nothing
    level: Level = "full"  #: lowest level of a run that includes the proof
    time_limit_s: float = 600.0
    #: whether the proof runs only on hosts with a GPU; on other hosts, a proof without this flag measures ``cpu``
    needs_gpu: bool = True
    #: minimum number of hosts on which the proof runs at the same time; above 1, the program's arguments also contain
    #: ``peers`` (addresses of all these hosts, in the same order on each host) and ``index`` (position of the program's
    #: host in ``peers``)
    hosts: int = 1

    def __post_init__(self) -> None:
        if not (_NAME.fullmatch(self.name) and _NAME.fullmatch(self.layer)):
            raise ValueError(f"{self.layer}.{self.name} is not a valid name of a proof")
        if not 0 < self.time_limit_s <= 6 * 3600:
            raise ValueError(
                f"{self.key}: the time limit {self.time_limit_s:g} s is too long; a proof must end within 6 h"
            )

    @property
    def key(self) -> str:
        """The name of the proof after the name of its layer, such as ``network.dense``."""
        return f"{self.layer}.{self.name}"

    def among(self, peers: Sequence[str], index: int) -> Proof:
        """Return this proof for one of several hosts that run it at the same time: the host ``index`` of ``peers``."""
        arguments = {**self.program.arguments, "peers": list(peers), "index": index}
        return replace(self, program=replace(self.program, arguments=arguments))


@dataclass(frozen=True, slots=True)
class Watch:
    """A script that reads the temperatures of a role's cards during proofs: ``WATCH`` in a role's module ``proofs``.

    ``script`` is POSIX sh. It prints one line per card, with tabs between values: the device (``GPU-6e2c…``), the
    temperature, and the temperature at which a proof must stop, in whole degrees Celsius. The script must end within 10
    s.
    """

    script: str


@dataclass(frozen=True, slots=True)
class ProofResult:
    """The result of one proof on one host. ``sentence`` is the reason if the proof failed or was not run."""

    proof: str  #: name of the proof with its layer, such as ``network.dense``
    outcome: Outcome
    sentence: str = ""
    took_s: float = 0.0
    sha256: str = ""
    measurements: tuple[Measurement, ...] = ()
    findings: tuple[ProofFinding, ...] = ()

"""The values of proofs: programs to run on a host, their measurements, and findings. None of them does I/O.

A role's folder may contain a module ``proofs``:

    def proofs(variables: Chrony, ctx: RoleContext) -> tuple[Proof, ...]:
        clock = Program("clock.py", text(__file__, "clock.py"), interpreter=("python3",), arguments={"seconds": 5})
        return (Proof("clock", "chrony", clock, judge=steady, level="quick", time_limit_s=60, needs_gpu=False),)

A program is one file. Its first argument is the path of a file with its arguments, a JSON object. It prints one JSON
object per line:

    {"measure": "offset", "value": 0.2, "unit": "ms", "device": "cpu", "better": "less"}
    {"error": "no server answers"}                 the proof fails
    {"not run": "no compiler is there"}            the proof could not be run
    {"end": true}                                  last line of a complete output

Without a GPU, measurements of a GPU have the value null and the device ``no GPU``. The program runs as root in an empty
directory in which programs may be executed. The directory is removed afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Literal

from hostwright.audit.hardware.gpu import Gpu

NO_GPU = "no GPU"  #: device of a measurement that needs a GPU, on a host without one
CPU = "cpu"  #: device of a measurement on the processor
GPU = "GPU-"  #: prefix of the device of a measurement on a GPU, from its UUID

Level = Literal["quick", "full"]

Better = Literal["more", "less", ""]  #: which values are better; empty: values are not compared
Severity = Literal["failed", "outlier", "note"]
#: no GPU: all measurements need a GPU, and the host has none; never a pass · not run: the sentence has the reason
Outcome = Literal["passed", "failed", "no GPU", "not run"]

_NAME = re.compile(r"[a-z0-9][a-z0-9_]{0,63}")
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_]{0,63}(\.[a-z]{1,4})?")
_MODEL = re.compile(r"[^(]*\((.*)\)")


@dataclass(frozen=True, slots=True)
class Program:
    """One program file. ``interpreter`` runs it with two arguments: the paths of the file and of its arguments.

    With a ``compiler``, the program is built first: ``{source}`` and ``{program}`` in the compiler's words become the
    paths of the file and of the compiled program, which then runs without an interpreter. ``environment`` has
    additional variables.
    """

    file: str  #: file name: ``dense.py``
    source: str = field(repr=False)
    interpreter: tuple[str, ...] = ()
    arguments: Mapping[str, Any] = field(default_factory=dict)
    compiler: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if not _FILE.fullmatch(self.file):
            raise ValueError(f"{self.file!r} is not a valid file name for a program")
        if bool(self.compiler) == bool(self.interpreter):
            raise ValueError(f"{self.file}: a program needs either an interpreter or a compiler")

    @property
    def sha256(self) -> str:
        """The SHA-256 digest of its text in lowercase hex."""
        return sha256(self.source.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Measurement:
    """One value that a proof measured on a device. ``value`` is ``None`` if the device is ``no GPU``."""

    name: str
    value: float | str | bool | None
    unit: str
    device: str  #: never empty: ``cpu``, ``cpu (Xeon Gold 6230)``, ``GPU-6e2c… (A100-SXM4-80GB)``, ``no GPU``
    better: Better = ""

    @property
    def number(self) -> float | None:
        """The value if it is a number, else ``None``."""
        return None if isinstance(self.value, bool | str) else self.value

    @property
    def compared(self) -> bool:
        """Whether the value can be compared with others of the same name: a number, of an existing device, with
        ``better`` set.
        """
        return bool(self.better) and self.number is not None and self.device != NO_GPU

    @property
    def model(self) -> str:
        """The model of the device, from the parentheses after its name; without parentheses, the device itself."""
        match = _MODEL.fullmatch(self.device)
        return match[1] if match else self.device


@dataclass(frozen=True, slots=True)
class Measurements:
    """All measurements of one proof on one host, in printed order."""

    each: tuple[Measurement, ...] = ()

    def __iter__(self) -> Iterator[Measurement]:
        return iter(self.each)

    def __len__(self) -> int:
        return len(self.each)

    def named(self, name: str) -> tuple[Measurement, ...]:
        """The measurements with this name, one for each device. The device ``no GPU`` is omitted."""
        return tuple(each for each in self.each if each.name == name and each.device != NO_GPU)

    def number(self, name: str, device: str = "") -> float | None:
        """The first number with this name on a device whose name starts with ``device``; ``None`` if there is none."""
        found = (each.number for each in self.named(name) if each.device.startswith(device))
        return next(found, None)


@dataclass(frozen=True, slots=True)
class Expected:
    """Known properties of a host for judging measurements. ``cards`` is ``None`` if they could not be read."""

    host: str
    cards: tuple[Gpu, ...] | None = None
    gpus: int | None = None  #: number of GPUs in the inventory (``hostwright_gpus``)
    cards_on_bus: int = 0  #: number of cards, with or without a driver
    processor: str = ""  #: model name, as the host reports it
    processors: int = 0
    models: tuple[str, ...] = ()  #: allowed models of its cards (``hostwright_gpu_model``); empty: any


@dataclass(frozen=True, slots=True)
class ProofFinding:
    """A conclusion from measurements. ``proof`` is ``layer.name``; if empty, Hostwright fills it in."""

    sentence: str
    device: str
    severity: Severity = "failed"
    measured: str = ""
    expected: str = ""
    proof: str = ""


def nothing(_measured: Measurements, _expected: Expected) -> tuple[ProofFinding, ...]:
    """Judge of a proof that passes whenever its program succeeds."""
    return ()


@dataclass(frozen=True, slots=True)
class Proof:
    """A proof of a layer by running a program. ``judge`` is pure."""

    name: str
    layer: str
    program: Program
    judge: Callable[[Measurements, Expected], tuple[ProofFinding, ...]] = nothing
    level: Level = "full"  #: quick proofs also run with ``--quick``
    time_limit_s: float = 600.0
    needs_gpu: bool = True  #: false: also runs on a host without a GPU, with ``cpu`` as the device
    #: smallest number of hosts on which it runs at the same time. Above 1, its arguments also have ``peers``, the
    #: addresses of all hosts in the same order, and ``index``, the host's own index
    hosts: int = 1

    def __post_init__(self) -> None:
        if not (_NAME.fullmatch(self.name) and _NAME.fullmatch(self.layer)):
            raise ValueError(f"{self.layer}.{self.name} is not a valid name of a proof")
        if not 0 < self.time_limit_s <= 6 * 3600:
            raise ValueError(f"{self.key}: time limit of {self.time_limit_s:g} s; a proof must end within 6 h")

    @property
    def key(self) -> str:
        """The name with the layer: ``network.dense``."""
        return f"{self.layer}.{self.name}"

    def among(self, peers: Sequence[str], index: int) -> Proof:
        """The proof for one of several hosts: ``peers`` and ``index`` are added to its arguments."""
        arguments = {**self.program.arguments, "peers": list(peers), "index": index}
        return replace(self, program=replace(self.program, arguments=arguments))


@dataclass(frozen=True, slots=True)
class Watch:
    """How a role watches its cards during proofs: ``WATCH`` in its module ``proofs``.

    ``script`` is POSIX sh. For each card it prints the device (``GPU-6e2c…``), the temperature, and the temperature at
    which a proof must stop, in whole degrees Celsius, separated by tabs. It ends within 10 s.
    """

    script: str


@dataclass(frozen=True, slots=True)
class ProofResult:
    """The result of one proof on one host. ``sentence`` is the reason if it failed or was not run."""

    proof: str  #: ``network.dense``
    outcome: Outcome
    sentence: str = ""
    took_s: float = 0.0
    sha256: str = ""  #: digest of its program
    measurements: tuple[Measurement, ...] = ()
    findings: tuple[ProofFinding, ...] = ()

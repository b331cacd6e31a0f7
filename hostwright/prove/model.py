"""The values of proofs: what is run on a host, what it measured, and what is found in that. None of them does I/O.

A role's folder may hold a module ``proofs``:

    def proofs(variables: Chrony, ctx: RoleContext) -> tuple[Proof, ...]:
        clock = Program("clock.py", text(__file__, "clock.py"), interpreter=("python3",), arguments={"seconds": 5})
        return (Proof("clock", "chrony", clock, judge=steady, level="quick", time_limit_s=60, needs_gpu=False),)

A program is one file. It reads its arguments, a JSON object, from the file that its first argument names, and prints
a JSON object a line: ``{"measure": "offset", "value": 0.2, "unit": "ms", "device": "cpu", "better": "less"}``,
``{"error": "no server answers"}`` for what makes it fail, ``{"not run": "no compiler is there"}`` for what keeps it
from proving anything, and as its last ``{"end": true}``; it exits with 0 after that alone. Every other line is noise.
Where there is no GPU, the rows of a GPU have the value null and the device ``no GPU``. It runs as root in an empty
directory, where programs may be run, and which is removed afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Literal

from hostwright.audit.hardware.gpu import Gpu

NO_GPU = "no GPU"  #: the device of a measurement that needs one, on a host without
CPU = "cpu"  #: the device of a measurement that was made on the processor
GPU = "GPU-"  #: how the device of a measurement that was made on a GPU begins: its UUID

Level = Literal["quick", "full"]

Better = Literal["more", "less", ""]  #: which values are good; empty: the value is not compared
Severity = Literal["failed", "outlier", "note"]
#: no GPU: all that it measures needs one, and the host has none; never a pass · not run: the sentence says why
Outcome = Literal["passed", "failed", "no GPU", "not run"]

_NAME = re.compile(r"[a-z0-9][a-z0-9_]{0,63}")
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_]{0,63}(\.[a-z]{1,4})?")
_MODEL = re.compile(r"[^(]*\((.*)\)")


@dataclass(frozen=True, slots=True)
class Program:
    """One file that is run on a host: ``interpreter`` with the paths of the file and of its arguments.

    With a ``compiler`` it is built first: its words ``{source}`` and ``{program}`` become the paths of the file and of
    the program that it makes, and that is run without an interpreter. ``environment`` are further variables.
    """

    file: str  #: its name: ``dense.py``
    source: str = field(repr=False)
    interpreter: tuple[str, ...] = ()
    arguments: Mapping[str, Any] = field(default_factory=dict)
    compiler: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if not _FILE.fullmatch(self.file):
            raise ValueError(f"{self.file!r} is no name of a program's file")
        if bool(self.compiler) == bool(self.interpreter):
            raise ValueError(f"{self.file}: a program has either an interpreter or a compiler")

    @property
    def sha256(self) -> str:
        """The digest of its text, lower-case hex."""
        return sha256(self.source.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Measurement:
    """One value that a proof measured, and on what. ``value`` is ``None`` where the device is ``no GPU``."""

    name: str
    value: float | str | bool | None
    unit: str
    device: str  #: never empty: ``cpu``, ``cpu (Xeon Gold 6230)``, ``GPU-6e2c… (A100-SXM4-80GB)``, ``no GPU``
    better: Better = ""

    @property
    def number(self) -> float | None:
        """The value where it is a number."""
        return None if isinstance(self.value, bool | str) else self.value

    @property
    def compared(self) -> bool:
        """Whether it can be compared with others of its name: a number, of a device that is there, good or bad."""
        return bool(self.better) and self.number is not None and self.device != NO_GPU

    @property
    def model(self) -> str:
        """The model of the device: what stands in parentheses after it, else the device itself."""
        match = _MODEL.fullmatch(self.device)
        return match[1] if match else self.device


@dataclass(frozen=True, slots=True)
class Measurements:
    """All that one proof measured on one host, in the order in which it was printed."""

    each: tuple[Measurement, ...] = ()

    def __iter__(self) -> Iterator[Measurement]:
        return iter(self.each)

    def __len__(self) -> int:
        return len(self.each)

    def named(self, name: str) -> tuple[Measurement, ...]:
        """Those of this name, one a device, without those that had no GPU."""
        return tuple(each for each in self.each if each.name == name and each.device != NO_GPU)

    def number(self, name: str, device: str = "") -> float | None:
        """The number of this name, on the device whose text begins so; ``None`` where there is none."""
        found = (each.number for each in self.named(name) if each.device.startswith(device))
        return next(found, None)


@dataclass(frozen=True, slots=True)
class Expected:
    """What is known of a host when its measurements are judged. ``cards`` is ``None`` where they could not be read."""

    host: str
    cards: tuple[Gpu, ...] | None = None
    gpus: int | None = None  #: how many the inventory says that it has (``hostwright_gpus``)
    cards_on_bus: int = 0  #: with or without a driver
    processor: str = ""  #: the model, as the host names it
    processors: int = 0
    models: tuple[str, ...] = ()  #: those that its cards may have (``hostwright_gpu_model``); empty: any


@dataclass(frozen=True, slots=True)
class ProofFinding:
    """Something that a measurement shows. ``proof`` is ``layer.name``; the engine fills it in where it is empty."""

    sentence: str
    device: str
    severity: Severity = "failed"
    measured: str = ""
    expected: str = ""
    proof: str = ""


def nothing(_measured: Measurements, _expected: Expected) -> tuple[ProofFinding, ...]:
    """The judge of a proof that passes where its program does."""
    return ()


@dataclass(frozen=True, slots=True)
class Proof:
    """Something that is proved of a layer by running a program. ``judge`` is pure."""

    name: str
    layer: str
    program: Program
    judge: Callable[[Measurements, Expected], tuple[ProofFinding, ...]] = nothing
    level: Level = "full"  #: quick proofs are run with ``--quick`` as well
    time_limit_s: float = 600.0
    needs_gpu: bool = True  #: false: it runs on a host without one as well, with ``cpu`` as its device
    #: on how many hosts it runs at the same time, at least; then its arguments also have ``peers``, the addresses of
    #: all in one order, and ``index``, the host's own place among them
    hosts: int = 1

    def __post_init__(self) -> None:
        if not (_NAME.fullmatch(self.name) and _NAME.fullmatch(self.layer)):
            raise ValueError(f"{self.layer}.{self.name} is no name of a proof")
        if not 0 < self.time_limit_s <= 6 * 3600:
            raise ValueError(f"{self.key}: a proof ends within 6 h, not {self.time_limit_s:g} s")

    @property
    def key(self) -> str:
        """Its name with its layer's: ``network.dense``."""
        return f"{self.layer}.{self.name}"

    def among(self, peers: Sequence[str], index: int) -> Proof:
        """The proof of one of several hosts: its arguments say which they are."""
        arguments = {**self.program.arguments, "peers": list(peers), "index": index}
        return replace(self, program=replace(self.program, arguments=arguments))


@dataclass(frozen=True, slots=True)
class Watch:
    """How a role watches its cards while proofs run: ``WATCH`` in its module ``proofs``.

    ``script`` is POSIX sh that prints, for each card, its device (``GPU-6e2c…``), its temperature and the one at
    which a proof must stop, both in whole degrees Celsius, with tabs between; it ends within 10 s.
    """

    script: str


@dataclass(frozen=True, slots=True)
class ProofResult:
    """What came of one proof on one host; ``sentence`` says why it failed or was not run."""

    proof: str  #: ``network.dense``
    outcome: Outcome
    sentence: str = ""
    took_s: float = 0.0
    sha256: str = ""  #: of its program
    measurements: tuple[Measurement, ...] = ()
    findings: tuple[ProofFinding, ...] = ()

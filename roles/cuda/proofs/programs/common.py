"""Shared by the programs of all frameworks: their protocol, cards as nvidia-smi names them, references by NumPy."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

CPU = "cpu"
NO_GPU = "no GPU"
OF_LARGEST_VALUE, OF_LARGEST_CHANGE = "of the largest value", "of the largest change"


class Device(NamedTuple):
    """Where something is computed: the framework's name, and the one that a measurement carries."""

    name: str
    label: str


class Lines:
    """Standard output, for the protocol alone: what a library prints there goes to standard error."""

    def __init__(self) -> None:
        self._file = os.fdopen(os.dup(1), "w", buffering=1)
        os.dup2(2, 1)

    def tell(self, **line: Any) -> None:
        """One line of the protocol."""
        self._file.write(json.dumps(line, allow_nan=False) + "\n")
        self._file.flush()

    def measure(self, name: str, value: Any, unit: str, device: str, better: str = "") -> None:
        """One measurement; a number that is not finite is told in words, since JSON has none."""
        if hasattr(value, "item"):
            value = value.item()
        if isinstance(value, float) and not math.isfinite(value):
            value = "not a number" if math.isnan(value) else "infinite"
        line = {"measure": name, "value": value, "unit": unit, "device": device}
        self.tell(**line, **({"better": better} if better else {}))

    def without_gpu(self, name: str, unit: str) -> None:
        """A row of a GPU on a host that has none."""
        self.measure(name, None, unit, NO_GPU)


def run(program: Callable[[Lines, dict[str, Any]], None]) -> None:
    """Read the arguments from the file that the first argument names, run, and end as the protocol wants it."""
    os.environ.update(
        CUDA_CACHE_MAXSIZE=str(4 << 30),  # bytes: what the driver compiles of TensorFlow for a card of Ampere
        CUDA_DEVICE_ORDER="PCI_BUS_ID",
        TF_FORCE_GPU_ALLOW_GROWTH="true",
        XLA_PYTHON_CLIENT_PREALLOCATE="false",
    )
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
    lines = Lines()
    try:
        program(lines, json.loads(Path(sys.argv[1]).read_text("utf-8")))
    except Exception as error:  # noqa: BLE001 - whatever it is, the protocol tells it
        traceback.print_exc()
        lines.tell(error=sentence_of(error))
        leave(1)
    lines.tell(end=True)
    leave(0)


#: how lines begin that TensorFlow puts after what went wrong, or before it
BESIDE = ("[[", "[Op:", "Hint: ", "Node: ", "Detected at node ", "<stack traces unavailable>")
#: and what it says of how many errors there were
COUNTS = (" root error(s) found.", " successful operations.", " derived errors ignored.")


def sentence_of(error: Exception) -> str:
    """What an error says: its first line, or its last where TensorFlow's first is a heading of a trace. Of several
    errors, which TensorFlow numbers, the first."""
    lines = [line.strip() for line in str(error).splitlines()]
    texts = [line for line in lines if line and not line.startswith(BESIDE) and not any(map(line.__contains__, COUNTS))]
    line = (texts[-1] if texts[0].endswith(":") else texts[0]) if texts else ""
    numbered = next((line for line in texts if line.startswith("(0) ")), "")
    return f"{type(error).__name__}: {numbered.partition(' ')[2] or line}"[:500]


def leave(status: int) -> None:
    """End now: threads and sockets of a framework must not keep a finished program alive."""
    sys.stderr.flush()
    os._exit(status)


def nvidia_smi(fields: str) -> list[list[str]]:
    """A row of these fields for each card, the UUID among them, as nvidia-smi prints them; none where it does not run.

    Its status says nothing of the rows: it is 14 where the infoROM of a card is damaged, and then a warning is beside
    them; 15 where one card is lost.
    """
    query = ["nvidia-smi", "--query-gpu=" + fields, "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(query, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60, check=False)
    except (OSError, subprocess.SubprocessError):
        return []
    rows = [[field.strip() for field in line.split(",")] for line in done.stdout.decode(errors="replace").splitlines()]
    uuid = fields.split(",").index("uuid")
    return [row for row in rows if len(row) == len(fields.split(",")) and row[uuid].startswith("GPU-")]


def uuids() -> dict[str, str]:
    """The UUIDs of the cards by their addresses on the bus, as ``on_bus`` has them."""
    return {on_bus(row[0]): row[1] for row in nvidia_smi("pci.bus_id,uuid")}


def on_bus(address: str) -> str:
    """The address on the bus in one form: nvidia-smi writes the domain with eight digits, CUDA with four."""
    return address.lower()[-12:]


def host_label(cards: list[Device]) -> str:
    """The name of all devices of this host in a measurement."""
    return all_of(cards) if len(cards) > 1 else cards[0].label if cards else CPU


def whole_numbers(inner: int = 768) -> Any:
    """Matrices of small whole numbers, whose product float32 holds exactly: any difference is a wrong one."""
    import numpy

    random = numpy.random.default_rng(2)
    return random.integers(-8, 9, (768, inner)), random.integers(-8, 9, (inner, 768))


def convolution_case() -> Any:
    """Images (NHWC) and 3×3 kernels (HWIO) in float32, and what NumPy comes to in float64, with zeros around them."""
    import numpy

    random = numpy.random.default_rng(3)
    images = random.standard_normal((4, 32, 32, 16)).astype("float32")
    kernels = random.standard_normal((3, 3, 16, 32)).astype("float32")
    padded = numpy.pad(images.astype("float64"), ((0, 0), (1, 1), (1, 1), (0, 0)))
    reference = numpy.zeros((4, 32, 32, 32))
    for row in range(3):
        for column in range(3):
            reference += padded[:, row : row + 32, column : column + 32] @ kernels[row, column].astype("float64")
    return images, kernels, reference


def computed(lines: Lines, devices: list[Device], what: dict[str, Callable[[Device], float]]) -> None:
    """Compare the results of each device with their references, the processor first; without a card, say so."""
    for device in devices:
        for name, compute in what.items():
            compared(lines, name, device, compute)
    if len(devices) == 1:
        for name in ("gpu", "compute capability"):
            lines.without_gpu(name, "")
        for name in what:
            lines.without_gpu(name, OF_LARGEST_VALUE)


def compared(lines: Lines, name: str, device: Device, compute: Callable[[Device], float]) -> None:
    """Measure how far a device is from the reference; in words where it cannot compute this at all."""
    try:
        value: Any = compute(device)
    except Exception as error:  # noqa: BLE001 - the other devices are compared all the same
        traceback.print_exc()
        value = sentence_of(error)
    lines.measure(name, value, OF_LARGEST_VALUE, device.label)


def card_rows(lines: Lines, device: Device, name: str, capability: str) -> None:
    """Measure a card's name as CUDA has it, its compute capability, and its PCI device number."""
    lines.measure("gpu", name, "", device.label)
    lines.measure("compute capability", capability, "", device.label)
    for uuid, number in nvidia_smi("uuid,pci.device_id"):
        if device.label.startswith(uuid + " "):
            lines.measure("pci device", number, "", device.label)  # 0x1EB810DE: device and vendor


def difference(result: Any, reference: Any) -> float:
    """The largest difference, as a part of the largest value of the reference; not a number if either holds one."""
    import numpy

    result, reference = numpy.asarray(result, "float64"), numpy.asarray(reference, "float64")
    if result.shape != reference.shape:
        return math.inf
    return float(numpy.abs(result - reference).max() / max(float(numpy.abs(reference).max()), 1e-30))


def dense_by_numpy(weights: list[Any], inputs: Any) -> Any:
    """Dense layers by NumPy in float64, from their kernels and biases: ReLU after each but the last, then softmax."""
    import numpy

    values = numpy.asarray(inputs, "float64")
    for kernel, bias in zip(weights[0:-2:2], weights[1:-2:2]):
        values = numpy.maximum(values @ kernel.astype("float64") + bias, 0)
    values = values @ weights[-2].astype("float64") + weights[-1]
    powers = numpy.exp(values - values.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def all_of(cards: list[Device]) -> str:
    """One name for all cards: ``all GPUs (4 × Tesla T4)``."""
    models = sorted({card.label.partition("(")[2].rstrip(")") for card in cards})
    return "all GPUs ({} × {})".format(len(cards), ", ".join(models))


def images(samples: int) -> Any:
    """Data of MNIST's shape: ten patterns under noise, with their numbers."""
    import numpy

    random = numpy.random.default_rng(6)
    labels = random.integers(0, 10, samples)
    patterns = random.random((10, 784), "float32")
    return (patterns[labels] + random.random((samples, 784), "float32")) / 2, labels


RATE = 0.1  #: of learning, where a network is compared with NumPy's


def trained_by_numpy(weights: list[Any], inputs: Any, labels: Any, batch: int) -> list[Any]:
    """The weights of ``network()`` after an epoch of these batches, computed by NumPy in float64."""
    import numpy

    hidden, hidden_bias, out, out_bias = (part.astype("float64") for part in weights)
    for start in range(0, len(inputs), batch):
        values, wanted = inputs[start : start + batch].astype("float64"), labels[start : start + batch]
        active = numpy.tanh(values @ hidden + hidden_bias)
        gradient = dense_by_numpy([out, out_bias], active)
        gradient[numpy.arange(len(wanted)), wanted] -= 1
        gradient /= len(wanted)
        back = (gradient @ out.T) * (1 - active**2)
        out, out_bias = out - RATE * active.T @ gradient, out_bias - RATE * gradient.sum(axis=0)
        hidden, hidden_bias = hidden - RATE * values.T @ back, hidden_bias - RATE * back.sum(axis=0)
    return [hidden, hidden_bias, out, out_bias]


def change_difference(before: list[Any], one: list[Any], other: list[Any]) -> float:
    """How far two trainings that began with the same weights differ, as a part of the largest change of the second."""
    import numpy

    first, second = (
        numpy.concatenate([numpy.ravel(after.astype("float64") - start) for start, after in zip(before, weights)])
        for weights in (one, other)
    )
    return difference(first, second)

"""What TensorFlow is built with, what it finds on the host, and whether every device computes what NumPy computes."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from hostwright.standard.roles.cuda.proofs.programs.common import (
    CPU,
    NO_GPU,
    Device,
    Lines,
    difference,
    nvidia_smi,
    run,
)
from hostwright.standard.roles.tensorflow.proofs.programs.common import cpu, exact_float32, gpus


def main(lines: Lines, arguments: dict[str, Any]) -> None:
    """All of it, the build first."""
    import tensorflow as tf

    build = tf.sysconfig.get_build_info()
    lines.measure("tensorflow", tf.__version__, "", CPU)
    lines.measure("built with cuda", bool(tf.test.is_built_with_cuda()), "", CPU)
    lines.measure("built for cuda", str(build.get("cuda_version", "none")), "", CPU)
    lines.measure("built for cudnn", str(build.get("cudnn_version", "none")), "", CPU)
    lines.measure("ptxas", ptxas(arguments.get("toolkit", "")), "", CPU)
    cards = gpus()
    details = [tf.config.experimental.get_device_details(gpu) for gpu in tf.config.list_physical_devices("GPU")]
    for device in [cpu(), *cards]:
        with exact_float32():
            lines.measure("product", product(device), "of the largest value", device.label)
            lines.measure("convolution", convolution(device), "of the largest value", device.label)
    for device, detail in zip(cards, details):
        of_card(lines, device, detail)
    if not cards:
        for name, unit in (("gpu", ""), ("compute capability", ""), ("cudnn", ""), ("memory with growth", "MiB")):
            lines.measure(name, None, unit, NO_GPU)
        for name in ("product", "convolution"):
            lines.without_gpu(name, "of the largest value")


def of_card(lines: Lines, device: Device, detail: Any) -> None:
    """What is known of a card after it has computed."""
    lines.measure("gpu", str(detail.get("device_name", "unknown")), "", device.label)
    capability = ".".join(str(number) for number in detail.get("compute_capability", ("unknown",)))
    lines.measure("compute capability", capability, "", device.label)
    lines.measure("cudnn", cudnn(), "", device.label)
    for row in nvidia_smi("uuid,memory.used,memory.total,pci.device_id"):
        if len(row) == 4 and device.label.startswith(row[0] + " "):
            for name, value in (("memory with growth", row[1]), ("memory", row[2])):
                if value.isdigit():
                    lines.measure(name, int(value), "MiB", device.label)
            lines.measure("pci device", row[3], "", device.label)  # 0x1EB810DE: device and vendor


def product(device: Device) -> float:
    """Multiply matrices of small whole numbers, whose product float32 holds exactly: any difference is a wrong one."""
    import numpy

    import tensorflow as tf

    random = numpy.random.default_rng(2)
    left, right = (random.integers(-8, 9, (768, 768)) for _ in range(2))
    with tf.device(device.name):
        result = tf.linalg.matmul(tf.constant(left, tf.float32), tf.constant(right, tf.float32)).numpy()
    return difference(result, left @ right)


def convolution(device: Device) -> float:
    """Convolve images with 3×3 kernels; on a GPU this is cuDNN's work."""
    import numpy

    import tensorflow as tf

    random = numpy.random.default_rng(3)
    images = random.standard_normal((4, 32, 32, 16)).astype("float32")
    kernels = random.standard_normal((3, 3, 16, 32)).astype("float32")
    with tf.device(device.name):
        result = tf.nn.conv2d(tf.constant(images), tf.constant(kernels), strides=1, padding="SAME").numpy()
    padded = numpy.pad(images.astype("float64"), ((0, 0), (1, 1), (1, 1), (0, 0)))
    reference = numpy.zeros((4, 32, 32, 32))
    for row in range(3):
        for column in range(3):
            reference += padded[:, row : row + 32, column : column + 32] @ kernels[row, column].astype("float64")
    return difference(result, reference)


def cudnn() -> str:
    """The version of the cuDNN that this process has opened: ``8.1.0``."""
    if "libcudnn" not in Path("/proc/self/maps").read_text("utf-8", errors="replace"):
        return "not loaded"
    number = int(ctypes.CDLL("libcudnn.so.8").cudnnGetVersion())
    return f"{number // 1000}.{number // 100 % 10}.{number % 100}"


def ptxas(toolkit: str) -> str:
    """Where the assembler of CUDA is, which XLA and cuDNN's autotuning start, and its version; empty: nowhere."""
    path = shutil.which("ptxas", path=toolkit + "/bin") or shutil.which("ptxas")
    if path is None:
        return ""
    try:
        done = subprocess.run([path, "--version"], stdout=subprocess.PIPE, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    version = re.search(rb"release [0-9.]+, (V[0-9.]+)", done.stdout)
    return "{} {}".format(path, version.group(1).decode() if version else "of an unknown version")


if __name__ == "__main__":
    run(main)

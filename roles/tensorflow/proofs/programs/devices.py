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
    OF_LARGEST_VALUE,
    Device,
    Lines,
    convolution_case,
    difference,
    nvidia_smi,
    run,
    whole_numbers,
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
            lines.measure("product", product(device), OF_LARGEST_VALUE, device.label)
            lines.measure("convolution", convolution(device), OF_LARGEST_VALUE, device.label)
    for device, detail in zip(cards, details):
        of_card(lines, device, detail)
    if not cards:
        for name, unit in (("gpu", ""), ("compute capability", ""), ("cudnn", ""), ("memory with growth", "MiB")):
            lines.measure(name, None, unit, NO_GPU)
        for name in ("product", "convolution"):
            lines.without_gpu(name, OF_LARGEST_VALUE)


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
    """The product of whole numbers."""
    import tensorflow as tf

    left, right = whole_numbers()
    with tf.device(device.name):
        result = tf.linalg.matmul(tf.constant(left, tf.float32), tf.constant(right, tf.float32)).numpy()
    return difference(result, left @ right)


def convolution(device: Device) -> float:
    """A convolution; on a GPU this is cuDNN's work."""
    import tensorflow as tf

    images, kernels, reference = convolution_case()
    with tf.device(device.name):
        result = tf.nn.conv2d(tf.constant(images), tf.constant(kernels), strides=1, padding="SAME").numpy()
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

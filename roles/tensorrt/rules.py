"""Compatibility rules for TensorRT: CUDA and cuDNN of its archives, and the TensorFlow that loads it."""

from __future__ import annotations

from dataclasses import dataclass

from hostwright.roles import Choice, Misfit, disk_is_enough, series, version

ARCHIVES = "names of NVIDIA's archives and packages of TensorRT"


@dataclass(frozen=True, slots=True)
class TensorrtRow:
    """Row of the compatibility table: CUDA and cuDNN series for which NVIDIA offers a TensorRT release."""

    cuda: tuple[str, ...]
    cudnn: str


TENSORRTS = {"7.2.3.4": TensorrtRow(("11.1", "11.2"), "8.1")}

#: TensorFlow series → TensorRT version with which the wheel was linked (measured with 2.9.0)
LINKED = dict.fromkeys(("2.9", "2.10", "2.11"), "7.2.2")


def is_known(tensorrt: str) -> Misfit | None:
    """Check that the compatibility table lists the release ``tensorrt``."""
    if tensorrt in TENSORRTS:
        return None
    return Misfit(
        "tensorrt",
        f"TensorRT {tensorrt} is not in the compatibility table; use one of {', '.join(TENSORRTS)}",
        ARCHIVES,
    )


def is_for_the_toolkit(tensorrt: str, cuda: str) -> Misfit | None:
    """Check that NVIDIA offers the release ``tensorrt`` for the series of the toolkit ``cuda``."""
    row = TENSORRTS.get(tensorrt)
    if row is None or series(cuda) in row.cuda:
        return None
    return Misfit("tensorrt-cuda", f"TensorRT {tensorrt} is for CUDA {' and '.join(row.cuda)}, not {cuda}", ARCHIVES)


def is_for_the_cudnn(tensorrt: str, cudnn: str) -> Misfit | None:
    """Check that NVIDIA's archive of the release ``tensorrt`` is for the series of ``cudnn``."""
    row = TENSORRTS.get(tensorrt)
    if row is None or series(cudnn) == row.cudnn:
        return None
    return Misfit("tensorrt-cudnn", f"TensorRT {tensorrt} is for cuDNN {row.cudnn}, not {cudnn}", ARCHIVES)


def is_what_tensorflow_opens(tensorrt: str, tensorflow: str) -> Misfit | None:
    """Check that ``tensorrt`` has the major version with which ``tensorflow`` was linked, and is not older."""
    linked = LINKED.get(series(tensorflow))
    if linked and tensorrt.partition(".")[0] == linked.partition(".")[0] and version(tensorrt) >= version(linked):
        return None
    wants = f"was linked with TensorRT {linked}" if linked else "has no known support for TensorRT"
    sentence = f"TensorRT {tensorrt} does not work with TensorFlow {tensorflow}, which {wants}"
    return Misfit("tensorrt-tensorflow", sentence, "TensorFlow's tf2tensorrt, checks of versions")


RULES = (disk_is_enough, is_known, is_for_the_toolkit, is_for_the_cudnn, is_what_tensorflow_opens)
CHOICES = (Choice("tensorrt", "TensorRT", 50, tuple(TENSORRTS), usual="7.2.3.4"),)

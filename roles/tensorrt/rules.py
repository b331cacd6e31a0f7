"""Compatibility rules for TensorRT: the CUDA and cuDNN of its archives, and the TensorFlow that loads it."""

from __future__ import annotations

from dataclasses import dataclass

from hostwright.roles import Choice, Misfit, disk_is_enough, series, version

ARCHIVES = "names of NVIDIA's archives and packages of TensorRT"


@dataclass(frozen=True, slots=True)
class TensorrtRow:
    """The series of CUDA and of cuDNN for which NVIDIA offers the archive of one TensorRT release."""

    cuda: tuple[str, ...]
    cudnn: str


TENSORRTS = {"7.2.3.4": TensorrtRow(("11.1", "11.2"), "8.1")}

#: TensorFlow series → TensorRT version with which the wheel was linked (measured with 2.9.0)
LINKED = dict.fromkeys(("2.9", "2.10", "2.11"), "7.2.2")


def is_known(tensorrt: str) -> Misfit | None:
    """Check that the table lists this release of TensorRT."""
    if tensorrt in TENSORRTS:
        return None
    return Misfit(
        "tensorrt",
        f"TensorRT {tensorrt} is not in the compatibility table; use one of {', '.join(TENSORRTS)}",
        ARCHIVES,
    )


def is_for_the_toolkit(tensorrt: str, cuda: str) -> Misfit | None:
    """Check that NVIDIA offers this release's archive for the toolkit's series."""
    row = TENSORRTS.get(tensorrt)
    if row is None or series(cuda) in row.cuda:
        return None
    return Misfit("tensorrt-cuda", f"TensorRT {tensorrt} is for CUDA {' and '.join(row.cuda)}, not {cuda}", ARCHIVES)


def is_for_the_cudnn(tensorrt: str, cudnn: str) -> Misfit | None:
    """Check that this release's archive is for the series of the stack's cuDNN."""
    row = TENSORRTS.get(tensorrt)
    if row is None or series(cudnn) == row.cudnn:
        return None
    return Misfit("tensorrt-cudnn", f"TensorRT {tensorrt} is for cuDNN {row.cudnn}, not {cudnn}", ARCHIVES)


def is_what_tensorflow_opens(tensorrt: str, tensorflow: str) -> Misfit | None:
    """Check that TensorRT has the major version that TensorFlow loads, and at least the version that it was linked
    with.
    """
    linked = LINKED.get(series(tensorflow))
    if linked and tensorrt.partition(".")[0] == linked.partition(".")[0] and version(tensorrt) >= version(linked):
        return None
    wants = f"was linked with TensorRT {linked}" if linked else "has no known support for TensorRT"
    sentence = f"TensorRT {tensorrt} does not work with TensorFlow {tensorflow}, which {wants}"
    return Misfit("tensorrt-tensorflow", sentence, "TensorFlow's tf2tensorrt, checks of versions")


RULES = (disk_is_enough, is_known, is_for_the_toolkit, is_for_the_cudnn, is_what_tensorflow_opens)
CHOICES = (Choice("tensorrt", "TensorRT", 50, tuple(TENSORRTS), usual="7.2.3.4"),)

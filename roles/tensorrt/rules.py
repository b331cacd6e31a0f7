"""Compatibility rules for TensorRT: CUDA and cuDNN of its archives, and the TensorFlow that opens it."""

from __future__ import annotations

from dataclasses import dataclass

from hostwright.roles import Choice, Misfit, disk_is_enough, series, version

ARCHIVES = "names of NVIDIA's archives and packages of TensorRT"


@dataclass(frozen=True, slots=True)
class TensorrtRow:
    """A release, with the series of CUDA and cuDNN for which NVIDIA offers its archive."""

    cuda: tuple[str, ...]
    cudnn: str


TENSORRTS = {"7.2.3.4": TensorrtRow(("11.1", "11.2"), "8.1")}

#: series of TensorFlow → TensorRT that its wheel was linked with; TensorFlow opens this major version by name. Measured
#: with 2.9.0; 2.10 and 2.11 open the same name.
LINKED = dict.fromkeys(("2.9", "2.10", "2.11"), "7.2.2")


def is_known(tensorrt: str) -> Misfit | None:
    """Check that the table has this release."""
    if tensorrt in TENSORRTS:
        return None
    return Misfit("tensorrt", f"TensorRT {tensorrt} is not in the table; use one of {', '.join(TENSORRTS)}", ARCHIVES)


def is_for_the_toolkit(tensorrt: str, cuda: str) -> Misfit | None:
    """Check that NVIDIA offers the archive for the toolkit's series."""
    row = TENSORRTS.get(tensorrt)
    if row is None or series(cuda) in row.cuda:
        return None
    return Misfit("tensorrt-cuda", f"TensorRT {tensorrt} is for CUDA {' and '.join(row.cuda)}, not {cuda}", ARCHIVES)


def is_for_the_cudnn(tensorrt: str, cudnn: str) -> Misfit | None:
    """Check that the archive is for cuDNN's series."""
    row = TENSORRTS.get(tensorrt)
    if row is None or series(cudnn) == row.cudnn:
        return None
    return Misfit("tensorrt-cudnn", f"TensorRT {tensorrt} is for cuDNN {row.cudnn}, not {cudnn}", ARCHIVES)


def is_what_tensorflow_opens(tensorrt: str, tensorflow: str) -> Misfit | None:
    """Check that TensorRT has the major version that TensorFlow opens, and at least the version that TensorFlow was
    linked with.
    """
    linked = LINKED.get(series(tensorflow))
    if linked and tensorrt.partition(".")[0] == linked.partition(".")[0] and version(tensorrt) >= version(linked):
        return None
    wants = f"was linked with {linked}" if linked else "is not known to open TensorRT"
    sentence = f"TensorRT {tensorrt} does not work with TensorFlow {tensorflow}, which {wants}"
    return Misfit("tensorrt-tensorflow", sentence, "TensorFlow's tf2tensorrt, checks of versions")


RULES = (disk_is_enough, is_known, is_for_the_toolkit, is_for_the_cudnn, is_what_tensorflow_opens)
CHOICES = (Choice("tensorrt", "TensorRT", 50, tuple(TENSORRTS), usual="7.2.3.4"),)

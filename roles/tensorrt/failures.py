"""Failures of TensorRT: a missing runtime compiler, a second TensorRT, and messages of programs.

A missing TensorRT is not a failure: TensorFlow works without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hostwright.failures import FailureRule, Sign
from hostwright.resources import Probe
from hostwright.standard.roles.tensorrt.section import TensorrtSection

if TYPE_CHECKING:
    from hostwright.failures import AuditContext

#: probe that prints TensorRT and NVRTC libraries in the loader cache's order
LOADED = Probe(
    r"""all=$(/sbin/ldconfig -p) || exit 1
name='lib(nvinfer|nvinfer_plugin|nvrtc)\.so\.[0-9.]+'
printf '%s\n' "$all" | sed -nE "s/^[[:space:]]*($name) \(libc6,x86-64[^)]*\) => /\1 /p" | while read -r name path; do
  echo "$name $(readlink -m -- "${path%/*}")/${path##*/}"
done"""
)


def without_nvrtc(ctx: AuditContext) -> Iterator[str]:
    """The loader's cache has TensorRT, but not the runtime compiler that TensorRT was linked with."""
    wanted, loaded = ctx.section(TensorrtSection), _loaded(ctx)
    names = {name for name, _ in loaded}
    if set(wanted.libraries) & names and wanted.nvrtc.library not in names:
        yield f"{wanted.nvrtc.library} is not in the loader's cache"


def in_loader(ctx: AuditContext) -> Iterator[str]:
    """The loader's cache has another TensorRT of the stack's major version."""
    wanted = ctx.section(TensorrtSection)
    for name, path in _loaded(ctx):
        if name in wanted.libraries and not path.startswith(f"{wanted.prefix}/"):
            yield f"the loader's cache also has {path}"


def _loaded(ctx: AuditContext) -> tuple[tuple[str, str], ...]:
    rows = (line.partition(" ") for line in ctx.text(LOADED).splitlines())
    return tuple((name, path) for name, _, path in rows if path.startswith("/"))


FAILURES = (
    FailureRule(
        "tensorrt-nvrtc",
        r"library 'libnvinfer[^'\n]{0,40}'; dlerror: libnvrtc\.so"
        r"|undefined reference to [`']nvrtc\w{1,60}@libnvrtc\.so",
        "TensorRT is installed, but not the runtime compiler (NVRTC) of the CUDA that it was linked with: TensorRT "
        "7.2 needs the one of CUDA 11.1, also beside CUDA 11.2",
        "If the host has the role tensorrt, provision again: the role installs the compiler. Otherwise install "
        "cuda-nvrtc-11-1 and name its directory in /etc/ld.so.conf.d",
        "NVIDIA/TensorRT#1064; tensorflow/tensorflow#50330",
        sign=Sign("tensorrt", without_nvrtc, (LOADED,), provision=True),
    ),
    FailureRule(
        "tensorrt-in-loader",
        "",
        "the loader's cache has two TensorRTs of one major version, and a program may load parts of both",
        "If apt installed the other TensorRT, or it is in a default directory of the loader, provision again. "
        "Otherwise remove it, or the file in /etc/ld.so.conf.d that names its directory, and run ldconfig",
        "ldconfig(8)",
        sign=Sign("tensorrt", in_loader, (LOADED,), grave=False),
    ),
    FailureRule(
        "tensorrt-not-installed",
        r"nvinfer_stub\.cc[^\n]{0,80} symbol not found"
        r"|(?:ImportError|shared libraries): libnvinfer\w{0,8}\.so[0-9.]{0,9}: cannot"
        r"|\bld: [^\n]{0,40}-lnvinfer\b",
        "a program needs TensorRT (TensorFlow's TF-TRT, TensorRT's own Python package, or a build), and the host has "
        "none, or one of another major version",
        "Add the role tensorrt to the host (hostwright_roles) for TensorFlow 2.9 to 2.11; for another program, "
        "install the TensorRT that it names",
        "google/automl#406; TensorFlow tensorflow/compiler/tf2tensorrt/stub/nvinfer_stub.cc",
    ),
    FailureRule(
        "tensorrt-version",
        r"Loaded TensorRT [0-9.]{1,12} but linked TensorFlow against"
        r"|Incompatible (?:linked |loaded )?TensorRT (?:major )?version",
        "TensorFlow opened a TensorRT that it cannot use: another major version, or older than the one its wheel was "
        "linked with",
        "Provision a stack with a TensorRT for this TensorFlow: the wheel of 2.9 is linked with 7.2.2 and "
        "accepts a newer 7",
        "TensorFlow tensorflow/python/compiler/tensorrt/trt_convert.py",
    ),
    FailureRule(
        "tensorflow-without-tensorrt",
        r"Tensorflow (?:needs to be|has not been) built with TensorRT support|TensorRT is not enabled!",
        "this build of TensorFlow has no TF-TRT, regardless of the host's TensorRT",
        "Use the stack's TensorFlow (the PyPI wheel has TF-TRT) or an image of NVIDIA's, not a CPU build or one from "
        "conda",
        "tensorflow/tensorrt#279",
    ),
    FailureRule(
        "tensorrt-engine",
        r"engine plan file is not compatible with this version of TensorRT"
        r"|engine plan file is generated on an incompatible device|(?:Version|Magic) tag does not match",
        "an engine (plan file) was built by another release of TensorRT or for another kind of GPU, and works only "
        "there",
        "Delete the cached .engine, .plan or .trt file and build the engine again on this host, with this TensorRT",
        "NVIDIA/retinanet-examples#314; SthPhoenix/InsightFace-REST#84",
    ),
    FailureRule(
        "tensorrt-other-cuda",
        r"\bMyelin \([^\n]{0,60}Compiled against cu[A-Za-z]{2,6} [0-9.]{1,16} but running against",
        "TensorRT loads cuBLAS or cuDNN of another CUDA than it was built with, and its graph compiler rejects them",
        "Find the libraries that are loaded first (LD_DEBUG=libs), then give the program the CUDA that TensorRT "
        "was built with, or a TensorRT for this CUDA",
        "NVIDIA/TensorRT#1292",
    ),
)

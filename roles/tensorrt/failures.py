"""Failures of TensorRT: without the runtime compiler that it wants, or a second one; and messages of its users.

That TensorFlow cannot open TensorRT is no failure: it notes so on every host without it, and works.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hostwright.failures import FailureRule, Sign
from hostwright.resources import Probe
from hostwright.standard.roles.tensorrt.section import TensorrtSection

if TYPE_CHECKING:
    from hostwright.failures import AuditContext

#: name and path of each in the loader's cache, in its order, with the links of the directory followed
LOADED = Probe(
    r"""all=$(/sbin/ldconfig -p) || exit 1
name='lib(nvinfer|nvinfer_plugin|nvrtc)\.so\.[0-9.]+'
printf '%s\n' "$all" | sed -nE "s/^[[:space:]]*($name) \(libc6,x86-64[^)]*\) => /\1 /p" | while read -r name path; do
  echo "$name $(readlink -m -- "${path%/*}")/${path##*/}"
done"""
)


def without_nvrtc(ctx: AuditContext) -> Iterator[str]:
    """The loader knows TensorRT, and not the runtime compiler that it was linked with."""
    wanted, loaded = ctx.section(TensorrtSection), _loaded(ctx)
    names = {name for name, _ in loaded}
    if set(wanted.libraries) & names and wanted.nvrtc.library not in names:
        yield f"{wanted.nvrtc.library} is not in the loader's cache"


def in_loader(ctx: AuditContext) -> Iterator[str]:
    """The loader's cache names another TensorRT of the same major version."""
    wanted = ctx.section(TensorrtSection)
    for name, path in _loaded(ctx):
        if name in wanted.libraries and not path.startswith(f"{wanted.prefix}/"):
            yield f"the loader also knows {path}"


def _loaded(ctx: AuditContext) -> tuple[tuple[str, str], ...]:
    rows = (line.partition(" ") for line in ctx.text(LOADED).splitlines())
    return tuple((name, path) for name, _, path in rows if path.startswith("/"))


FAILURES = (
    FailureRule(
        "tensorrt-nvrtc",
        r"library 'libnvinfer[^'\n]{0,40}'; dlerror: libnvrtc\.so"
        r"|undefined reference to [`']nvrtc\w{1,60}@libnvrtc\.so",
        "TensorRT is there, and the runtime compiler (NVRTC) of the CUDA that it was linked with is not: TensorRT 7.2"
        " wants that of CUDA 11.1 beside 11.2, too",
        "Provision a host with the role tensorrt again, which brings it; elsewhere install cuda-nvrtc-11-1 and name its"
        " directory in /etc/ld.so.conf.d",
        "NVIDIA/TensorRT#1064; tensorflow/tensorflow#50330",
        sign=Sign("tensorrt", without_nvrtc, (LOADED,), provision=True),
    ),
    FailureRule(
        "tensorrt-in-loader",
        "",
        "the loader knows two TensorRTs of one major version, and a program may get parts of both",
        "Provision again where apt brought the other one or it lies in the loader's own directories; else remove it, or"
        " the file in /etc/ld.so.conf.d that names its directory, and run ldconfig",
        "ldconfig(8)",
        sign=Sign("tensorrt", in_loader, (LOADED,), grave=False),
    ),
    FailureRule(
        "tensorrt-not-installed",
        r"nvinfer_stub\.cc[^\n]{0,80} symbol not found"
        r"|(?:ImportError|shared libraries): libnvinfer\w{0,8}\.so[0-9.]{0,9}: cannot"
        r"|\bld: [^\n]{0,40}-lnvinfer\b",
        "a program wants TensorRT (TensorFlow's TF-TRT, TensorRT's own Python package, or a build), and it is not on"
        " the host, or of another major version than the program opens",
        "Give the host the role tensorrt (hostwright_roles), which is for TensorFlow 2.9 to 2.11; other programs need"
        " the TensorRT that they name",
        "google/automl#406; TensorFlow tensorflow/compiler/tf2tensorrt/stub/nvinfer_stub.cc",
    ),
    FailureRule(
        "tensorrt-version",
        r"Loaded TensorRT [0-9.]{1,12} but linked TensorFlow against"
        r"|Incompatible (?:linked |loaded )?TensorRT (?:major )?version",
        "TensorFlow opens another TensorRT than it can use: of another major version, or older than its wheel was"
        " linked with",
        "Provision a stack with a TensorRT for this TensorFlow: 2.9's wheel is linked with 7.2.2 and takes a newer 7",
        "TensorFlow tensorflow/python/compiler/tensorrt/trt_convert.py",
    ),
    FailureRule(
        "tensorflow-without-tensorrt",
        r"Tensorflow (?:needs to be|has not been) built with TensorRT support|TensorRT is not enabled!",
        "this build of TensorFlow has no TF-TRT at all, whatever TensorRT is on the host",
        "Use the stack's TensorFlow (its wheel of PyPI has TF-TRT), or an image of NVIDIA's, and not a build for"
        " processors or from conda",
        "tensorflow/tensorrt#279",
    ),
    FailureRule(
        "tensorrt-engine",
        r"engine plan file is not compatible with this version of TensorRT"
        r"|engine plan file is generated on an incompatible device|(?:Version|Magic) tag does not match",
        "an engine (a plan file) was built by another release of TensorRT or for another kind of GPU, and works with"
        " that alone",
        "Build the engine again on this host, with this TensorRT (delete the cached .engine, .plan or .trt file)",
        "NVIDIA/retinanet-examples#314; SthPhoenix/InsightFace-REST#84",
    ),
    FailureRule(
        "tensorrt-other-cuda",
        r"\bMyelin \([^\n]{0,60}Compiled against cu[A-Za-z]{2,6} [0-9.]{1,16} but running against",
        "TensorRT gets another CUDA's cuBLAS or cuDNN than it was built with, which its graph compiler refuses",
        "See which come first (LD_DEBUG=libs): give the program TensorRT's own CUDA, or a TensorRT for this one",
        "NVIDIA/TensorRT#1292",
    ),
)

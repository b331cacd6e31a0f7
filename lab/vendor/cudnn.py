"""A stand-in of the cuDNN 8.1.0.77 archive: NVIDIA's layout, names, links and sonames, without kernels.

The libraries return their version and refuse to create a handle, so that no program mistakes them for cuDNN.
"""

from __future__ import annotations

import gzip
import shutil
import tarfile
from pathlib import Path

from lab.programs import run
from lab.vendor import packaging, standin
from lab.vendor.model import Profile, VendorFile, build_once, describe, recipe_key

VERSION = "8.1.0.77"
FILE_NAME = f"cudnn-11.2-linux-x64-v{VERSION}.tgz"
MAJOR, MINOR, PATCH = 8, 1, 0
NUMBER = MAJOR * 1000 + MINOR * 100 + PATCH  #: result of `cudnnGetVersion()`
CUDART = 11020  #: result of `cudnnGetCudartVersion()`: CUDA 11.2

#: libraries that libcudnn.so.8 loads on demand: stem → function for its version check
PARTS = {
    f"libcudnn_{part}_{use}": f"cudnn{part.title()}{use.title()}VersionCheck"
    for part in ("ops", "cnn", "adv")
    for use in ("infer", "train")
}
_NOTE = "cuDNN 8.1.0 without its code"
_MAIN_SOURCE = f"""
unsigned long cudnnGetVersion(void) {{ return {NUMBER}; }}
unsigned long cudnnGetCudartVersion(void) {{ return {CUDART}; }}
int cudnnGetProperty(int property, int *value) {{
    static const int values[] = {{ {MAJOR}, {MINOR}, {PATCH} }};
    if (property < 0 || property > 2) return 3; /* CUDNN_STATUS_BAD_PARAM */
    *value = values[property];
    return 0;
}}
const char *cudnnGetErrorString(int status) {{ return status ? "{standin.NOTE}: not cuDNN" : "CUDNN_STATUS_SUCCESS"; }}
int cudnnCreate(void **handle) {{ *handle = 0; return 1; }} /* CUDNN_STATUS_NOT_INITIALIZED */
int cudnnDestroy(void *handle) {{ (void)handle; return 1; }}
"""
_BANNER = f"/* {standin.NOTE} of NVIDIA's header of this name: versions and names only. */\n"
_DECLARATIONS = """#include <stddef.h>
typedef enum { CUDNN_STATUS_SUCCESS = 0, CUDNN_STATUS_NOT_INITIALIZED = 1, CUDNN_STATUS_BAD_PARAM = 3 } cudnnStatus_t;
typedef struct cudnnContext *cudnnHandle_t;
#ifdef __cplusplus
extern "C" {
#endif
size_t cudnnGetVersion(void);
size_t cudnnGetCudartVersion(void);
const char *cudnnGetErrorString(cudnnStatus_t status);
cudnnStatus_t cudnnCreate(cudnnHandle_t *handle);
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle);
#ifdef __cplusplus
}
#endif
"""
_VERSION_LINES = f"""#define CUDNN_MAJOR {MAJOR}
#define CUDNN_MINOR {MINOR}
#define CUDNN_PATCHLEVEL {PATCH}
#define CUDNN_VERSION (CUDNN_MAJOR * 1000 + CUDNN_MINOR * 100 + CUDNN_PATCHLEVEL)
"""
_SLA = f"""{standin.NOTE}: this archive has the layout of NVIDIA's cuDNN {VERSION}, not its files.
NVIDIA's licence is not repeated here because nothing of NVIDIA's is in it.
"""


def build(out: Path, profile: Profile) -> list[VendorFile]:
    """Build the archive into `out` if it is missing; it is the same in both profiles."""
    key = recipe_key(profile, (Path(__file__), Path(standin.__file__), Path(packaging.__file__)))
    return build_once(out, "cudnn", key, _make)


def headers() -> dict[str, str]:
    """Return the headers of the archive: file name → text."""
    parts = [stem.removeprefix("lib") + ".h" for stem in PARTS]
    texts = {name: _guarded(name, "") for name in (*parts, "cudnn_backend.h")}
    texts["cudnn_version.h"] = _guarded("cudnn_version.h", _VERSION_LINES)
    texts["cudnn_ops_infer.h"] = _guarded("cudnn_ops_infer.h", _DECLARATIONS)
    names = ("cudnn_version.h", *parts, "cudnn_backend.h")
    texts["cudnn.h"] = _guarded("cudnn.h", "".join(f'#include "{name}"\n' for name in names))
    return texts


def _guarded(name: str, body: str) -> str:
    guard = name.upper().replace(".", "_") + "_"
    return f"{_BANNER}#ifndef {guard}\n#define {guard}\n{body}#endif\n"


def _make(work: Path) -> list[VendorFile]:
    tree = work / "cuda"
    (tree / "include").mkdir(parents=True)
    for name, text in headers().items():
        (tree / "include" / name).write_text(text)
    (tree / "NVIDIA_SLA_cuDNN_Support.txt").write_text(_SLA)
    _library(tree / "lib64", "libcudnn", _MAIN_SOURCE)
    for stem, check in PARTS.items():
        _library(tree / "lib64", stem, f"int {check}(void) {{ return 0; }}\n")
    run(["ar", "rcD", tree / "lib64/libcudnn_static.a"])  # the vendor's name, without content
    archive = work / FILE_NAME
    _pack(tree, archive)
    shutil.rmtree(tree)
    return [describe(archive, artifact="cudnn", version=VERSION, stand_in=True, note=f"a stand-in: {_NOTE}")]


def _library(directory: Path, stem: str, source: str) -> None:
    """Build one library with the vendor's chain of links: `.so` → `.so.8` → `.so.8.1.0`."""
    real = directory / f"{stem}.so.{MAJOR}.{MINOR}.{PATCH}"
    soname = f"{stem}.so.{MAJOR}"
    standin.shared_object(real, soname, f"{stem} of {_NOTE}", source)
    (directory / soname).symlink_to(real.name)
    (directory / f"{stem}.so").symlink_to(soname)


def _pack(tree: Path, archive: Path) -> None:
    """Write the tree as a gzipped tar that keeps links, without times and owners."""
    with (
        archive.open("wb") as raw,
        gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar,
    ):
        tar.add(tree, arcname="cuda", filter=packaging.anonymous)  # adds in sorted order

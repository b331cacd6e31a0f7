"""Stand-ins of NVIDIA's NCCL packages: NVIDIA's names, versions, files and links, without communication.

No public index has NCCL 2.8.4. The library returns its version and refuses to create a communicator, so that no program
mistakes it for NCCL.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from lab.vendor import packaging, standin
from lab.vendor.model import Profile, VendorFile, build_once, describe, recipe_key
from lab.vendor.packaging import Control, build_deb

VERSION, CUDA = "2.8.4", "11.2"
RUNTIME, DEVELOPMENT = "libnccl2", "libnccl-dev"
_LIB = "usr/lib/x86_64-linux-gnu"
#: functions that programs link with; all of them fail in the stand-in
ABSENT = ("ncclCommInitAll", "ncclCommDestroy", "ncclGroupStart", "ncclGroupEnd", "ncclAllReduce")


def build(out: Path, profile: Profile) -> list[VendorFile]:
    """Build both packages into `out` if they are missing; they are the same in both profiles."""
    key = recipe_key(profile, (Path(__file__), Path(standin.__file__), Path(packaging.__file__)))
    return build_once(out, "nccl", key, _make)


def runtime(directory: Path, version: str, cuda: str) -> Path:
    """Build `libnccl2` of any release into `directory`; return the file."""
    tree = directory / "tree"
    real = tree / _LIB / f"libnccl.so.{version}"
    absent = "".join(f"int {name}() {{ return 3; }} /* ncclInternalError */\n" for name in ABSENT)
    source = f"""
int ncclGetVersion(int *version) {{ *version = {number(version)}; return 0; }}
const char *ncclGetErrorString(int result) {{ return result ? "{standin.NOTE}: not NCCL" : "no error"; }}
{absent}"""
    standin.shared_object(real, "libnccl.so.2", f"NCCL {version} without its code", source)
    (tree / _LIB / "libnccl.so.2").symlink_to(real.name)
    return _packed(tree, RUNTIME, f"{version}-1+cuda{cuda}", directory)


def number(version: str) -> int:
    """Return the result of `ncclGetVersion()` for a release."""
    major, minor, patch = (int(part) for part in version.split("."))
    return major * (1000 if (major, minor) <= (2, 8) else 10000) + minor * 100 + patch


def _development(directory: Path) -> Path:
    tree = directory / "tree"
    (tree / _LIB).mkdir(parents=True)
    (tree / _LIB / "libnccl.so").symlink_to("libnccl.so.2")
    (tree / "usr/include").mkdir()
    (tree / "usr/include/nccl.h").write_text(_header())
    return _packed(tree, DEVELOPMENT, f"{VERSION}-1+cuda{CUDA}", directory, f"{RUNTIME} (= {VERSION}-1+cuda{CUDA})")


def _header() -> str:
    parts = zip(("MAJOR", "MINOR", "PATCH"), VERSION.split("."), strict=True)
    defines = "".join(f"#define NCCL_{name} {value}\n" for name, value in parts)
    return f"""/* {standin.NOTE} of NVIDIA's header of this name: versions, and what one all-reduce needs. */
#pragma once
#include <stddef.h>
#include <cuda_runtime.h>
{defines}#define NCCL_VERSION_CODE {number(VERSION)}
typedef enum {{ ncclSuccess = 0, ncclInternalError = 3 }} ncclResult_t;
typedef enum {{ ncclFloat = 7 }} ncclDataType_t;
typedef enum {{ ncclSum = 0 }} ncclRedOp_t;
typedef struct ncclComm *ncclComm_t;
#ifdef __cplusplus
extern "C" {{
#endif
ncclResult_t ncclGetVersion(int *version);
const char *ncclGetErrorString(ncclResult_t result);
ncclResult_t ncclCommInitAll(ncclComm_t *comms, int count, const int *devices);
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);
ncclResult_t ncclAllReduce(const void *in, void *out, size_t count, ncclDataType_t type, ncclRedOp_t operation,
                           ncclComm_t comm, cudaStream_t stream);
#ifdef __cplusplus
}}
#endif
"""


def _packed(tree: Path, name: str, version: str, directory: Path, depends: str = "") -> Path:
    control = Control(name, version, "NVIDIA Collective Communication Library (hostwright stand-in)", depends)
    deb = build_deb(tree, control, directory)
    shutil.rmtree(tree)
    return deb


def _make(work: Path) -> list[VendorFile]:
    note = "a stand-in: it says its version, and moves no data"
    version = f"{VERSION}-1+cuda{CUDA}"
    return [
        describe(deb, artifact=artifact, version=version, stand_in=True, note=note)
        for deb, artifact in ((runtime(work, VERSION, CUDA), "nccl"), (_development(work), "nccl-dev"))
    ]

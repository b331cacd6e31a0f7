"""Stand-ins of the TensorRT 7.2.3.4 archive, and of the NVRTC of CUDA 11.1 that its libraries link with.

They have NVIDIA's layout, names, links and sonames, without code. Like NVIDIA's TensorRT, the libraries load only if
the loader finds `libnvrtc.so.11.1`.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from lab.programs import run
from lab.vendor import packaging, standin
from lab.vendor.model import Profile, VendorFile, build_once, describe, recipe_key
from lab.vendor.packaging import Control, build_deb

VERSION, LIBRARY_VERSION, SONAME = "7.2.3.4", "7.2.3", "7"
NUMBER = 7203  #: result of `getInferLibVersion()`
FILE_NAME = f"TensorRT-{VERSION}.Ubuntu-18.04.x86_64-gnu.cuda-11.1.cudnn8.1.tar.gz"
NVRTC, NVRTC_VERSION = "cuda-nvrtc-11-1", "11.1.105"
_NVRTC_LIB = "usr/local/cuda-11.1/targets/x86_64-linux/lib"
_NOTE = "TensorRT 7.2.3 without its code"


def build(out: Path, profile: Profile) -> list[VendorFile]:
    """Build archive and package into `out` if they are missing; they are the same in both profiles."""
    key = recipe_key(profile, (Path(__file__), Path(standin.__file__), Path(packaging.__file__)))
    return build_once(out, "tensorrt", key, _make)


def _make(work: Path) -> list[VendorFile]:
    nvrtc, tree = work / "nvrtc", work / f"TensorRT-{VERSION}"
    compiler = _library(
        nvrtc / _NVRTC_LIB,
        "libnvrtc",
        "11.1",
        NVRTC_VERSION,
        "int nvrtcVersion(int *a, int *b) { *a = 11; *b = 1; return 0; }",
    )
    _library(nvrtc / _NVRTC_LIB, "libnvrtc-builtins", "11.1", NVRTC_VERSION)
    home = tree / "targets/x86_64-linux-gnu/lib"
    answer = f"int getInferLibVersion(void) {{ return {NUMBER}; }}"
    infer = _library(home, "libnvinfer", SONAME, LIBRARY_VERSION, answer, compiler)
    plugins = "int initLibNvInferPlugins(void *logger, const char *name) { (void)logger; (void)name; return 0; }"
    _library(home, "libnvinfer_plugin", SONAME, LIBRARY_VERSION, plugins, compiler, infer)
    (tree / "lib").symlink_to("targets/x86_64-linux-gnu/lib")
    (tree / "include").mkdir()
    (tree / "include/NvInferVersion.h").write_text(_version_header())
    archive = work / FILE_NAME
    run(["tar", "-czf", archive, "--sort=name", "--owner=0", "--group=0", "--mtime=@0", "-C", work, tree.name])
    summary = "NVRTC native runtime libraries (hostwright stand-in)"
    deb = build_deb(nvrtc, Control(NVRTC, f"{NVRTC_VERSION}-1", summary), work)
    shutil.rmtree(tree)
    shutil.rmtree(nvrtc)
    return [
        describe(archive, artifact="tensorrt", version=VERSION, stand_in=True, note=f"a stand-in: {_NOTE}"),
        describe(
            deb,
            artifact="nvrtc-11.1",
            version=f"{NVRTC_VERSION}-1",
            stand_in=True,
            note="a stand-in: it compiles nothing",
        ),
    ]


def _library(directory: Path, stem: str, soname: str, version: str, source: str = "", *needs: Path) -> Path:
    """Build one library with the vendor's chain of links; return its real file.

    `needs` are libraries that the loader must find by their sonames.
    """
    real, name = directory / f"{stem}.so.{version}", f"{stem}.so.{soname}"
    if needs:
        directory.mkdir(parents=True, exist_ok=True)
        code = directory / "stand_in.c"
        code.write_text(f'const char hostwright_stand_in[] = "{standin.NOTE}: {stem} of {_NOTE}";\n{source}\n')
        options = ["-shared", "-fPIC", "-O1", "-nostdlib", "-Wl,--hash-style=gnu", f"-Wl,-soname,{name}"]
        run(["gcc", *options, "-o", real, code, "-Wl,--no-as-needed", *needs])
        code.unlink()
    else:
        standin.shared_object(real, name, f"{stem} of {_NOTE}", source)
    (directory / name).symlink_to(real.name)
    (directory / f"{stem}.so").symlink_to(name)
    return real


def _version_header() -> str:
    parts = zip(("MAJOR", "MINOR", "PATCH", "BUILD"), VERSION.split("."), strict=True)
    lines = "".join(f"#define NV_TENSORRT_{name} {value}\n" for name, value in parts)
    return f"/* {standin.NOTE} of NVIDIA's header of this name: versions only. */\n{lines}"

"""Container images for lab hosts without a registry: built on this machine, kept as archives of `docker save`.

An image has Debian 11, Python 3.9 and the requested wheels. It has the original image's tag, and a label that lists the
differences.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from hostwright.common.errors import LabError
from lab import surroundings
from lab.config import CHECKOUT, Machine, cache_directory
from lab.image import ensure_base
from lab.locking import locked
from lab.machine import inside
from lab.mounts import mount_overlay, unmount
from lab.programs import run, run_logged
from lab.vendor import wheels
from lab.vendor.model import Profile, sha256_of

# version of the build code, part of an image's hash. Increase the number when code changes an image.
RECIPE = 1
LABEL = "org.hostwright.lab.stand-in"
#: paths of the parts of Debian's filesystem in every image
_PARTS = ("bin", "sbin", "lib", "lib64", "etc", "usr/bin", "usr/sbin", "usr/lib64", "usr/lib/os-release")
_LIBRARIES = ("usr/lib/ssl", "usr/lib/python3", "usr/lib/python3.9", "usr/lib/x86_64-linux-gnu", "usr/share/zoneinfo")
_EMPTY = ("dev", "home", "mnt", "opt", "proc", "root", "run", "sys", "tmp", "usr/local", "var/tmp")
#: file with pinned versions of Jupyter's packages, in addition to TensorFlow's wheelhouse
_JUPYTER = CHECKOUT / "lab/jupyter-py39.txt"
#: paths of the parts of Debian's filesystem in no image
_NEITHER = ("boot", "usr/lib/modules", "usr/share/doc", "var/cache/apt")
_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class Image:
    """Container image: its content in addition to Python, and its metadata."""

    tag: str
    says: str  #: label text with the original image and the parts that this image lacks
    requirements: tuple[str, ...] = ()  #: packages to install, as requirements for pip
    environment: tuple[str, ...] = ()
    command: tuple[str, ...] = ("python3",)
    directory: str = "/"  #: working directory of the container's command
    #: parent image, to which this image adds ``files`` (path in the image, path in this checkout)
    below: Image | None = field(default=None, repr=False)
    files: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    #: names of Debian packages to install. The image then has the whole base system, so that other images can extend
    #: it.
    packages: tuple[str, ...] = field(default=(), repr=False)

    @property
    def file_stem(self) -> str:
        """Prefix of the archive's file name."""
        return self.tag.replace("/", "-").replace(":", "-")


PYTHON = Image(
    "hostwright-lab/python:3.9", "the lab's own image: Debian 11 with its Python 3.9, for tests that need no more"
)
DESK = Image(
    "hostwright-lab/desk:1",
    "the lab's own image: Debian 11 with real JupyterLab from PyPI, and with what a box to log in to is built from",
    ("jupyterlab",),
    # NVIDIA's images also request all cards by default.
    ("NVIDIA_VISIBLE_DEVICES=all",),
    packages=("git", "tmux"),
)
TENSORFLOW = Image(
    "tensorflow/tensorflow:2.9.0-gpu-jupyter",
    "stands in for the image of this name: real TensorFlow 2.9.0 and Jupyter from PyPI, on Debian 11, without CUDA",
    ("tensorflow==2.9.0", "jupyterlab", "notebook"),
    # The original image sets these variables, which select cards if NVIDIA's runtime is Docker's default.
    ("LANG=C.UTF-8", "NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,utility"),
    ("jupyter", "notebook", "--notebook-dir=/tf", "--ip=0.0.0.0", "--no-browser", "--allow-root"),
    "/tf",
)
_SERVING = tuple(
    (f"usr/local/lib/hostwright-lab/lab/serving/{file.name}", f"lab/serving/{file.name}")
    for file in sorted((CHECKOUT / "lab/serving").glob("*.py"))
)
SERVING = Image(
    "tensorflow/serving:2.9.0",
    "stands in for the image of this name: a REST server of the lab after TensorFlow Serving's contract, with real "
    "TensorFlow 2.9.0 behind it",
    environment=("MODEL_BASE_PATH=/models", "MODEL_NAME=model"),
    command=("tensorflow_model_server",),
    below=TENSORFLOW,
    files=(
        ("usr/local/bin/tensorflow_model_server", "lab/serving/tensorflow_model_server"),
        *_SERVING,
    ),
)


def load(machine: Machine, image: Image) -> None:
    """Load ``image`` into Docker on a running host. A missing image is built first."""
    with ensure(image).open("rb") as archive:
        done = subprocess.run(inside(machine, ["docker", "load"]), stdin=archive, capture_output=True, check=False)
    if done.returncode != 0:
        raise LabError(f"`docker load` of {image.tag} on {machine.name} failed: {done.stderr.decode().strip()[-500:]}")


def ensure(image: Image, cache: Path | None = None) -> Path:
    """Return the path of the archive of ``image``. The image is built if the current recipe has no archive."""
    cache = cache or cache_directory()
    base = ensure_base("bullseye", cache)
    archive = cache / "images" / f"{image.file_stem}-{_key(image, base)}.tar"
    with locked(f"image-{image.file_stem}"):
        if not archive.exists():
            archive.parent.mkdir(parents=True, exist_ok=True)
            for left in archive.parent.glob(f".{image.file_stem}.*"):  # a killed build leaves partial archives
                unmount(left / "merged")
                run(["rm", "-rf", left])
            print(f"lab: building the container image {image.tag}", file=sys.stderr, flush=True)
            started = time.monotonic()
            with tempfile.TemporaryDirectory(prefix=f".{image.file_stem}.", dir=archive.parent) as scratch:
                _build(image, base, cache, Path(scratch), archive)
            size = archive.stat().st_size
            print(f"lab: built {image.tag}: {size} bytes in {time.monotonic() - started:.0f} s", file=sys.stderr)
            for former in archive.parent.glob(f"{image.file_stem}-*.tar"):
                if former != archive:
                    former.unlink()
    return archive


def _key(image: Image, base: Path) -> str:
    recipe = hashlib.sha256(f"{RECIPE} {image!r} {base.name}".encode())
    if image.requirements:
        for file in (_JUPYTER, wheels.CONSTRAINTS):
            recipe.update(file.read_bytes())
    if image.below:
        recipe.update(_key(image.below, base).encode())
    for name, place in image.files:
        recipe.update(f"\0{name}\0".encode() + (CHECKOUT / place).read_bytes())
    recipe.update("".join(image.packages).encode())
    return recipe.hexdigest()[:12]


def _build(image: Image, base: Path, cache: Path, scratch: Path, archive: Path) -> None:
    if image.below:
        layers = _layers_of(ensure(image.below, cache), scratch)
    elif image.packages:
        with _installed(image, base, cache, scratch) as (_, whole):
            empty = [part for part in (*_EMPTY, *_NEITHER) if part != "usr/local" and (whole / part).is_dir()]
            layers = [_layer(scratch / "whole.tar", whole, sorted(part.name for part in whole.iterdir()), empty=empty)]
    else:
        layers = [_layer(scratch / "python.tar", base, (*_PARTS, *_LIBRARIES, *_EMPTY), empty=_EMPTY)]
    if image.requirements and not image.packages:
        with _installed(image, base, cache, scratch) as (added, _):
            layers.append(_layer(scratch / "wheels.tar", added, ["usr/local", image.directory.strip("/")]))
    if image.files:
        layers.append(_of_files(image, scratch / "files.tar"))
    unfinished = scratch / archive.name
    with tarfile.open(unfinished, "w", format=tarfile.GNU_FORMAT) as tar:
        _describe(image, layers, tar)
    unfinished.rename(archive)


def _layer(target: Path, root: Path, parts: Sequence[str], *, empty: Sequence[str] = ()) -> Path:
    options = ["--sort=name", "--numeric-owner", "--mtime=@0", *(f"--exclude=./{part}/*" for part in empty)]
    run(["tar", *options, "-C", root, "-cf", target, *(f"./{part}" for part in parts)])
    return target


def _layers_of(archive: Path, scratch: Path) -> list[Path]:
    with tarfile.open(archive) as tar:
        manifest = tar.extractfile("manifest.json")
        assert manifest is not None
        (entry,) = json.load(manifest)
        tar.extractall(scratch, [tar.getmember(name) for name in entry["Layers"]], filter="data")
    return [scratch / name for name in entry["Layers"]]


def _of_files(image: Image, target: Path) -> Path:
    with tarfile.open(target, "w", format=tarfile.GNU_FORMAT) as tar:
        for name, place in image.files:
            content = (CHECKOUT / place).read_bytes()
            _add(tar, name, content, 0o755 if "/bin/" in name else 0o644)
    return target


@contextmanager
def _installed(image: Image, base: Path, cache: Path, scratch: Path) -> Iterator[tuple[Path, Path]]:
    upper, work, merged, given = (scratch / name for name in ("upper", "work", "merged", "given"))
    for directory in (upper, work, merged, given):
        directory.mkdir()
    (given / "pip.conf").write_text(surroundings.pip_conf())
    shutil.copy(wheels.CONSTRAINTS, given / "tensorflow.txt")
    shutil.copy(_JUPYTER, given / "jupyter.txt")
    _wheelhouse(cache, given)
    mount_overlay(base, upper, work, merged)
    try:
        apt = f"apt-get -qq update; apt-get -qq install -y --no-install-recommends {' '.join(image.packages)}"
        install = f"""
        mkdir -p {image.directory}
        {f"export DEBIAN_FRONTEND=noninteractive; {apt}" if image.packages else ":"}
        pip="python3 -m pip --quiet --no-cache-dir --disable-pip-version-check"
        PIP_NO_INDEX=1 $pip install --find-links /mnt {wheels.PIP}
        $pip install --find-links /mnt -c /mnt/tensorflow.txt -c /mnt/jupyter.txt {" ".join(image.requirements)}"""
        nspawn = ["systemd-nspawn", "--quiet", "--pipe", "--as-pid2", "--keep-unit", "--register=no", "--settings=no"]
        quiet = ["--timezone=off", "--link-journal=no", "--resolv-conf=bind-host"]
        environment = ["--setenv=PIP_CONFIG_FILE=/mnt/pip.conf", "--setenv=PIP_ROOT_USER_ACTION=ignore"]
        root = [f"--directory={merged}", f"--bind-ro={given}:/mnt"]
        log = cache / "images" / f"{image.file_stem}.log"
        log.unlink(missing_ok=True)
        run_logged([*nspawn, *quiet, *environment, *root, "sh", "-euc", install], log)
        yield upper, merged
    finally:
        unmount(merged)


def _wheelhouse(cache: Path, target: Path) -> None:
    out = cache / "vendor" / Profile.SMALL
    out.mkdir(parents=True, exist_ok=True)
    wheels.build(out, Profile.SMALL)
    with tarfile.open(out / wheels.FILE_NAME) as tar:
        tar.extractall(target, filter="data")


def _describe(image: Image, layers: Sequence[Path], tar: tarfile.TarFile) -> None:
    digests = [sha256_of(layer) for layer in layers]
    created = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    config = {
        "architecture": "amd64",
        "os": "linux",
        "created": created,
        "config": {
            "Env": [_PATH, *image.environment],
            "Cmd": list(image.command),
            "WorkingDir": image.directory,
            "Labels": {LABEL: image.says},
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}" for digest in digests]},
        "history": [{"created": created, "created_by": "hostwright lab"} for _ in layers],
    }
    data = json.dumps(config).encode()
    name = f"{hashlib.sha256(data).hexdigest()}.json"
    names = [f"{digest}/layer.tar" for digest in digests]
    for layer, entry in zip(layers, names, strict=True):
        tar.add(layer, entry)
        layer.unlink()
    manifest = json.dumps([{"Config": name, "RepoTags": [image.tag], "Layers": names}]).encode()
    for entry, content in ((name, data), ("manifest.json", manifest)):
        _add(tar, entry, content)


def _add(tar: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(content), mode
    tar.addfile(member, io.BytesIO(content))

"""Writes the lab's stack files: the real stack, with vendor files that were built here instead of the vendor's.

Everything else (versions, package names, pins) comes from the extended stack. Beside it are written the stacks to
upgrade to (another driver, another TensorFlow) and that of Debian 12, which has the newer driver and brings its Python.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from hostwright.fleet import Fleet
from hostwright.standard.roles.driver.section import DriverSection
from lab.config import CHECKOUT, Distro
from lab.records import give_to_user
from lab.rootfs import VENDOR_MOUNT
from lab.vendor import driver, interpreter, real_cudnn, repackaged, wheels
from lab.vendor.model import VendorBuildError, VendorFile, read_manifest

EXTENDS = "tensorflow-2.9"
#: distribution → the end of the name of its own lab stack; the others have `lab`, which fits them or refuses them
VARIANTS = {"bookworm": "debian12"}
#: what a stack with NVIDIA's own driver or cuDNN has beside its artifact. No TensorFlow of the lab's is tested with
#: this cuDNN. A module that has Debian's headers builds, whatever kernel the machine runs; see the base stack's rule.
_REAL: dict[str, dict[str, Any]] = {
    "driver": {"description": "the lab's stack with NVIDIA's own driver from Debian's non-free archive"},
    "cudnn": {
        "description": f"the lab's stack with NVIDIA's own cuDNN {real_cudnn.VERSION}, without TensorFlow",
        "roles": ["base", "driver", "cuda", "cudnn", "environment"],
        "tensorflow": None,
        "cudnn": {"version": real_cudnn.VERSION, "inside": real_cudnn.INSIDE, "libraries": "lib"},
    },
}
#: the stack of roles that are off unless a host's inventory names them, and its artifacts
WITH_OPTIONAL = f"{EXTENDS}-nccl-tensorrt"
OPTIONAL = ("nccl", "nccl-dev", "tensorrt", "nvrtc-11.1")
_HEADER = "# Written by `lab up` from the vendor files in the lab's cache; not for editing.\n"
#: the stack of Debian 13 with its own driver, and that of the PyTorch whose CUDA this driver runs, with its base
OF_DEBIAN, TORCH, BEFORE_TORCH = "debian-13-r550", "pytorch-2.10", "pytorch-2.14"
#: R535 of Debian 12's security archive, which has no open module: how its set differs from that of `OF_DEBIAN`
_R535, _SUPPORT = "535.309.01-0+deb12u1", "20220217+3~deb12u1"
_R535_PACKAGES = {
    **dict.fromkeys(
        ("firmware-nvidia-gsp", "libcuda1", "libnvidia-cfg1", "libnvidia-ml1", "libnvidia-pkcs11-openssl3",
         "libnvidia-ptxjitcompiler1", "nvidia-alternative", "nvidia-kernel-dkms", "nvidia-kernel-support",
         "nvidia-legacy-check", "nvidia-modprobe", "nvidia-smi"), _R535,
    ),
    **dict.fromkeys(("nvidia-installer-cleanup", "nvidia-kernel-common", "nvidia-support"), _SUPPORT),
    **dict.fromkeys(("nvidia-open-kernel-dkms", "nvidia-open-kernel-support")),
    "nvidia-persistenced": "535.171.04-1~deb12u1",
}  # fmt: skip
KEY = "container-toolkit-key"
#: artifacts of the base stack for which the lab has its own file
_NEEDED = ("driver", "fabric-manager", "cuda-repository", "cuda-pin", "cudnn", KEY)


def write(vendor: Path, dest: Path) -> Path:
    """Write the stack of the vendor files in `vendor` to `dest` and return it, and those to upgrade to beside it."""
    profile, files = read_manifest(vendor)
    _write(dest, compose(files, vendor, profile.value))
    for name, values in variants(files, vendor, dest.stem).items():
        _write(dest.with_name(f"{name}.yml"), values)
        give_to_user(dest.with_name(f"{name}.yml"))
    return dest


def _write(dest: Path, values: dict[str, Any]) -> None:
    """Rewrite a stack file if it changes, in one rename."""
    text = _HEADER + yaml.safe_dump(values, sort_keys=False, width=120)
    if not dest.is_file() or dest.read_text() != text:
        dest.parent.mkdir(parents=True, exist_ok=True)
        temporary = dest.with_name(dest.name + ".new")
        temporary.write_text(text)
        temporary.replace(dest)


def compose(files: Iterable[VendorFile], vendor: Path, profile: str) -> dict[str, Any]:
    """Return the stack as plain values. Raises `VendorBuildError` if the manifest lacks a required file."""
    by_artifact: dict[str, VendorFile] = {}
    for file in files:
        by_artifact.setdefault(file.artifact, file)  # if there are several versions, the first is the stack's
    missing = [name for name in _NEEDED if name not in by_artifact]
    if missing:
        raise VendorBuildError(f"the vendor files in {vendor} lack {', '.join(missing)}; build them again")
    toolkit = by_artifact["container-toolkit"]
    return {
        "extends": EXTENDS,
        "description": f"the {profile} lab: {EXTENDS} with stand-ins for what no public index carries",
        # The lab's module does next to nothing and builds on any kernel; the rule for the real one is the base stack's.
        "driver": {"kernels": ">=3.10"},
        "cuda": {"repository": {"fingerprint": by_artifact["cuda-repository"].fingerprint}},
        "tensorflow": {"wheelhouses": {name.removeprefix("wheelhouse-"): name for name in _wheelhouses(by_artifact)}},
        "container": {
            "toolkit": {
                "repository": {
                    "uri": f"file:{VENDOR_MOUNT}/nvidia-container-toolkit",
                    "fingerprint": toolkit.fingerprint,
                }
            }
        },
        "artifacts": {
            name: _artifact(file, vendor)
            for name, file in sorted(by_artifact.items())
            if not (file.is_directory or name in OPTIONAL)
        },
    }


def variants(files: Iterable[VendorFile], vendor: Path, base: str) -> dict[str, dict[str, Any]]:
    """Return the other stacks beside the stack `base`, by name; only those whose files exist here."""
    by_artifact = {file.artifact: file for file in files}
    found: dict[str, dict[str, Any]] = {}
    runfile, manager = (by_artifact.get(f"{name}-{driver.UPGRADE}") for name in ("driver", "fabric-manager"))
    if runfile and manager:
        found[f"{base}-{driver.UPGRADE.rpartition('.')[0]}"] = {
            "extends": base,
            "description": f"{base} with the driver {driver.UPGRADE}",
            "driver": {"version": driver.UPGRADE, "fabric_manager": {"version": f"{driver.UPGRADE}-1"}},
            "artifacts": {"driver": _artifact(runfile, vendor), "fabric-manager": _artifact(manager, vendor)},
        }
    version = wheels.UPGRADE.version
    if wheels.UPGRADE.artifact in by_artifact:
        found[f"{base}-{version}"] = {
            "extends": base,
            "description": f"{base} with TensorFlow {version}",
            "tensorflow": {
                "version": version,
                "constraints": _constraints(f"tensorflow-{version}"),
                "wheelhouses": {wheels.PYTHON: wheels.UPGRADE.artifact},
            },
        }
    if all(name in by_artifact for name in OPTIONAL):
        chosen = yaml.safe_load((CHECKOUT / "inventory/stacks" / f"{WITH_OPTIONAL}.yml").read_text())
        found[f"{base}-{WITH_OPTIONAL.removeprefix(f'{EXTENDS}-')}"] = {
            "extends": base,
            "description": f"{base}, with what the roles nccl and tensorrt need",
            **{name: chosen[name] for name in ("nccl", "tensorrt")},
            "artifacts": {name: _artifact(by_artifact[name], vendor) for name in OPTIONAL},
        }
    python = by_artifact.get(interpreter.ARTIFACT)
    if python and runfile and manager:
        found[f"{base}-{VARIANTS['bookworm']}"] = {
            "extends": f"{base}-{driver.UPGRADE.rpartition('.')[0]}",
            "description": f"{base} for Debian 12: driver {driver.UPGRADE}, and Python {python.version} of its own",
            "distributions": {"debian": ["12"]},
            "cuda": {"compiler": "g++-10"},
            "tensorflow": {"interpreter": {"python": interpreter.SERIES, "artifact": python.artifact}},
        }
    return found


def write_real(file: VendorFile, out: Path, base: Path) -> None:
    """Write the stacks with NVIDIA's own driver or cuDNN (`file`, in `out`) beside the lab's stack file `base`."""
    for name, below in real_bases(base.stem, file.artifact).items():
        if base.with_name(f"{below}.yml").is_file():
            dest = base.with_name(f"{name}.yml")
            _write(dest, {"extends": below, **_REAL[file.artifact], "artifacts": {file.artifact: _artifact(file, out)}})
            give_to_user(dest)


def write_of_debian(base: Path, distro: Distro) -> None:
    """Write the stack of a host with Debian's own driver beside the lab's stack `base`.

    Debian 13's has PyTorch's wheels. The container toolkit is that of `base`: no public index has a file of it."""
    lab = yaml.safe_load(base.read_text())
    values = {
        "extends": OF_DEBIAN,
        "include": ["parts/container.yml"],
        "container": lab["container"],
        "driver": {"kernels": ">=3.10"},  # as above: what has Debian's headers builds, or its compiler says why not
        "artifacts": {KEY: lab["artifacts"][KEY]},
        **(_with_r535() if distro == "bookworm" else _with_torch()),
    }
    variant = f"-{VARIANTS[distro]}" if distro in VARIANTS else ""
    dest = base.with_name(f"{base.stem}{variant}-real-packages.yml")
    _write(dest, values)
    give_to_user(dest)


def of_today() -> dict[str, str]:
    """Return the stacks for Debian whose driver is the `.run` of a branch that no public index carries: name → driver.

    Without those that need the proprietary module.
    """
    found = {}
    for listed in Fleet.load(CHECKOUT / "inventory").stacks():
        if listed.standard and listed.stack and listed.stack.distributions.get("debian"):
            section = listed.stack.section(DriverSection)
            if section.artifact and section.module == "auto" and int(section.branch) >= repackaged.FIRST:
                found[listed.name] = section.version
    return found


def write_repackaged(base: Path, key: VendorFile, out: Path) -> None:
    """Write each stack of today beside the lab's stack `base`, with its driver from the repository whose key is `key`,
    in `out`: Debian's files under the driver's version."""
    lab = yaml.safe_load(base.read_text())
    for name, version in of_today().items():
        values = {
            "extends": name,
            "description": f"{name} with the driver {version} from packages ({key.note})",
            "container": lab["container"],
            "driver": {
                "artifact": None,
                "fabric_manager": None,
                "source": "packages",
                "kernels": ">=3.10",
                "packages": repackaged.names(version),
                "repository": {
                    "name": "nvidia-driver",
                    "uri": f"file:{VENDOR_MOUNT}/{Path(repackaged.DIRECTORY).name}",
                    "key": key.artifact,
                    "fingerprint": key.fingerprint,
                },
            },
            "artifacts": {
                KEY: lab["artifacts"][KEY],
                key.artifact: {**_artifact(key, out), "stand_in": key.note},
            },
        }
        dest = base.with_name(f"{base.stem}-repackaged-{name}.yml")
        _write(dest, values)
        give_to_user(dest)


def packages_of_debian() -> tuple[str, ...]:
    """Return the set of packages of `OF_DEBIAN`, as ``name=version``."""
    section = yaml.safe_load((CHECKOUT / "inventory/stacks" / f"{OF_DEBIAN}.yml").read_text())["driver"]
    return tuple(f"{name}={version}" for name, version in section["packages"].items())


def _with_torch() -> dict[str, Any]:
    folder = CHECKOUT / "inventory/stacks"
    torch, shared = (yaml.safe_load((folder / f"{name}.yml").read_text())["pytorch"] for name in (TORCH, BEFORE_TORCH))
    return {
        "description": f"{OF_DEBIAN} with the wheels of {TORCH}, for the kernel that the lab's headers lead to",
        "roles": ["base", "driver", "pytorch", "container"],
        "pytorch": {**shared, **torch, "constraints": _constraints(TORCH, "pytorch")},
    }


def _with_r535() -> dict[str, Any]:
    version = _R535.partition("-")[0]
    return {
        "description": f"NVIDIA driver {version} with its proprietary module from Debian 12's own archive",
        "roles": ["base", "driver", "container"],
        "distributions": {"debian": ["12"]},
        "driver": {"version": version, "module": "proprietary", "kernels": ">=3.10", "packages": _R535_PACKAGES},
    }


def real_bases(base: str, what: str) -> dict[str, str]:
    """Return the stack with the real driver or cuDNN (`what`) for each distribution → the stack that it extends."""
    upgrade = f"{base}-{driver.UPGRADE.rpartition('.')[0]}"
    bases = {base: upgrade if what == "driver" else base}
    bases |= {f"{base}-{variant}": f"{base}-{variant}" for variant in VARIANTS.values()}
    return {f"{name}-real-{what}": below for name, below in bases.items()}


def _constraints(stack: str, role: str = "tensorflow") -> dict[str, str]:
    """Return the files that the project's own stack file names, as paths valid wherever the lab's stack file is."""
    folder = CHECKOUT / "inventory" / "stacks"
    named = yaml.safe_load((folder / f"{stack}.yml").read_text())[role]["constraints"]
    return {python: str(folder / name) for python, name in named.items()}


def _wheelhouses(artifacts: Iterable[str]) -> list[str]:
    return sorted(name for name in artifacts if name.startswith("wheelhouse-"))


def _artifact(file: VendorFile, vendor: Path) -> dict[str, Any]:
    return {
        "file": Path(file.name).name,
        "urls": [(vendor / file.name).absolute().as_uri()],
        "sha256": file.sha256,
        "size": file.size,
        "stand_in": file.stand_in,
    }

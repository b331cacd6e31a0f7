"""Outputs of apt on a host: simulated upgrades, and apt's policy for driver packages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hostwright.roles import RoleContext, sh_file, whole
from hostwright.standard.roles.driver.section import DriverSection

OTHER_DRIVERS = (
    "nvidia-driver", "nvidia-driver-470", "nvidia-kernel-dkms", "nvidia-dkms-470", "libcuda1", "libnvidia-ml1",
    "libnvidia-compute-470", "cuda-drivers", "nvidia-smi", "nvidia-utils-470",
)  # fmt: skip
UPGRADE, DIST_UPGRADE, POLICY = "upgrade", "dist-upgrade", "policy"
_MARK = "== hostwright "


@dataclass(frozen=True, slots=True)
class AptAnswer:
    """Output, error output and exit status of one apt command."""

    rc: int
    stdout: str
    stderr: str


def apt_answers(root_once: Callable[[str], Any], context: RoleContext) -> Mapping[str, AptAnswer]:
    """Return apt's outputs on a host: simulated ``dist-upgrade`` and ``upgrade``, and ``policy`` for driver packages.

    ``upgrade`` requires driver packages in the stack. Raises ``AssertionError`` if apt did not run.
    """
    driver = context.find(DriverSection)
    packages = tuple(driver.packages) if driver else ()
    names = dict.fromkeys((*OTHER_DRIVERS, *packages))
    verbs = (DIST_UPGRADE, *([UPGRADE] if packages else []))
    done = root_once(sh_file(__file__, "apt_answers.sh", verbs=" ".join(verbs), names=" ".join(names)))
    found = dict(_answers(done.stdout))
    missing = [name for name in (*verbs, POLICY) if name not in found]
    assert not missing, f"apt did not run: {done.stderr.strip()}"  # noqa: S101 - the outcome of a check
    return found


def _answers(printed: str) -> Iterator[tuple[str, AptAnswer]]:
    parts = [part.partition("\n")[::2] for part in printed.split(_MARK)[1:]]
    for (name, out), (status, errors) in zip(parts[::2], parts[1::2], strict=False):
        if (rc := whole(status)) is not None:
            yield name, AptAnswer(rc, out.removesuffix("\n"), errors)

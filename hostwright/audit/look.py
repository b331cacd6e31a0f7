"""One host as one look saw it: what readings and the rules of known failures are functions of. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from hostwright.audit.hardware.gpu import GpuReport
from hostwright.hardware.kernellog import KERNEL_LOG, KernelLine, kernel_lines
from hostwright.hardware.nvsmi import NVIDIA_SMI, NVLINKS, read_report
from hostwright.plan.hostfacts import read_host
from hostwright.plan.model import Answer, Facts, Planned, Probe
from hostwright.plan.planning import Desired
from hostwright.resources.packages.packages import DPKG, Installed, dpkg_table
from hostwright.resources.runfile import DriverState, NvidiaRunfile
from hostwright.stack.rules import HostFacts
from hostwright.stack.stack import Stack

#: what every look of an audit asks beside the questions of roles, readings and rules
LOOK_PROBES = (NVIDIA_SMI, NVLINKS, KERNEL_LOG)


class Unread(Exception):
    """A check cannot be made: what it needs was not answered. This is never the host's fault to be reported."""


@dataclass(frozen=True)
class Look:
    """The facts of one host with all that was wanted of it. ``now`` is when it was looked at (UTC).

    ``changes`` are what differs, by role, as ``invoke plan`` would show it. ``variables`` are the roles' bound
    variables. Facts may be incomplete (an audit without sudo, an old look): ask with ``answer``.
    """

    desired: Desired
    variables: Mapping[str, Any]
    facts: Facts
    changes: Mapping[str, tuple[Planned, ...]]
    now: datetime

    @property
    def host(self) -> str:
        """The host's name."""
        return self.desired.host

    @property
    def stack(self) -> Stack:
        """What the host shall have."""
        return self.desired.stack

    def answer(self, probe: Probe) -> Answer:
        """What the host said to a question, whatever its status. Raises ``Unread`` when it was not asked."""
        if probe not in self.facts:
            raise Unread("it was not asked (no sudo, or an older look)")
        return self.facts[probe]

    def text(self, probe: Probe) -> str:
        """What the host said to a question. Raises ``Unread`` when it was not asked or the question failed."""
        answer = self.answer(probe)
        if not answer.ok:
            raise Unread(f"the question ended with status {answer.status}")
        return answer.text

    def differs(self, role: str) -> bool:
        """Whether a layer is not as desired: then the logs of its installers are evidence, else they are history."""
        return bool(self.changes.get(role))

    @cached_property
    def packages(self) -> Mapping[str, Installed]:
        """dpkg's database by package name. Raises ``Unread``."""
        self.answer(DPKG)
        return dpkg_table(self.facts)

    @cached_property
    def driver(self) -> DriverState:
        """The state of the driver. Raises ``Unread``."""
        runfiles = (one for role in self.desired.roles for one in role.resources if isinstance(one, NvidiaRunfile))
        wanted = next(runfiles, None)
        if wanted is None:
            raise Unread("the role driver is not looked at")
        return DriverState.read(self.text(wanted.state_probe))

    @cached_property
    def facts_of_host(self) -> HostFacts:
        """Distribution, kernel, cards on the PCI bus, processor, Pythons."""
        return read_host(self.facts)

    @cached_property
    def smi(self) -> GpuReport:
        """nvidia-smi's report. Raises ``Unread`` when it did not answer, or with what is no report."""
        answer = self.answer(NVIDIA_SMI)
        if not answer.ok:
            raise Unread(f"nvidia-smi ended with status {answer.status}")
        links = self.facts[NVLINKS].text if NVLINKS in self.facts and self.facts[NVLINKS].ok else ""
        try:
            return read_report(answer.text, links)
        except ValueError as error:
            raise Unread(f"nvidia-smi's report cannot be read: {error}") from error

    @cached_property
    def kernel_log(self) -> tuple[KernelLine, ...]:
        """What the kernel said of GPUs in the last days. Raises ``Unread``."""
        return kernel_lines(self.text(KERNEL_LOG), self.now)

"""What an output means: messages that installers, apt, pip and docker are known to fail with, their cause, their cure.

Rules are data and are tried in order: what names the cause stands before what the tool around it says (a compiler's
message in DKMS's make.log before "Failed to install the kernel module through DKMS"). To add one, add a row to one of
the files beside this one and, in the tests, a sample of its message.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from hostwright.audit.failures.rule import FailureRule, Sign
from hostwright.failures.containers import CONTAINERS
from hostwright.failures.cuda import CUDA
from hostwright.failures.cudnn import CUDNN
from hostwright.failures.driver import DRIVER
from hostwright.failures.health import HEALTH
from hostwright.failures.libraries import LIBRARIES
from hostwright.failures.links import LINKS
from hostwright.failures.loader import LOADER_RULES
from hostwright.failures.memory import MEMORY
from hostwright.failures.packages import DISK, PACKAGES
from hostwright.failures.python import PYTHON
from hostwright.failures.smi import SMI
from hostwright.failures.variables import VARIABLES_RULES
from hostwright.failures.xids import XIDS

__all__ = ["RULES", "SIGNED", "Failure", "FailureRule", "Sign", "classify"]

RULES: tuple[FailureRule, ...] = (
    *DISK, *DRIVER, *PACKAGES, *CUDA, *CUDNN, *LOADER_RULES, *VARIABLES_RULES, *LIBRARIES, *PYTHON, *CONTAINERS,
    *XIDS, *SMI, *MEMORY, *HEALTH, *LINKS,
)  # fmt: skip

#: those that can be recognised on a host
SIGNED: tuple[FailureRule, ...] = tuple(rule for rule in RULES if rule.sign)


@dataclass(frozen=True, slots=True)
class Failure:
    """A rule that an output matches, and the line that says so."""

    rule: FailureRule
    evidence: str

    @property
    def cause(self) -> str:
        """What went wrong, as a sentence without its full stop."""
        return self.rule.cause

    @property
    def cure(self) -> str:
        """What to do now, as a sentence without its full stop."""
        return self.rule.cure


def classify(output: str) -> Failure | None:
    """The first rule that ``output`` matches, or ``None`` for a failure that nobody has met yet."""
    for rule in RULES:
        match = _compiled(rule.pattern).search(output) if rule.pattern else None
        if match:
            start = output.rfind("\n", 0, match.start()) + 1
            end = output.find("\n", match.end())
            return Failure(rule, output[start : end if end >= 0 else len(output)].strip())
    return None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.MULTILINE)

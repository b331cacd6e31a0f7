"""Failures of the NVIDIA driver, its installer, its kernel module and its daemons."""

from __future__ import annotations

from hostwright.standard.roles.driver.failures.build import BUILD_RULES
from hostwright.standard.roles.driver.failures.cards.health import HEALTH
from hostwright.standard.roles.driver.failures.cards.links import LINKS
from hostwright.standard.roles.driver.failures.cards.memory import MEMORY
from hostwright.standard.roles.driver.failures.cards.smi import SMI
from hostwright.standard.roles.driver.failures.cards.unexplained import unexplained
from hostwright.standard.roles.driver.failures.cards.xids import XIDS
from hostwright.standard.roles.driver.failures.install import INSTALL_RULES
from hostwright.standard.roles.driver.failures.kernel import KERNEL_RULES
from hostwright.standard.roles.driver.failures.load import LOAD_RULES
from hostwright.standard.roles.driver.failures.messages import MESSAGES
from hostwright.standard.roles.driver.failures.units import UNIT_RULES

#: rules of all modules, causes before consequences
_KNOWN = (
    *MESSAGES, *BUILD_RULES, *LOAD_RULES, *INSTALL_RULES, *KERNEL_RULES, *UNIT_RULES,
    *MEMORY, *XIDS, *SMI, *HEALTH, *LINKS,
)  # fmt: skip
FAILURES = (*_KNOWN, unexplained(_KNOWN))

COMMANDS = ("dkms",)  #: command names that stay lowercase at the start of a sentence

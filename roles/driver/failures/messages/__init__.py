"""Failures reported in messages of the driver's installer, its module, a compiler or Fabric Manager."""

from __future__ import annotations

from hostwright.standard.roles.driver.failures.messages.bus import BUS
from hostwright.standard.roles.driver.failures.messages.installing import INSTALLING
from hostwright.standard.roles.driver.failures.messages.links import FABRIC_LINKS
from hostwright.standard.roles.driver.failures.messages.modules import DISABLED, MODULES, PEERMEM
from hostwright.standard.roles.driver.failures.messages.power import POWER
from hostwright.standard.roles.driver.failures.messages.running import RUNNING

#: rules in order of precedence, more precise rules first
MESSAGES = (*PEERMEM, *DISABLED, *INSTALLING, *MODULES, *BUS, *POWER, *RUNNING, *FABRIC_LINKS)

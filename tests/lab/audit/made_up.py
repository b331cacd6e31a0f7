"""Faults that no lab host can have: faulty cards, full disks, old processors.

Each case replaces answers in the facts of a real, clean lab host, and names exactly the failures that must be reported.
"""

from __future__ import annotations

from tests.lab.audit.made_up_cards import CARDS
from tests.lab.audit.made_up_case import MadeUp, made_up
from tests.lab.audit.made_up_driver import DRIVER
from tests.lab.audit.made_up_host import HOST
from tests.lab.audit.made_up_kernel import KERNEL
from tests.lab.audit.made_up_links import LINKS
from tests.lab.audit.made_up_well import WELL
from tests.lab.audit.made_up_xids import XIDS
from tests.unit.support.ofroles import of_roles

__all__ = ["MADE_UP", "MadeUp", "made_up"]

_OF_ROLES = [case for module in of_roles("made_up") for case in module.MADE_UP]
MADE_UP: tuple[MadeUp, ...] = (*CARDS, *XIDS, *LINKS, *DRIVER, *KERNEL, *HOST, *WELL, *_OF_ROLES)

"""Where the checkout lies whose tests these are."""

from __future__ import annotations

from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
INVENTORY = PROJECT / "inventory"  #: of the sample site that the repository is
#: ``Path.match`` finds the programs that run on a host, with the Python and the packages there
SENT_TO_HOSTS = "programs/*.py"

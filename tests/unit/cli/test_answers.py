"""What would be lost for good is refused unless the operator agreed."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest

from hostwright.apply.host.outcome import Settings
from hostwright.common.errors import Unanswered
from hostwright.plan.host.release import Run
from hostwright.plan.model import Change, Plan, RolePlan, Step


class Terminal(io.StringIO):
    """Somebody sits at it."""

    def isatty(self) -> bool:
        return True


def test_a_host_is_not_touched_unless_the_operator_agreed() -> None:
    change = Change("NVIDIA driver", "460.32.03", "470.182.03", (Step("true"),), final="the driver 460.32.03")
    plan = Plan("gpu02", "house", (RolePlan("driver", (), (change,)),))
    settings = Settings(run=Run("run"), emit=lambda _: None, locate=lambda _: Path())
    with pytest.raises(Unanswered, match="would be lost, and nothing brings that back"):
        settings.agree(plan)
    replace(settings, yes=True).agree(plan)
    settings.agree(Plan("gpu02", "house"))

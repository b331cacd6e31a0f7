"""What would be lost for good is refused unless the operator agreed."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest

from hostwright.apply.host.outcome import Settings
from hostwright.common.errors import Unanswered
from hostwright.plan.host.release import RunStamp


class Terminal(io.StringIO):
    """Somebody sits at it."""

    def isatty(self) -> bool:
        return True


def test_a_host_is_not_touched_unless_the_operator_agreed() -> None:
    settings = Settings(run=RunStamp("run"), emit=lambda _: None, locate=lambda _: Path())
    with pytest.raises(Unanswered, match="would be lost, and nothing brings that back"):
        settings.agree("gpu02", ("the driver 460.32.03",))
    replace(settings, yes=True).agree("gpu02", ("the driver 460.32.03",))
    settings.agree("gpu02", ())

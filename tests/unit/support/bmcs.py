"""Opens a BMC without waiting."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from hostwright.common.durations import Clock
from hostwright.common.secret import Secret
from hostwright.rebuild.bmc import Bmc, BmcError, Controller, open_bmc
from tests.unit.support import redfish
from tests.unit.support.redfish import PASSWORD, Machine


class Time:
    """A clock whose sleep returns at once; ``then`` is called instead of sleeping."""

    def __init__(self, then: Callable[[], None] = lambda: None):
        self.now_s = 0.0
        self._then = then

    def clock(self) -> Clock:
        return Clock(lambda: self.now_s, self._sleep)

    def _sleep(self, seconds: float) -> None:
        self.now_s += seconds
        self._then()


@contextmanager
def opened(machine: Machine, then: Callable[[], None] = lambda: None, **settings: Any) -> Iterator[Controller]:
    with (
        redfish.redfish(machine) as url,
        open_bmc(replace(bmc(url), **settings), Time(then).clock()) as controller,
    ):
        yield controller


def bmc(url: str, **settings: Any) -> Bmc:
    return replace(Bmc("gpu07", url, redfish.USER, Secret(PASSWORD)), **settings)


def failure(machine: Machine, **settings: Any) -> BmcError:
    """The exception raised by opening this machine's BMC and requesting its status."""
    with pytest.raises(BmcError) as caught, opened(machine, **settings) as controller:
        controller.status()
    return caught.value

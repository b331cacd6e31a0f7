"""Fixtures: a fleet whose hosts each test module defines (``HOSTS``), with a state directory of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hostwright.fleet import Fleet


@pytest.fixture
def fleet(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    monkeypatch.setenv("HOSTWRIGHT_STATE", str(tmp_path / "state"))
    (tmp_path / "hosts.yml").write_text(json.dumps({"all": {"hosts": {name: {} for name in request.module.HOSTS}}}))
    return Fleet.load(tmp_path)

"""The real apt, for those who install."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.support.aptroot import AptRoot


@pytest.fixture
def apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AptRoot:
    """apt on a root of its own, reached without a proxy."""
    apt = AptRoot(tmp_path)
    monkeypatch.setenv("APT_CONFIG", str(apt.config))
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    return apt

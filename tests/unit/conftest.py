"""How properties are searched: as long as it takes. A machine under load is slow, and that is nobody's failure. And
where jobs work: never in this machine's own directories."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from hostwright.plan.host import jobs

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


@pytest.fixture(autouse=True, scope="session")
def work_dirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory below which jobs get their own."""
    place = tmp_path_factory.mktemp("work") / "hostwright" / "work"
    jobs.WORK_DIRS = (str(place),)  # type: ignore[assignment]
    return place

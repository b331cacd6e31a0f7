"""Verify: look again (the plan must be empty), then the testinfra checks of each layer, host by host, side by side."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from hostwright.common.errors import HostError
from hostwright.common.secret import Secret
from hostwright.plan.member import Member, Roster
from hostwright.plan.model import Plan
from hostwright.plan.role import Role
from hostwright.plan.site import STANDARD, Site

CHECKS = STANDARD / "checks"
CHECKS_TIMEOUT_S = 1800.0  #: all checks of one host


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a layer: what it says, whether it holds, and if not, why."""

    role: str
    check: str
    sentence: str
    passed: bool
    duration_s: float
    why: str


_CHECK = TypeAdapter(Check)


@dataclass(frozen=True, slots=True)
class Verdict:
    """One host verified: what differs from the stack, and every check."""

    host: str
    plan: Plan
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing differs and every check holds."""
        return self.plan.empty and all(check.passed for check in self.checks)

    @property
    def failed_roles(self) -> tuple[str, ...]:
        """The layers in which something is wrong, by plan or by check."""
        roles = [role.role for role in self.plan.roles] + [check.role for check in self.checks if not check.passed]
        return tuple(dict.fromkeys(roles))


def files_of(role: Role, site: Site) -> list[Path]:
    """The checks of a role: the standard ones, where it is or extends a standard role, then those of the site."""
    name = f"test_{role.name}.py"
    places = [*([CHECKS / name] if role.standard else []), site.checks / name]
    return list(dict.fromkeys(path.resolve() for path in places if path.exists()))


def check_layers(member: Member, roster: Roster, password: Secret | None) -> tuple[Check, ...]:
    """Run the checks of a host's roles in a pytest of their own and return what became of each."""
    files = [path for role in member.roles for path in files_of(role, roster.site)]
    with tempfile.TemporaryDirectory(prefix="hostwright-verify-") as folder:
        results = Path(folder) / "results.jsonl"
        command = [sys.executable, "-m", "pytest", *map(str, files), "-p", "hostwright.verify.layer_checks", "-q"]
        command += ["--rootdir", str(CHECKS), "-c", str(CHECKS / "pytest.ini"), "-p", "no:cacheprovider"]
        command += ["--tb=short", "--import-mode=importlib", "--hw-site", str(roster.site.root)]
        command += ["--hw-host", member.host.name, "--hw-inventory", str(roster.path), "--hw-results", str(results)]
        command += [word for key, value in roster.settings.items() for word in ("--hw-set", f"{key}={value}")]
        done = _run(command, password)
        checks = (
            tuple(_CHECK.validate_python(json.loads(line)) for line in results.read_bytes().splitlines())
            if results.exists()
            else ()
        )
    if done.returncode not in {0, 1} or not checks:
        said = "\n".join((done.stdout + done.stderr).strip().splitlines()[-15:])
        raise HostError(member.host.name, f"the checks of its layers could not be run:\n{said}")
    return checks


def _run(command: list[str], password: Secret | None) -> subprocess.CompletedProcess[str]:
    """Run pytest; the password, if any, waits in a pipe whose reading end the process inherits."""
    environment = {**os.environ, "PYTHONPATH": str(STANDARD.parent.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    if password is None:
        return subprocess.run(
            command, capture_output=True, text=True, timeout=CHECKS_TIMEOUT_S, check=False, env=environment
        )
    reading, writing = os.pipe()
    try:
        with os.fdopen(writing, "w", encoding="utf-8") as pipe:
            pipe.write(password.reveal())
        return subprocess.run(
            [*command, "--hw-password-fd", str(reading)],
            capture_output=True,
            text=True,
            timeout=CHECKS_TIMEOUT_S,
            check=False,
            pass_fds=(reading,),
            env=environment,
        )
    finally:
        os.close(reading)

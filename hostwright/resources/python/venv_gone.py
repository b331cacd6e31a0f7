"""Removal of a Python environment, with every venv that was built under its name."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hostwright.common.quoting import sh_file
from hostwright.plan.model import Change, Facts, Probe, RemovalState, Step
from hostwright.resources import originals
from hostwright.resources.files.aside import OLDEST_BACK
from hostwright.resources.files.paths import ABSENT, few
from hostwright.resources.python.users_files import USERS_FILES, put_aside

#: What the removal disturbs.
TAKES = "removes the environment that jobs run from"


@dataclass(frozen=True, slots=True)
class VenvGone(RemovalState):
    """No link of ours is at ``path``, and none of the venvs ``NAME-pyX.Y-KEY`` is below ``homes``.

    A link of others stays. Whatever was moved aside or kept for our link comes back. If a program runs from one of the
    venvs, the change disturbs it.
    """

    path: str  #: of the link that users use
    homes: str  #: the directory of all venvs
    name: str  #: the prefix of the names of this environment's venvs

    @property
    def _values(self) -> dict[str, str]:
        """The values of both scripts; ``stem`` is the common prefix of the venvs' directories."""
        stem = f"{self.homes}/{self.name}"
        return {"path": self.path, "homes": self.homes, "stem": stem, "kept": originals.kept(self.path)}

    def probes(self) -> tuple[Probe, ...]:
        places = "|".join((re.escape(self.path), re.escape(f"{self.homes}/{self.name}-py3.") + "[^/]*"))
        return (
            Probe(USERS_FILES + sh_file(__file__, "sh/venv_gone_probe.sh", **self._values, places=places), root=True),
        )

    def plan(self, facts: Facts) -> Change | None:
        rows = [line.partition("=")[::2] for line in facts[self.probes()[0]].text.splitlines()]
        kinds = {kind for kind, _ in rows}
        homes = [value for kind, value in rows if kind == "home"]
        if not (homes or {"ours", "empty", "aside"} & kinds):
            return None
        have = [*(["the link"] if "ours" in kinds else []), *homes]
        what = few(have or [f"{self.homes}, empty" if "empty" in kinds else "what was there, moved aside"])
        want = "as before: what was moved aside is back" if "aside" in kinds else ABSENT
        disturbs = TAKES if self.users(facts) and (homes or "ours" in kinds) else ""
        added: dict[str, list[str]] = {}
        for kind, value in rows:
            if kind == "added":
                home, _, path = value.partition("\t")
                added.setdefault(home, []).append(path)
        warnings = tuple(put_aside(home, paths) for home, paths in added.items())
        step = Step(self._script())
        return Change(f"venv {self.path}", what, want, (step,), disturbs=disturbs, warnings=warnings)

    def users(self, facts: Facts) -> tuple[str, ...]:
        """The programs that run from one of the venvs."""
        rows = (line.partition("=")[::2] for line in facts[self.probes()[0]].text.splitlines())
        return tuple(value for kind, value in rows if kind == "user")

    def _script(self) -> str:
        return USERS_FILES + OLDEST_BACK + originals.FORGET + sh_file(__file__, "sh/venv_gone.sh", **self._values)

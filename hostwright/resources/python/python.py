"""State of a venv with exactly the packages that a stack pins, and of the link to it.

The scripts of a venv contain its absolute path, so a venv is built at its final path,
``/opt/hostwright/venvs/NAME-pyX.Y-KEY``, where KEY is a hash of its recipe. Then the link is switched to the new venv.
The previous venv is kept for running jobs until the next switch.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from packaging.utils import canonicalize_name

from hostwright.common.errors import ArtifactError
from hostwright.common.quoting import sh, sh_file
from hostwright.common.text import count
from hostwright.plan.host.hostfacts import PYTHONS, pythons
from hostwright.plan.model import Change, Deferred, Facts, Planned, Probe, Refusal, RemovalState, Resource, Step
from hostwright.plan.roles.software import Software
from hostwright.resources import originals
from hostwright.resources.files.aside import OLDEST_BACK
from hostwright.resources.files.paths import ABSENT, MOVED_ASIDE, few, moved_aside
from hostwright.resources.originals import keep_original
from hostwright.resources.packages.packages import MIRROR_TRIES
from hostwright.resources.python.hashes import wheel_hashes
from hostwright.resources.python.interpreters import system_interpreter, why_not
from hostwright.resources.python.recipe import Recipe
from hostwright.resources.python.users_files import HOMES, MARKER, USERS_FILES, left_behind, put_aside
from hostwright.resources.python.venv_audit import (
    NO_PERL,
    Dist,
    FoundVenv,
    Venvs,
    audit_probe,
    find_drifts,
    parse_audit,
    same_version,
)
from hostwright.resources.python.venv_scripts import (
    CONSTRAINTS,
    create_script,
    install_script,
    mend_script,
    restore_script,
    write_constraints,
)
from hostwright.stack.stack import RoleFile

INDEX = "Python Package Index"
#: packages that ``python -m venv`` may install without a request
BUNDLED = {"pip", "setuptools", "pkg-resources"}
#: package that venvs before Debian 12 contain in addition to setuptools
PART_OF_SETUPTOOLS = "pkg-resources"


def venv_software(requirement: str, pins: Mapping[str, str], wheels: str, python: str, venv: FoundVenv) -> Software:
    """SBOM entry for a venv: the main package, with all other installed or pinned packages as parts."""
    hashes = wheel_hashes(wheels, python)
    found: dict[tuple[str, str], Software] = {}
    for dist in venv.dists:
        name = canonicalize_name(dist.name)
        package = _package(name, dist, pins.get(name, ""), hashes)
        found.setdefault((name, package.version), package)
    present = {name for name, _ in found}
    missing = [
        Software("pypi", name, "", version, brought=True) for name, version in pins.items() if name not in present
    ]
    packages = [found[key] for key in sorted(found)] + missing
    asked = canonicalize_name(requirement.partition("==")[0])
    main = next(package for package in packages if package.name == asked)
    return replace(main, parts=tuple(package for package in packages if package is not main))


def _package(name: str, dist: Dist, pin: str, hashes: Mapping[tuple[str, str], tuple[str, ...]]) -> Software:
    right = bool(pin) and same_version(dist.version, pin)
    known = hashes.get((name, pin), ()) if right else ()
    added = "" if pin or name in BUNDLED else "not of the stack"
    flaw = "" if name == PART_OF_SETUPTOOLS else dist.flaw.strip()
    return Software(
        "pypi", name, pin if right else dist.version, pin,
        flaw=flaw or added,
        sha256=() if dist.flaw else known,
        brought=True,
        supplier=INDEX if known else "",
    )  # fmt: skip


__all__ = ["Recipe", "Venv"]


def _step(script: str) -> Step:
    return Step(script, tries=MIRROR_TRIES if " pip install " in script else 1)


@dataclass(frozen=True, slots=True)
class Venv(Resource):
    r"""A link points to a venv with exactly the pinned packages, built from the first recipe whose Python the host has.

    A new venv is built beside the current venv. The current venv is kept for running jobs until the next switch of the
    link. Only packages that differ are reinstalled; a missing interpreter or pip is restored. Files that users added
    are kept. When the role is removed, the link and the venvs are removed, and the former file at ``path`` is restored.

    >>> recipe = Recipe("science", "3.9", "science==2.9", "numpy==1.26.4\n")
    >>> venv = Venv("/opt/science", (recipe,))
    >>> print(plan_text(venv, {"python3.14": "/usr/bin/python3.9 3.9\n"}))
    ~ venv /opt/science: absent → science==2.9 and 1 more pinned package, Python 3.9
    >>> print(plan_text(venv))
    ? venv /opt/science: no Python to build it with → Python 3.9  (known after python3)
    """

    path: str  #: path of the link to the venv. A file at this path is moved aside.
    recipes: tuple[Recipe, ...]  #: recipes in order of preference, at most one per Python version

    def probes(self) -> tuple[Probe, ...]:
        return (PYTHONS, audit_probe(self.path, tuple(recipe.home for recipe in self.recipes), CONSTRAINTS))

    def plan(self, facts: Facts) -> Planned | None:
        chosen = self._chosen(facts)
        if chosen is None:
            return self._without_python(facts)
        recipe, interpreter = chosen
        audit = facts[self.probes()[1]]
        if audit.status == NO_PERL:
            sentence = "perl, which compares the venv's files with pip's records, is missing; install "
            return Refusal(f"venv {self.path}", "no perl", "perl-base", "perl", f"{sentence}perl-base")
        venvs = parse_audit(audit.text)
        venv = venvs.homes.get(recipe.home)
        if venv is None or "site-packages" in venv.lost:
            return self._unlisted(recipe) or self._build(recipe, interpreter, venvs)
        due = self._due(recipe, interpreter, venv, venvs.link, venvs.instead)
        if not due:
            return None
        have, want = ("; ".join(difference[column] for difference in due) for column in (0, 1))
        steps = tuple(_step(script) for _, _, script in due)
        artifacts: tuple[str, ...] = ()
        if any(" pip install " in step.script for step in steps):
            if refusal := self._unlisted(recipe):
                return refusal
            drifts = find_drifts(recipe.pins, venv)
            artifacts = _files(recipe, *(drift.name for drift in drifts), *(["pip"] if venv.lost else []))
        warnings = self._warnings(recipe, venvs) if venvs.link != recipe.home else ()
        return Change(f"venv {self.path}", have, want, steps, artifacts=artifacts, warnings=warnings)

    def software(self, facts: Facts) -> tuple[Software, ...]:
        chosen = self._chosen(facts)
        recipe = chosen[0] if chosen else self.recipes[0]
        venvs = parse_audit(facts[self.probes()[1]].text)
        venv = venvs.homes.get(recipe.home) if venvs.link == recipe.home else None
        # pip may install wheels that are not listed if a package has no hashes
        wheels = recipe.listed if recipe.hashed() else ""
        return (venv_software(recipe.requirement, recipe.pins, wheels, recipe.python, venv or FoundVenv()),)

    def removal(self) -> tuple[Resource, ...]:
        return tuple(VenvGone(self.path, HOMES, name) for name in dict.fromkeys(recipe.name for recipe in self.recipes))

    def _chosen(self, facts: Facts) -> tuple[Recipe, str] | None:
        brought = next((recipe for recipe in self.recipes if recipe.interpreter), None)
        if brought:
            return brought, brought.interpreter
        system = system_interpreter(facts, tuple(recipe.python for recipe in self.recipes))
        return system and (next(recipe for recipe in self.recipes if recipe.python == system[0]), system[1])

    def _without_python(self, facts: Facts) -> Refusal | Deferred:
        wanted = tuple(recipe.python for recipe in self.recipes)
        theirs = next((path for version, path in pythons(facts).items() if version in wanted), "")
        have, want = theirs or "no Python to build it with", f"Python {' or '.join(wanted)}"
        if theirs:
            sentence = f"{why_not(facts, wanted)}; install one of Python {', '.join(wanted)} below /usr"
            return Refusal(f"venv {self.path}", have, want, "python-below-usr", sentence)
        return Deferred(f"venv {self.path}", have, want, "python3")

    def _build(self, recipe: Recipe, interpreter: str, venvs: Venvs) -> Change:
        scripts = (create_script(recipe, interpreter), install_script(recipe), self._finish_script(recipe))
        have = "without its packages" if recipe.home in venvs.homes else venvs.link or venvs.instead or ABSENT
        want = f"{recipe.requirement} and {count(len(recipe.pins) - 1, 'more pinned package')}, Python {recipe.python}"
        if wheels := recipe.from_mirror():
            want += f", from {count(len(wheels), 'wheel')} of the mirror, without an index"
        steps = tuple(map(_step, scripts))
        warnings = self._warnings(recipe, venvs)
        return Change(f"venv {self.path}", have, want, steps, artifacts=_files(recipe), warnings=warnings)

    def _unlisted(self, recipe: Recipe) -> Refusal | None:
        if not recipe.unlisted:
            return None
        want = f"{recipe.requirement} from the mirror"
        return Refusal(f"venv {self.path}", "wheels without a known hash", want, "wheel-hash", _no_wheel(recipe))

    def role_files(self) -> tuple[RoleFile, ...]:
        return tuple(wheel for recipe in self.recipes for wheel in recipe.from_mirror())

    def role_files_for(self, facts: Facts | None, /) -> tuple[RoleFile, ...]:
        recipes = tuple(recipe for recipe in self.recipes if recipe.mirrored)
        if recipes and facts is not None and PYTHONS in facts and pythons(facts):
            chosen = self._chosen(facts)
            recipes = (chosen[0],) if chosen else ()
        for recipe in recipes:
            if recipe.unlisted:
                raise ArtifactError(_no_wheel(recipe))
        return tuple(wheel for recipe in recipes for wheel in recipe.from_mirror())

    def _warnings(self, recipe: Recipe, venvs: Venvs) -> tuple[str, ...]:
        moved = [moved_aside(f"{venvs.instead} in its place", self.path)] if venvs.instead else []
        for home, paths in venvs.users_files.items():
            stays = home == venvs.link and home != recipe.home
            moved.append(left_behind(home, paths) if stays else put_aside(home, paths))
        return tuple(moved)

    def _due(
        self, recipe: Recipe, interpreter: str, venv: FoundVenv, link: str, instead: str
    ) -> list[tuple[str, str, str]]:
        """Return tuples of current state, wanted state, and the script that fixes the difference."""
        due = []
        if venv.lost:
            lost = " and ".join(venv.lost)
            due.append(
                (f"{lost} lost", f"{lost} of Python {recipe.python}", restore_script(recipe, interpreter, venv.lost))
            )
        elif venv.constraints != hashlib.sha256(recipe.plain.encode()).hexdigest():
            due.append((f"{CONSTRAINTS} edited", f"{CONSTRAINTS} as in the stack", write_constraints(recipe)))
        if drifts := find_drifts(recipe.pins, venv):
            want = few([f"{drift.name} {drift.version}" for drift in drifts])
            due.append((few([drift.have for drift in drifts]), want, mend_script(recipe, drifts)))
        if link != recipe.home:
            due.append(
                (
                    f"link to {link}" if link else instead or "no link",
                    f"link to {recipe.home}",
                    self._finish_script(recipe),
                )
            )
        return due

    def _finish_script(self, recipe: Recipe) -> str:
        """The script also removes older venvs of this name, except the previous one."""
        complete = sh("printf 'complete\\n' > %s", f"{recipe.home}/{MARKER}")
        turn = sh_file(__file__, "sh/venv_finished.sh", path=self.path, home=recipe.home, stem=f"{HOMES}/{recipe.name}")
        aside = sh(MOVED_ASIDE, *[self.path] * 4)
        return "\n".join([complete, keep_original(self.path), aside, USERS_FILES + turn])


def _files(recipe: Recipe, *names: str) -> tuple[str, ...]:
    return tuple(file.name for file in ([recipe.wheelhouse] if recipe.wheelhouse else recipe.from_mirror(*names)))


def _no_wheel(recipe: Recipe) -> str:
    return (
        f"the mirror has no wheel of {few(list(recipe.unlisted))} for Python {recipe.python}, which "
        f"{recipe.requirement} needs; add the wheel with its sha256 to the stack, or set wheels_from to index"
    )


TAKES = "removes the environment that jobs run from"


@dataclass(frozen=True, slots=True)
class VenvGone(RemovalState):
    """No link that Hostwright made is at ``path``, and no venv ``NAME-pyX.Y-KEY`` is below ``homes``.

    Another owner's link is kept, and a file that Hostwright's link replaced is restored. The change counts as
    disturbing if a program runs from one of the venvs.
    """

    path: str  #: path of the link to the venv
    homes: str  #: directory that contains all venvs
    name: str  #: prefix of the names of this environment's venvs

    @property
    def _values(self) -> dict[str, str]:
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
        what = few(have or [f"{self.homes}, empty" if "empty" in kinds else "former file, moved aside"])
        want = "as before: the former file" if "aside" in kinds else ABSENT
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
        rows = (line.partition("=")[::2] for line in facts[self.probes()[0]].text.splitlines())
        return tuple(value for kind, value in rows if kind == "user")

    def _script(self) -> str:
        return USERS_FILES + OLDEST_BACK + originals.FORGET + sh_file(__file__, "sh/venv_gone.sh", **self._values)

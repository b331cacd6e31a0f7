"""Python environments: a venv with exactly the packages that a stack pins.

A venv's scripts hold its absolute path, so it is built where it stays, ``/opt/hostwright/venvs/NAME-pyX.Y-KEY``, where
KEY names what it is built from, and the link that people use is switched to it at the end. Jobs that run from the one
before keep their files: that one is removed only by the next switch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from hostwright.common.quoting import sh, sh_file, words
from hostwright.common.text import count
from hostwright.plan.host.hostfacts import PYTHONS, pythons
from hostwright.plan.model import Change, Deferred, Facts, Planned, Probe, Refusal, Resource, Step
from hostwright.plan.roles.software import Software
from hostwright.plan.state_identity import NO_IDENTITY
from hostwright.resources.files.paths import ABSENT, MOVED_ASIDE, few, moved_aside, write_script
from hostwright.resources.originals import keep_original
from hostwright.resources.packages.packages import MIRROR_TRIES
from hostwright.resources.python.hashes import hashed
from hostwright.resources.python.interpreters import system_interpreter, why_not
from hostwright.resources.python.users_files import HOMES, MARKER, USERS_FILES, left_behind, put_aside
from hostwright.resources.python.venv_audit import (
    NO_PERL,
    Drift,
    FoundVenv,
    Venvs,
    audit_probe,
    find_drifts,
    parse_audit,
)
from hostwright.resources.python.venv_bill import venv_software
from hostwright.resources.python.venv_gone import VenvGone
from hostwright.stack.stack import Artifact
from hostwright.stack.store.hostcache import host_path

CONSTRAINTS = "constraints.txt"  #: in the venv, so that people can ``pip install -c`` what they add

#: Older ones do not know the wheel names of today (PEP 600: pip 20.3); 24.0 is the last for Python 3.7.
PIP_MINIMUM = (20, 3)
PIP_VERSION = "24.0"
PIP_HASHED = (
    f"pip=={PIP_VERSION} --hash=sha256:ba0d021a166865d2265246961bec0152ff124de910c5cc39f1156ce3fa7c69dc\n"  # its wheel
)
#: Wheels only: nothing that is fetched runs as root while it is installed. No cache: it would keep 600 MB for nothing.
#: pip compiles one file after another, and nothing else meanwhile: ``compile_script`` does that on several processors.
_PIP_FLAGS = "--disable-pip-version-check --no-input --progress-bar off --no-cache-dir --only-binary :all: --no-compile"
_COMPILERS = 8  #: our choice: what they compile is written to one disk
_DEEPEST = 50  #: directories into each other that are compiled; before Python 3.9 it would be 10


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a venv is built from. Where the wheels come from is no part of its key: the pins say what they are."""

    name: str  #: with which the names of its venvs begin: ``science-2.9``
    python: str  #: the version of Python: ``3.9``
    requirement: str  #: what is installed, with its version: ``science==2.9.0``
    constraints: str  #: the text of pip's constraints file; every pin in it is installed
    wheelhouse: Artifact | None = None  #: a tar of wheels; without it pip uses the host's own index
    interpreter: str = ""  #: the path of a Python that another state brings; without it the host's own is used
    wheels: str = field(
        default="", repr=False, metadata=NO_IDENTITY
    )  #: the hashes of wheels, as ``sha256sum`` writes them

    @property
    def home(self) -> str:
        """The directory of the venv."""
        brought = [self.interpreter] if self.interpreter else []
        text = "\0".join([self.python, self.requirement, self.constraints, *brought])
        return f"{HOMES}/{self.name}-py{self.python}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"

    @property
    def pins(self) -> dict[str, str]:
        """Canonical package name → version, for every ``==`` whose marker holds on this Python."""
        return dict(_pins(f"{self.constraints}\n{self.requirement}", self.python))

    def hashed(self, *names: str) -> str:
        """These pins, or all, with the hashes of their wheels for pip; empty where a wheel's is not known."""
        pins = self.pins
        return hashed(((name, pins[name]) for name in names or pins), self.wheels, self.python)


@lru_cache(maxsize=64)  # a fleet shares a handful of constraints, and to parse one takes a millisecond
def _pins(lines: str, python: str) -> Mapping[str, str]:
    where = {"python_version": python, "python_full_version": f"{python}.0"}
    pins: dict[str, str] = {}
    for line in lines.splitlines():
        try:
            row = Requirement(line.partition("#")[0])
        except InvalidRequirement:  # a comment, an option, or a mistake that pip will name
            continue
        exact = [part.version for part in row.specifier if part.operator == "=="]
        if exact and (row.marker is None or row.marker.evaluate(where)):
            pins[canonicalize_name(row.name)] = exact[0]
    return pins


def _step(script: str) -> Step:
    """A step; one that contacts a package index is tried again after a transient failure."""
    return Step(script, tries=MIRROR_TRIES if " pip install " in script else 1)


@dataclass(frozen=True, slots=True)
class Venv:
    r"""A link leads to a venv of the first of the recipes' Pythons that the host has, with exactly the pinned packages.

    The venv is built beside the one in use, and the link is switched to it at the end: jobs that run keep their files
    until the next switch. What is built is looked at without importing anything: each pin's version and each file's
    size are compared with what pip recorded. A package that differs is installed again, alone; a lost interpreter or
    pip is put back. What users added stays. When the role is removed, link and venvs go, and what was at ``path``
    before comes back.

    >>> from hostwright.plan.testing import plan_text
    >>> recipe = Recipe("science", "3.9", "science==2.9", "numpy==1.26.4\n")
    >>> venv = Venv("/opt/science", (recipe,))
    >>> print(plan_text(venv, {"python3.14": "/usr/bin/python3.9 3.9\n"}))
    ~ venv /opt/science: absent → science==2.9 and 1 more pinned package, Python 3.9
    >>> print(plan_text(venv))
    ? venv /opt/science: no Python to build it with → Python 3.9  (known after python3)
    """

    path: str  #: of the link that people use; something else in its place is moved aside
    recipes: tuple[Recipe, ...]  #: in order of preference, one a Python

    def probes(self) -> tuple[Probe, ...]:
        return (PYTHONS, audit_probe(self.path, tuple(recipe.home for recipe in self.recipes), CONSTRAINTS))

    def plan(self, facts: Facts) -> Planned | None:
        chosen = self._chosen(facts)
        if chosen is None:
            return self._without_python(facts)
        recipe, interpreter = chosen
        audit = facts[self.probes()[1]]
        if audit.status == NO_PERL:
            sentence = "its files cannot be compared with pip's records without perl, which every Debian has: install "
            return Refusal(f"venv {self.path}", "no perl", "perl-base", "perl", f"{sentence}perl-base")
        venvs = parse_audit(audit.text)
        venv = venvs.homes.get(recipe.home)
        if venv is None or "site-packages" in venv.lost:
            return self._build(recipe, interpreter, venvs)
        due = self._due(recipe, interpreter, venv, venvs.link, venvs.instead)
        if not due:
            return None
        have, want = ("; ".join(difference[column] for difference in due) for column in (0, 1))
        steps = tuple(_step(script) for _, _, script in due)
        artifacts = _files(recipe) if any(" pip install " in step.script for step in steps) else ()
        warnings = self._warnings(recipe, venvs) if venvs.link != recipe.home else ()
        return Change(f"venv {self.path}", have, want, steps, artifacts=artifacts, warnings=warnings)

    def software(self, facts: Facts) -> tuple[Software, ...]:
        chosen = self._chosen(facts)
        recipe = chosen[0] if chosen else self.recipes[0]
        venvs = parse_audit(facts[self.probes()[1]].text)
        venv = venvs.homes.get(recipe.home) if venvs.link == recipe.home else None
        wheels = recipe.wheels if recipe.hashed() else ""  # else pip takes what the index has
        return (venv_software(recipe.requirement, recipe.pins, wheels, recipe.python, venv or FoundVenv()),)

    def removal(self) -> tuple[Resource, ...]:
        return tuple(VenvGone(self.path, HOMES, name) for name in dict.fromkeys(recipe.name for recipe in self.recipes))

    def _chosen(self, facts: Facts) -> tuple[Recipe, str] | None:
        """The recipe and the interpreter's path: the first that is brought, else the first that the host has."""
        brought = next((recipe for recipe in self.recipes if recipe.interpreter), None)
        if brought:
            return brought, brought.interpreter
        system = system_interpreter(facts, tuple(recipe.python for recipe in self.recipes))
        return system and (next(recipe for recipe in self.recipes if recipe.python == system[0]), system[1])

    def _without_python(self, facts: Facts) -> Refusal | Deferred:
        """No Python yet, or only others (the rules refuse such a host), or only one that root must not run."""
        wanted = tuple(recipe.python for recipe in self.recipes)
        theirs = next((path for version, path in pythons(facts).items() if version in wanted), "")
        have, want = theirs or "no Python to build it with", f"Python {' or '.join(wanted)}"
        if theirs:
            sentence = f"{why_not(facts, wanted)}; install one of Python {', '.join(wanted)} for all users"
            return Refusal(f"venv {self.path}", have, want, "python-below-usr", sentence)
        return Deferred(f"venv {self.path}", have, want, "python3")

    def _build(self, recipe: Recipe, interpreter: str, venvs: Venvs) -> Change:
        scripts = (create_script(recipe, interpreter), install_script(recipe), self._finish_script(recipe))
        have = "without its packages" if recipe.home in venvs.homes else venvs.link or venvs.instead or ABSENT
        want = f"{recipe.requirement} and {count(len(recipe.pins) - 1, 'more pinned package')}, Python {recipe.python}"
        steps = tuple(map(_step, scripts))
        warnings = self._warnings(recipe, venvs)
        return Change(f"venv {self.path}", have, want, steps, artifacts=_files(recipe), warnings=warnings)

    def _warnings(self, recipe: Recipe, venvs: Venvs) -> tuple[str, ...]:
        """What a new link moves, leaves behind or removes that people put there."""
        moved = [moved_aside(f"{venvs.instead} in its place", self.path)] if venvs.instead else []
        for home, paths in venvs.users_files.items():
            stays = home == venvs.link and home != recipe.home
            moved.append(left_behind(home, paths) if stays else put_aside(home, paths))
        return tuple(moved)

    def _due(
        self, recipe: Recipe, interpreter: str, venv: FoundVenv, link: str, instead: str
    ) -> list[tuple[str, str, str]]:
        """What differs in a venv that exists: what it has, what it should have, and the script that repairs it."""
        due = []
        if venv.lost:
            lost = " and ".join(venv.lost)
            due.append(
                (f"{lost} lost", f"{lost} of Python {recipe.python}", restore_script(recipe, interpreter, venv.lost))
            )
        elif venv.constraints != hashlib.sha256(recipe.constraints.encode()).hexdigest():
            due.append((f"{CONSTRAINTS} edited", f"{CONSTRAINTS} as in the stack", _write_constraints(recipe)))
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
        """Mark the venv as complete, turn the link in one rename, remove all but this one and the one before."""
        complete = sh("printf 'complete\\n' > %s", f"{recipe.home}/{MARKER}")
        turn = sh_file(__file__, "sh/venv_finished.sh", path=self.path, home=recipe.home, stem=f"{HOMES}/{recipe.name}")
        aside = sh(MOVED_ASIDE, *[self.path] * 4)
        return "\n".join([complete, keep_original(self.path), aside, USERS_FILES + turn])


def create_script(recipe: Recipe, interpreter: str) -> str:
    """An empty venv with a pip that knows today's wheels, and the constraints file in it."""
    return "\n".join(
        [
            "umask 022",  # root's own may keep everybody else out of the venv
            sh("mkdir -p -- %s", HOMES),
            *_must_run(recipe, interpreter),
            USERS_FILES + sh("if [ -e %s ]; then set_aside %s; fi", f"{recipe.home}/{MARKER}", recipe.home),
            sh("rm -f -- %s", f"{recipe.home}/{MARKER}"),
            sh("%s -I -m venv --clear %s", interpreter, recipe.home),
            *_recent_pip(recipe),
            _write_constraints(recipe),
        ]
    )


def _must_run(recipe: Recipe, interpreter: str) -> list[str]:
    """A Python of another series, processor or C library was brought: the shell alone would say "not found". One that
    was built without what a venv needs says that in a traceback, or names a package of another Python.
    """
    brought = (
        f"{interpreter} does not run here: the stack's interpreter must hold bin/python{recipe.python} of "
        f"CPython {recipe.python}, built for this processor and glibc"
    )
    installed = f"{interpreter} (Python {recipe.python}) makes no venvs that pip can fill: it lacks that module"
    run = "%s -I -c %s || { echo %s >&2; exit 1; }"
    if recipe.interpreter:
        return [sh(run, interpreter, "import venv, ensurepip", brought)]
    return [sh(run, interpreter, "import ensurepip, ssl, venv, zlib", installed)]


def restore_script(recipe: Recipe, interpreter: str, lost: tuple[str, ...]) -> str:
    """The interpreter or pip of a venv put back, its packages left as they are."""
    lines = ["umask 022"]
    if "pip" in lost:  # what is left of it would count as installed
        lines.append(sh("rm -rf -- %s/pip %s/pip-*.dist-info", _site(recipe), _site(recipe)))
    lines.append(
        sh("%s -I -m venv", interpreter) + ("" if "pip" in lost else " --without-pip") + sh(" %s", recipe.home)
    )
    return "\n".join([*lines, *_recent_pip(recipe), compile_script(recipe), _write_constraints(recipe)])


def _recent_pip(recipe: Recipe) -> list[str]:
    old = f"import pip, sys; sys.exit(tuple(map(int, pip.__version__.split('.')[:2])) < {PIP_MINIMUM})"
    install = _pip(recipe, "", PIP_HASHED)
    return [sh("%s -I -c %s || {", f"{recipe.home}/bin/python", old), *install, "}"]


def _site(recipe: Recipe) -> str:
    return f"{recipe.home}/lib/python{recipe.python}/site-packages"


def install_script(recipe: Recipe) -> str:
    """Every pin and the requirement, resolved together, then checked against each other."""
    constraints = f"{recipe.home}/{CONSTRAINTS}"
    known = recipe.hashed()
    arguments = "" if known else sh("-c %s -r %s %s", constraints, constraints, recipe.requirement)
    return "\n".join(
        [
            "umask 022",
            *_pip(recipe, arguments, known),
            sh("%s -I -m pip --disable-pip-version-check check", f"{recipe.home}/bin/python"),
            compile_script(recipe),
        ]
    )


def mend_script(recipe: Recipe, drifts: list[Drift]) -> str:
    """The packages that differ, alone, at their pins. What pip has no record of is removed by hand before."""
    stale = tuple(f"{_site(recipe)}/{directory}" for drift in drifts for directory in drift.stale)
    known = recipe.hashed(*(drift.name for drift in drifts))
    pins = () if known else tuple(f"{drift.name}=={drift.version}" for drift in drifts)
    return "\n".join(
        [
            "umask 022",
            sh("rm -rf -- %s/~*", _site(recipe))
            + "".join(sh(" %s", path) for path in stale),  # ~: what a cut pip left behind
            *_pip(recipe, f"--force-reinstall --no-deps {words(pins)}".rstrip(), known),
            compile_script(recipe),
        ]
    )


def _pip(recipe: Recipe, arguments: str, known: str) -> list[str]:
    """Commands that run ``pip install`` in the venv, from the wheelhouse where there is one.

    ``known`` are requirements with the hashes of their wheels: then pip takes nothing else.
    """
    install = sh("%s -I -m pip install ", f"{recipe.home}/bin/python") + _PIP_FLAGS
    if known:
        install = sh("printf %s %s | ", "%s", known) + install
        arguments = f"{arguments} --require-hashes -r /dev/stdin".lstrip()
    if recipe.wheelhouse is None:
        return [install + " " + arguments]
    wheels = f"{recipe.home}.wheels"
    return [
        sh("trap %s EXIT", sh("rm -rf -- %s", wheels)),
        sh("rm -rf -- %s && mkdir -p -- %s", wheels, wheels),
        # the directories in the archive are dropped: a wheel lands in this one, whatever its name says
        sh("tar -xf %s -C %s --no-same-owner --transform %s", host_path(recipe.wheelhouse), wheels, "s,.*/,,")
        + " --wildcards --wildcards-match-slash '*.whl'",
        install + sh(" --no-index --find-links %s ", wheels) + arguments,
    ]


def compile_script(recipe: Recipe) -> str:
    """What is in the venv, compiled as pip would do it, by several processes."""
    values = {"python": f"{recipe.home}/bin/python", "site": _site(recipe)}
    return sh_file(__file__, "sh/venv_compiled.sh", **values, most=_COMPILERS, deepest=_DEEPEST).rstrip("\n")


def _write_constraints(recipe: Recipe) -> str:
    path = f"{recipe.home}/{CONSTRAINTS}"
    return write_script(path, recipe.constraints, mode="644", owner="root:root", check="", backup=False)


def _files(recipe: Recipe) -> tuple[str, ...]:
    return (recipe.wheelhouse.name,) if recipe.wheelhouse else ()

"""The answers of a host with the whole standard stack, for SBOMs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from hostwright.audit.sbom.contents import Sbom, sbom_of
from hostwright.plan.facts import K, V
from hostwright.plan.host.hostfacts import OS_RELEASE, PYTHONS, UNAME
from hostwright.plan.host.newrelease import renewed
from hostwright.plan.host.release import RELEASE, RunStamp
from hostwright.plan.model import Answer, Facts, Probe
from hostwright.plan.targets import TargetHost
from hostwright.resources.files.archives import ArchiveUnpacked, Delivered
from hostwright.resources.packages.dpkg import DPKG
from hostwright.resources.python.python import Recipe, Venv
from hostwright.standard.roles.driver.states.runfile import NvidiaRunfile
from tests.unit.support.standard import targets

AT = datetime(2026, 11, 21, 10, 30, tzinfo=UTC)
RECORDED = "2026-11-20T09:00:00+00:00"
KERNEL = "5.10.0-26-amd64"
OS = 'ID=debian\nVERSION_ID="11"\nNAME="Debian GNU/Linux"\nHOME_URL="https://www.debian.org/"\n'
#: binary package → source package
SOURCES = {"gnupg": "gnupg2", f"linux-image-{KERNEL}": "linux-signed-amd64"}
EVERYWHERE = {"dkms", "gnupg", "ca-certificates"}  #: packages of ``Architecture: all``


def target(name: str = "tensorflow-2.9") -> TargetHost:
    """The target host with this stack."""
    return next(target for target in targets() if target.name == name)


def states(target: TargetHost, kind: type) -> list:
    """The host's states of this kind."""
    return [state for role in target.desired.roles for state in role.resources if isinstance(state, kind)]


def recipe(target: TargetHost) -> Recipe:
    """The recipe of its venv for Python 3.9."""
    return next(recipe for recipe in states(target, Venv)[0].recipes if recipe.python == "3.9")


def debs(target: TargetHost, **versions: str) -> str:
    """dpkg's rows of the stack's packages; ``versions`` replaces some, with ``_`` for ``-``."""
    found = {
        software.name: software.wanted or "1.0"
        for role in target.desired.roles
        for state in role.resources
        if hasattr(state, "software") and all(probe in (DPKG, PYTHONS) for probe in state.probes()[:1])
        for software in state.software(Nothing())
        if software.kind == "deb"
    }
    found |= {f"linux-image-{KERNEL}": "5.10.1-1", "python3.9-venv": "3.9.2-1"}
    found |= {name.replace("_", "-"): version for name, version in versions.items()}
    return "".join(
        f"{name}\t{version}\tii \t{'all' if name in EVERYWHERE else 'amd64'}\t{SOURCES.get(name, name)}\n"
        for name, version in sorted(found.items())
        if version and not name.startswith("nvidia-fabricmanager")
    )


class Nothing(dict):
    """The facts of a host without software."""

    def __missing__(self, probe: Probe) -> Answer:
        return Answer(0, "/usr/bin/python3.9 3.9\n") if probe == PYTHONS else Answer(1, "")

    def __contains__(self, probe: object) -> bool:
        return True

    def table(self, probe: Probe, read: Callable[[str], Mapping[K, V]]) -> Mapping[K, V]:
        return read(self[probe].text)


def dists(target: TargetHost, **versions: str) -> str:
    """The answer about its venv with every pin; ``versions`` replaces some, empty for a missing package."""
    wanted = recipe(target)
    found = {**wanted.pins, "pip": "20.3.4", **{name.replace("_", "-"): text for name, text in versions.items()}}
    rows = "".join(
        f"dist\t{name.replace('-', '_')}-{version}.dist-info\trecorded\n" for name, version in found.items() if version
    )
    return f"link\t{wanted.home}\nhome\t{wanted.home}\n{rows}"


def record(target: TargetHost) -> str:
    """The release record of a run."""
    run = RunStamp("20261120t090000-5a60", "ada@desk.example.org", RECORDED, "1862f6b")
    return json.dumps(renewed(target.desired, {}, run))


def answers(target: TargetHost) -> dict[Probe, Answer]:
    """All answers of a host that is as the stack desires."""
    found = {probe: Answer(1, "") for probe in target.desired.probes()}
    (runfile,) = states(target, NvidiaRunfile)
    version, library = runfile.version, "/usr/lib/x86_64-linux-gnu"
    state = f"module={version}\nloaded={version}\ndkms=yes\nsource=yes\nuvm=yes\nrecord=yes\nours={version}\n"
    state += "".join(f"{name}.1={library}/{name}.{version}\n" for name in ("libcuda.so", "libnvidia-ml.so"))
    found[runfile.state_probe] = Answer(0, state)
    for archive in states(target, ArchiveUnpacked):
        found[archive.probes()[0]] = Answer(0, f"{archive._seal}\n")
    for file in states(target, Delivered):
        found[file.probes()[1]] = Answer(0, f"{file.artifact.sha256 or 'a' * 64}  -\n")
    (venv,) = states(target, Venv)
    texts = {
        OS_RELEASE: OS,
        UNAME: f"{KERNEL} x86_64\n",
        PYTHONS: "/usr/bin/python3.9 3.9\n",
        DPKG: debs(target),
        RELEASE: record(target),
        venv.probes()[1]: dists(target),
    }
    return found | {probe: Answer(0, text) for probe, text in texts.items()}


def sbom(of: TargetHost | None = None, differs: Mapping[Probe, str | None] | None = None, at: datetime = AT) -> Sbom:
    """The SBOM of such a host except for these answers; ``None`` for a probe that did not run."""
    chosen = of or target()
    given = answers(chosen)
    for probe, text in (differs or {}).items():
        given.pop(probe, None)
        if text is not None:
            given[probe] = Answer(0, text)
    return sbom_of(chosen, Facts(given), at)


def with_artifacts(of: TargetHost, **values: object) -> TargetHost:
    """The same host with these values in all artifacts of its stack."""
    artifacts = {name: artifact.model_copy(update=values) for name, artifact in of.stack.artifacts.items()}
    return replace(of, stack=of.stack.model_copy(update={"artifacts": artifacts}))

"""The files of a model's version are on a host: the state that ``serve.up`` brings hosts to."""

from __future__ import annotations

from dataclasses import dataclass

from hostwright.resources import ABSENT, Change, Facts, Planned, Probe, Refusal, Resource, Step, host_path
from hostwright.roles import Artifact, sh_file
from hostwright.standard.roles.serving.states.facts import MODELS_PROBE, read_models
from hostwright.standard.roles.workspaces.declared.workspace import STATE
from hostwright.standard.roles.workspaces.states.undeclared import failing

UNPACK_TIMEOUT_S = 3600.0  #: 100 GB on a worn-out disk


@dataclass(frozen=True, slots=True)
class ModelBrought(Resource):
    """A version's files are there, each with its checksum."""

    name: str
    version: int
    digest: str  #: of the list of all checksums
    artifact: Artifact

    def probes(self) -> tuple[Probe, ...]:
        return (MODELS_PROBE,)

    def plan(self, facts: Facts) -> Planned | None:
        have = read_models(facts).model(self.name).files.get(self.version, ABSENT)
        what, want = f"model {self.name} version {self.version}", short(self.digest)
        if have == self.digest:
            return None
        if have != ABSENT:
            return Refusal(what, short(have), want, "model-version", other_files(self.name, self.version))
        script = failing(what) + sh_file(
            __file__, "sh/bring.sh", name=self.name, version=self.version, digest=self.digest.removeprefix("sha256:"),
            archive=host_path(self.artifact), state=STATE,
        )  # fmt: skip
        return Change(what, ABSENT, want, (Step(script, timeout_s=UNPACK_TIMEOUT_S),), artifacts=(self.artifact.name,))

    def removal(self) -> tuple[Resource, ...]:
        return ()  # with the model


def short(digest: str) -> str:
    """A digest as people compare it."""
    return digest.removeprefix("sha256:")[:12]


def other_files(name: str, version: int) -> str:
    """The sentence about a version that is there with other files."""
    return (
        f"version {version} of {name} is on this host with other files: a version's files never change, so give the "
        f"new ones another number (--version {version + 1})"
    )

"""The files of a model are such that its server, which is not root, may read them."""

from __future__ import annotations

from dataclasses import dataclass

from hostwright.resources import Change, Facts, Planned, Probe, Resource, Step
from hostwright.roles import sh_file
from hostwright.standard.roles.serving.states.facts import MODELS_PROBE, read_models
from hostwright.standard.roles.workspaces.declared.workspace import STATE
from hostwright.standard.roles.workspaces.states.undeclared import failing


@dataclass(frozen=True, slots=True)
class ModelReadable(Resource):
    """What was brought of a model can be read by everybody in its container: somebody's ``chmod`` is taken back."""

    name: str

    def probes(self) -> tuple[Probe, ...]:
        return (MODELS_PROBE,)

    def plan(self, facts: Facts) -> Planned | None:
        closed = read_models(facts).model(self.name).closed
        if not closed:
            return None
        mode, _, path = closed.partition(" ")
        what = f"files of model {self.name}"
        script = failing(what) + sh_file(__file__, "sh/open.sh", name=self.name, state=STATE)
        have = f"{path} has mode {mode}, with which its server cannot read it"
        return Change(what, have, "readable by its server", (Step(script),), alone=True)

    def removal(self) -> tuple[Resource, ...]:
        return ()  # with the model

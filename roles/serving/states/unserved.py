"""Removal of models that the inventory no longer declares."""

from __future__ import annotations

from dataclasses import dataclass

from hostwright.resources import Change, Facts, Planned, Probe, Resource, Step
from hostwright.roles import sh_file
from hostwright.standard.roles.serving.states.facts import MODELS_PROBE, read_models
from hostwright.standard.roles.workspaces.declared.workspace import STATE
from hostwright.standard.roles.workspaces.states.undeclared import failing

PATIENCE_S = 60  #: maximum seconds to wait for running requests to the removed model servers


@dataclass(frozen=True, slots=True)
class Unserved(Resource):
    """The host has no models except the models ``names``."""

    names: tuple[str, ...] = ()

    def probes(self) -> tuple[Probe, ...]:
        return (MODELS_PROBE,)

    def plan(self, facts: Facts) -> Planned | None:
        models = read_models(facts).models
        gone = sorted(name for name, model in models.items() if name not in self.names and model.files)
        if not gone:
            return None
        have = ", ".join(f"{name} ({', '.join(map(str, sorted(models[name].files)))})" for name in gone)
        what = "undeclared models"
        script = sh_file(__file__, "sh/unserve.sh", names=gone, state=STATE, patience=PATIENCE_S)
        step = Step(failing(what) + sh_file(__file__, "sh/ask.sh") + script, timeout_s=300)
        return Change(what, have, "absent", (step,), alone=True)

    def removal(self) -> tuple[Resource, ...]:
        return (Unserved(),)

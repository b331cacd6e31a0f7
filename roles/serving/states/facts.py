"""State of models on a host, read with one probe: checksums of files, servers' configuration and responses."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import pairwise

from hostwright.resources import Facts, Probe
from hostwright.roles import sh_file, whole
from hostwright.standard.roles.workspaces.declared.workspace import STATE

MODELS_PROBE = Probe(sh_file(__file__, "sh/facts.sh", state=STATE), root=True, cap_bytes=1024 * 1024)


@dataclass(slots=True)
class ModelFacts:
    """State of one model on a host. All values come from the host unchecked."""

    config: str = ""
    cut: bool = False  #: whether a change of the model server's configuration was interrupted
    closed: str = ""  #: mode and path of the first file or directory that the model server cannot read
    files: dict[int, str] = field(default_factory=dict)  #: version number → checksum of the version's files
    #: version number → state that the model server reports; ``None`` without a response
    states: dict[int, str] | None = None
    #: version number → error message, for versions that did not load
    errors: dict[int, str] = field(default_factory=dict)
    live: int = 0  #: number of the version with the label ``live``

    @property
    def configured(self) -> tuple[tuple[int, ...], int]:
        """Versions in the server's configuration, and the live version (0 without a live version)."""
        words = self.config.split()
        pairs = [(word, whole(value)) for word, value in pairwise(words)]
        versions = tuple(number for word, number in pairs if word == "versions:" and number is not None)
        return versions, next((number for word, number in pairs if word == "value:" and number is not None), 0)


@dataclass(slots=True)
class ServingFacts:
    """State of all models on a host, parsed from the output of ``MODELS_PROBE``."""

    docker: str = ""  #: state of Docker: ``absent``, or ``silent`` (not responding); empty if Docker responded
    models: dict[str, ModelFacts] = field(default_factory=dict)

    def model(self, name: str) -> ModelFacts:
        """Return the facts of a model; empty facts for a missing model."""
        return self.models.get(name) or ModelFacts()


def read_models(facts: Facts) -> ServingFacts:
    """Parse the output of ``MODELS_PROBE``. If the output is truncated, the state of Docker is ``silent``."""
    answer = facts[MODELS_PROBE]
    lines = [line.split(" ", 2) for line in answer.text.splitlines()]
    complete = answer.ok and not answer.truncated and lines[-1:] == [["end"]]
    found = ServingFacts("" if complete else "silent")
    for kind, *words in lines:
        if kind == "docker" and words:
            found.docker = "absent" if words[0] == "absent" else "silent"
        elif words:
            model = found.models.setdefault(words[0], ModelFacts())
            _take(model, kind, words[1] if len(words) > 1 else "")
    return found


def _take(model: ModelFacts, kind: str, text: str) -> None:
    if kind == "config":
        model.config = text.strip()
    elif kind == "cut":
        model.cut = True
    elif kind == "closed":
        model.closed = text
    elif kind == "version":
        number, _, digest = text.partition(" ")
        if (version := whole(number)) is not None:
            model.files[version] = f"sha256:{digest}"
    elif kind == "live":
        model.live = whole(text) or 0
    elif kind == "status":
        model.states = {}
        for row in _rows(text):
            version = whole(str(row.get("version", "")))
            status = row.get("status")
            if version is not None:
                model.states[version] = str(row.get("state", ""))
                message = status.get("error_message") if isinstance(status, dict) else ""
                if message:
                    model.errors[version] = str(message)


def _rows(text: str) -> list[dict[str, object]]:
    try:
        rows = json.loads(text).get("model_version_status", [])
    except (ValueError, AttributeError, RecursionError):
        return []
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []

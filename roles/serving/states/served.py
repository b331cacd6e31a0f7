"""States of a model: its files are installed and readable, and exactly the declared versions are served."""

from __future__ import annotations

from dataclasses import dataclass

from hostwright.resources import ABSENT, Change, Deferred, Facts, Planned, Probe, Refusal, Resource, Step, host_path
from hostwright.roles import Artifact, Command, sh_file
from hostwright.standard.roles.serving.states.facts import MODELS_PROBE, ModelFacts, read_models
from hostwright.standard.roles.serving.states.unserved import Unserved
from hostwright.standard.roles.workspaces.declared.workspace import STATE
from hostwright.standard.roles.workspaces.states.arguments import MODELS
from hostwright.standard.roles.workspaces.states.undeclared import failing

AVAILABLE = "AVAILABLE"
#: maximum seconds until a model's version is loaded, for several gigabytes on a busy disk
PATIENCE_S = 900


def config_of(name: str, versions: tuple[int, ...], live: int) -> str:
    """Return TensorFlow Serving's configuration for a model's versions and live version, on one line."""
    chosen = " ".join(f"versions: {number}" for number in versions)
    return (
        f'model_config_list {{ config {{ name: "{name}" base_path: "{MODELS}/{name}" model_platform: "tensorflow" '
        f"model_version_policy {{ specific {{ {chosen} }} }} "
        f'version_labels {{ key: "live" value: {live} }} }} }}'
    )


def stages_of(
    name: str, now: tuple[tuple[int, ...], int], wanted: tuple[int, ...], live: int
) -> list[tuple[str, tuple[int, ...], int]]:
    """Return the configurations from ``now`` to ``wanted``, as (text, versions, live version). No request fails.

    The first configuration serves old and new versions, the second moves the label, the third removes old versions. All
    versions must be loaded before the next configuration, because TensorFlow Serving rejects a label of a version that
    is not loaded.
    """
    versions, was_live = now
    both = tuple(sorted({*versions, *wanted}))
    first_live = was_live if was_live in both else live
    steps = [(both, first_live), (both, live), (wanted, live)]
    kept = [step for number, step in enumerate(steps) if step not in steps[:number]]
    return [(config_of(name, served, led), served, led) for served, led in kept]


@dataclass(frozen=True, slots=True)
class ModelServed(Resource):
    """The server of the model ``name`` serves exactly ``versions``, with ``live`` as the live version."""

    name: str
    port: int
    versions: tuple[tuple[int, str], ...]  #: version number and digest of each declared version
    live: int

    def probes(self) -> tuple[Probe, ...]:
        return (MODELS_PROBE,)

    @property
    def what(self) -> str:
        return f"model {self.name}"

    def plan(self, facts: Facts) -> Planned | None:
        found = read_models(facts)
        model = found.model(self.name)
        refusal = self._files(model)
        if refusal:
            return refusal
        if found.docker:
            return Deferred(self.what, f"Docker is {found.docker}", self._want(), "Docker answers")
        if model.states is None:
            return Deferred(self.what, "its server does not answer", self._want(), f"workspace {self.name} runs")
        wanted = tuple(number for number, _ in self.versions)
        gone = sorted(set(model.files) - set(wanted))
        loaded = tuple(sorted(number for number, state in model.states.items() if state == AVAILABLE))
        config = config_of(self.name, wanted, self.live)
        if (model.config, model.cut, loaded, model.live, gone) == (config, False, wanted, self.live, []):
            return None
        # The script does not wait for versions that do not respond.
        configured, led = model.configured
        stages = stages_of(self.name, (tuple(filter(loaded.__contains__, configured)), led), wanted, self.live)
        script = sh_file(
            __file__, "sh/serve.sh", name=self.name, port=self.port, state=f"{STATE}/{self.name}",
            stages=[word for text, served, live in stages for word in (text, " ".join(map(str, served)), str(live))],
            remove=" ".join(map(str, gone)), patience=PATIENCE_S,
        )  # fmt: skip
        have = _have(model, loaded, self._want())
        step = Step(failing(self.what) + sh_file(__file__, "sh/ask.sh") + script, timeout_s=4 * PATIENCE_S)
        # ``alone`` lets changes of other models continue if this change fails.
        return Change(self.what, have, self._want(), (step,), alone=True)

    def _files(self, model: ModelFacts) -> Refusal | None:
        for number, digest in self.versions:
            have = model.files.get(number)
            if have == digest:
                continue
            sentence = (
                f"version {number} of {self.name} is not on this host; install it with"
                f" {Command('serve.up', model='DIR', name=self.name, version=number)}, or remove it with"
                f" {Command('serve.down', name=self.name, version=number)}"
            )
            if have is not None:
                sentence = other_files(self.name, number)
            return Refusal(
                f"{self.what} version {number}", short(have) if have else ABSENT, short(digest), "model-version",
                sentence, alone=True,
            )  # fmt: skip
        return None

    def _want(self) -> str:
        return _said(tuple(number for number, _ in self.versions), self.live)

    def notes(self, facts: Facts) -> tuple[str, ...]:
        errors = read_models(facts).model(self.name).errors
        return tuple(
            f"model {self.name}: version {number} did not load: {errors[number]}"
            for number, _ in self.versions
            if number in errors
        )

    def removal(self) -> tuple[Resource, ...]:
        return (Unserved(),)


def _have(model: ModelFacts, loaded: tuple[int, ...], want: str) -> str:
    have = _said(loaded, model.live) if loaded else "no version"
    if have != want:
        return have
    if model.cut:
        return f"{have}, by a change that was cut off"
    further = sorted(set(model.files) - set(loaded))
    return f"{have}, and files of {', '.join(map(str, further))}" if further else f"{have}, by another configuration"


def _said(versions: tuple[int, ...], live: int) -> str:
    return f"version{'s' if len(versions) > 1 else ''} {', '.join(map(str, versions))}, live: {live or 'none'}"


@dataclass(frozen=True, slots=True)
class ModelReadable(Resource):
    """All users in the model server's container can read the model's installed files."""

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
        return ()


UNPACK_TIMEOUT_S = 3600.0  #: time limit in seconds for unpacking a model's version of 100 GB on a slow disk


@dataclass(frozen=True, slots=True)
class ModelBrought(Resource):
    """The files of one version of a model are on the host, with the expected checksums."""

    name: str
    version: int
    digest: str  #: hash of the checksums of all files
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
        return ()


def short(digest: str) -> str:
    """Return the first 12 hexadecimal digits of ``digest``, for people to compare."""
    return digest.removeprefix("sha256:")[:12]


def other_files(name: str, version: int) -> str:
    """Return the error text for a version with other files on the host than declared."""
    return (
        f"version {version} of {name} is on this host with other files; files of a version never change, so upload the"
        f" new files as another version (--version {version + 1})"
    )

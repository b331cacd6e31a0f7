"""Damaged artifacts: on the connection, at the vendor, in the host's cache."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Literal

import yaml

from hostwright.fleet import Fleet
from hostwright.stack.stack import Artifact
from hostwright.stack.store.hostcache import host_path
from lab import faults
from lab.relay import Trouble, relay
from tests.lab.faults.serving import Damaging, serving
from tests.lab.faults.trial import Missed, Trial

#: Artifacts that a layer needs on the host, largest last.
FILES = {
    "driver": ("driver",),
    "cuda": ("cuda-pin", "cuda-repository"),
    "cudnn": ("cudnn",),
    "tensorflow": ("wheelhouse-3.9",),
}
_HANDSHAKE_BYTES = 4000  #: bytes of the SSH handshake and the probes, before any file
DIRECT = "direct"


def on_the_line(trial: Trial) -> None:
    """A middlebox resets the connection, inverts a byte, or drops the connection, somewhere in the file."""
    size = sum(path.stat().st_size for _, path in _artifacts(trial))
    what = trial.rng.choices(("cut", "flip", "stall"), (3, 3, 1))[0]
    trouble = Trouble(what, int(trial.rng.uniform(_HANDSHAKE_BYTES, _HANDSHAKE_BYTES + size * trial.scale)))  # type: ignore[arg-type]
    trial.record.notes["how"] = f"{what} after {trouble.after_bytes} bytes"
    with relay(trial.machine, trouble) as line:
        known = trial.folder / "known_hosts"
        known.write_text(line.known_hosts)
        inventory = trial.bench.inventory(
            trial.folder / "relayed",
            [trial.machine.name],
            ansible_host=line.host,
            ansible_port=line.port,
            hostwright_known_hosts=str(known),
        )
        trial.end(trial.provision(inventory=inventory))
        if not line.troubled:
            raise Missed


def from_the_vendor(trial: Trial) -> None:
    """Hosts download by themselves, and the mirror first sends truncated, short or changed files."""
    artifacts = _artifacts(trial)
    damaging = Damaging(
        {artifact.file: path for artifact, path in artifacts},
        trial.rng.choice(("cut", "short", "flip")),
        times=trial.rng.choice((1, 2, 5)),
        share=trial.rng.uniform(0.0, 1.0),
    )
    with serving(damaging, str(trial.bench.lab.gateway.ip)) as url:
        inventory = trial.bench.inventory(trial.folder / "direct", [trial.machine.name], stack=DIRECT, artifacts=DIRECT)
        urls = {artifact.name: {"urls": [f"{url}/{artifact.file}"]} for artifact, _ in artifacts}
        (inventory / "stacks" / f"{DIRECT}.yml").write_text(yaml.safe_dump({"extends": "lab", "artifacts": urls}))
        trial.end(trial.provision(inventory=inventory))
        trial.look_at_rest()
    trial.record.notes["how"] = f"{damaging.how} {damaging.damaged} times"
    trial.expect(damaging.damaged > 0, "the host fetched nothing from the mirror")


def at_rest(trial: Trial) -> None:
    """A file in the host's cache is truncated or has a changed byte since an earlier run."""
    ways: tuple[Literal["truncate", "flip"], ...] = ("truncate", "flip")
    how = trial.rng.choice(ways)
    for artifact, path in _artifacts(trial):
        there = trial.root / host_path(artifact).lstrip("/")
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, there)
    damaged = [
        one
        for artifact, _ in _artifacts(trial)
        for one in faults.corrupt_cache(trial.machine, how, pattern=f"*/{artifact.file}")
    ]
    trial.record.notes["how"] = f"{how}: {', '.join(Path(one).name for one in damaged)}"
    trial.artifacts_may_differ = True
    trial.end(trial.provision())


def _artifacts(trial: Trial) -> list[tuple[Artifact, Path]]:
    fleet = Fleet.load(trial.inventory)
    stack = fleet.stack("lab")
    return [(stack.artifacts[name], fleet.store.locate(stack.artifacts[name])) for name in FILES[trial.layer.name]]

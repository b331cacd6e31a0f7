"""Links in ``/dev/char`` that keep GPUs in containers."""

from __future__ import annotations

from dataclasses import dataclass

from hostwright.resources import Change, Facts, Probe, Resource, Step


@dataclass(frozen=True, slots=True)
class DeviceLinks(Resource):
    """A link in ``/dev/char`` to each of the driver's device files.

    systemd resolves a container's device rules through these links whenever it reloads its units; without them,
    ``systemctl daemon-reload`` takes the GPUs from running containers (nvidia-container-toolkit#48).
    """

    def probes(self) -> tuple[Probe, ...]:
        return (
            Probe(
                'for d in /dev/nvidia* /dev/nvidia-caps/*; do [ ! -c "$d" ] || echo "device ${d#/dev/}"; done\n'
                "find /dev/char -lname '*nvidia*' -printf 'link %l\\n'"
            ),
        )

    def plan(self, facts: Facts) -> Change | None:
        rows = [line.partition(" ")[::2] for line in facts[self.probes()[0]].text.splitlines()]
        linked = {path.removeprefix("/dev/").removeprefix("../") for kind, path in rows if kind == "link"}
        missing = [path for kind, path in rows if kind == "device" and path not in linked]
        if not missing:
            return None
        step = Step("nvidia-ctk system create-dev-char-symlinks --create-all")
        return Change("links in /dev/char", f"none to {', '.join(missing)}", "one to each NVIDIA device", (step,))

    def removal(self) -> tuple[Resource, ...]:
        return ()  # other containers may need them when systemd reloads; they disappear at the next boot

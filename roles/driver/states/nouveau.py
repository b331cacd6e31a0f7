"""Open-source drivers that hold NVIDIA GPUs until a reboot: nouveau and nova."""

from __future__ import annotations

from dataclasses import dataclass

from hostwright.resources import KERNEL_GONE, Facts, Probe, Reboot, Resource

#: probe that prints NVIDIA devices with the driver nouveau or nova: ``0000:3b:00.0 nouveau``
NOUVEAU = Probe(
    'for d in /sys/bus/pci/devices/*; do read -r v <"$d/vendor" || continue; [ "$v" != 0x10de ] || '
    "for n in /sys/bus/pci/drivers/nouveau /sys/bus/pci/drivers/nova*; do "
    '[ ! "$d/driver" -ef "$n" ] || echo "${d##*/} ${n##*/}"; done; done; :',
    shared=True,
)


def boots_first(facts: Facts) -> bool:
    """Return whether the host must reboot before the driver's module can be built or loaded.

    The reason is nouveau or nova with a GPU, or a removed kernel. Requires ``NOUVEAU`` and ``KERNEL_GONE``.
    """
    return bool(facts[NOUVEAU].strip() or facts[KERNEL_GONE].strip())


@dataclass(frozen=True, slots=True)
class NouveauGone(Resource):
    """No open-source driver holds an NVIDIA GPU. Even a blacklisted driver releases its GPU only at a reboot."""

    def probes(self) -> tuple[Probe, ...]:
        return (NOUVEAU,)

    def plan(self, facts: Facts) -> Reboot | None:
        taken = facts[NOUVEAU].strip().splitlines()
        if not taken:
            return None
        have = ", ".join(f"{driver} drives {slot}" for slot, _, driver in (line.partition(" ") for line in taken))
        return Reboot("open NVIDIA drivers", have, "none has a card", f"{have}, and releases it only then")

    def removal(self) -> tuple[Resource, ...]:
        return ()

"""Open drivers of NVIDIA cards, which withhold a card from the driver until a reboot."""

from __future__ import annotations

from dataclasses import dataclass

from hostwright.resources import KERNEL_GONE, Facts, Probe, Reboot, Resource

#: NVIDIA devices bound to an open driver, in lines ``0000:3b:00.0 nouveau``; nova is nouveau's successor.
NOUVEAU = Probe(
    'set --; for d in /sys/bus/pci/devices/*; do read -r v <"$d/vendor" || continue; '
    '[ "$v" != 0x10de ] || [ ! -L "$d/driver" ] || set -- "$@" "$d/driver"; done\n'
    "[ $# -eq 0 ] || for n in $(find \"$@\" -maxdepth 0 -printf '%h=%l\\n'); do d=${n%%=*}; "
    'case ${n##*/} in nouveau|nova*) echo "${d##*/} ${n##*/}";; esac; done; :',
    shared=True,
)


def boots_first(facts: Facts) -> bool:
    """Whether our module cannot be built or loaded before a reboot: nouveau has a card, or the kernel is gone.

    Reads ``NOUVEAU`` and ``KERNEL_GONE``.
    """
    return bool(facts[NOUVEAU].strip() or facts[KERNEL_GONE].strip())


@dataclass(frozen=True, slots=True)
class NouveauGone(Resource):
    """No open driver has an NVIDIA card. A blacklisted driver releases its card only at a reboot."""

    def probes(self) -> tuple[Probe, ...]:
        return (NOUVEAU,)

    def plan(self, facts: Facts) -> Reboot | None:
        taken = facts[NOUVEAU].strip().splitlines()
        if not taken:
            return None
        have = ", ".join(f"{driver} drives {slot}" for slot, _, driver in (line.partition(" ") for line in taken))
        return Reboot("open NVIDIA drivers", have, "none has a card", f"{have}, and gives it back only then")

    def removal(self) -> tuple[Resource, ...]:
        return ()

"""dpkg's database as a host shows it, and how apt and dpkg are called: what all resources of packages share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from hostwright.common.quoting import sh
from hostwright.plan.model import Facts, Probe

DPKG_LOCK = "dpkg"

#: Runs in all of a step that asks a mirror, as long as what it fails for is transient. With the backoff between them
#: (``hostwright.apply.jobs.transient``) they span over a minute: a mirror that is being synchronised, a resolver that
#: restarts.
MIRROR_TRIES = 5

#: name, version, state ("ii " installed, "hi " installed and held, "rc " removed, "iF " half-configured …)
DPKG = Probe("dpkg-query -W -f='${Package}\\t${Version}\\t${db:Status-Abbrev}\\n'", cap_bytes=1024 * 1024)

#: 600 s is what unattended-upgrades may take on a slow disk (Azure/aks-engine#1538, #3068).
APT_GET = (
    "DEBIAN_FRONTEND=noninteractive apt-get -y -q -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3 "
    "-o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold"
)

#: Before a command that does not wait for a lock by itself: apt-mark, dpkg, apt-get for its lists. It is tried again
#: every two seconds, for ten minutes, as long as a lock is what it fails for.
PATIENTLY = sh(
    "sh -c %s patiently",
    'n=0; until said=$("$@" 2>&1); do case $said in *"locked by another process"*|*"Could not get lock"*) ;; '
    '*) n=300 ;; esac; n=$((n + 1)); [ "$n" -le 300 ] || { printf "%s\\n" "$said"; exit 1; }; sleep 2; done; '
    'printf "%s\\n" "$said"',
)

#: A package that was cut off while it was unpacked (a full disk does that) can neither be configured nor mended by
#: ``apt-get -f``: dpkg wants its archive again. One that no repository has goes; whoever needs it will find it missing.
_UNPACK_AGAIN = f"""\
work=$(mktemp -d); chmod 755 "$work"
for name in $(dpkg-query -W -f='${{db:Status-Eflag}} ${{binary:Package}}\\n' | sed -n 's/^reinstreq //p'); do
  version=$(dpkg-query -W -f='${{Version}}' "$name")
  (cd "$work" && rm -f ./*.deb && apt-get -q download "$name=$version" && {PATIENTLY} dpkg --unpack ./*.deb) ||
    {PATIENTLY} dpkg --remove --force-remove-reinstreq --force-depends "$name"
done
rm -rf "$work"
"""

#: Commands after which nothing is half-installed, half-configured or waiting for a trigger.
MEND = "\n".join(
    [
        _UNPACK_AGAIN,
        f"{PATIENTLY} dpkg --configure -a --force-confdef --force-confold || true",
        f"{APT_GET} -f install",
        f"{PATIENTLY} dpkg --configure -a",
    ]
)

#: The same where a dpkg that was cut left its journal, while every row of its database may read as if it were in order.
MEND_CUT = f'if [ -n "$(ls /var/lib/dpkg/updates 2>/dev/null)" ]; then\n{MEND}\nfi'


@dataclass(frozen=True, slots=True)
class Installed:
    """One row of dpkg's database."""

    name: str
    version: str
    state: str

    @property
    def present(self) -> bool:
        """Whether the package is unpacked and configured."""
        return self.state[1:2] == "i"

    @property
    def held(self) -> bool:
        """Whether apt is told to leave it alone."""
        return self.state[:1] == "h"

    @property
    def broken(self) -> bool:
        """Whether dpkg was interrupted while working on it."""
        return self.state[1:2] in {"U", "F", "H", "W", "t"} or self.state[2:3] == "R"

    @property
    def configuration_only(self) -> bool:
        """Whether it was removed and has left its configuration files."""
        return self.state[1:2] == "c"


def dpkg_table(facts: Facts) -> Mapping[str, Installed]:
    """dpkg's database by package name."""
    return parse_dpkg(facts[DPKG].text)


@lru_cache(maxsize=64)
def parse_dpkg(text: str) -> Mapping[str, Installed]:
    """Rows of ``DPKG`` by package name; lines that are none are passed over."""
    rows = (line.split("\t") for line in text.splitlines())
    return {row[0]: Installed(row[0], row[1], row[2]) for row in rows if len(row) == 3}

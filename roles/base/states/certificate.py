"""A certificate for a host's own names, signed by an authority of the same host."""

from __future__ import annotations

from dataclasses import dataclass, field

from hostwright.resources import NO_IDENTITY, Absent, Change, Facts, Probe, Resource, Step
from hostwright.roles import sh_file

AUTHORITY = "authority.crt"  #: beside it: what people give their browsers


@dataclass(frozen=True, slots=True)
class OwnCertificate(Resource):
    r"""The directory holds a certificate with its key, for all names of the host, valid for 30 days at least.

    The authority stays when the certificate is renewed, so that browsers need to be told of it once. It can vouch for
    the names of this host and for addresses, and for nothing else, whoever gets hold of its key.

    >>> from hostwright.plan.testing import plan_text
    >>> print(plan_text(OwnCertificate("/var/lib/proxy", (), "proxy"), {"problems": "ends within 30 days\n"}))
    ~ certificate /var/lib/proxy/host.pem: ends within 30 days → of the host's own authority, for all its names
    """

    directory: str
    names: tuple[str, ...]  #: beside those that the host knows itself
    purpose: str = field(metadata=NO_IDENTITY)  #: whose it is: a role's name

    @property
    def file(self) -> str:
        """The certificate and its key."""
        return f"{self.directory}/host.pem"

    def _script(self) -> str:
        return sh_file(__file__, "sh/certificate.sh", directory=self.directory, names=self.names)

    def probes(self) -> tuple[Probe, ...]:
        return (Probe(f"{self._script()}problems", root=True),)

    def plan(self, facts: Facts) -> Change | None:
        answer = facts[self.probes()[0]]
        problems = answer.strip().splitlines() if answer.ok else ["absent"]
        if not problems:
            return None
        script = f"{self._script()}{self._make()}(make)"
        want = "of the host's own authority, for all its names"
        return Change(f"certificate {self.file}", ", ".join(dict.fromkeys(problems)), want, (Step(script),))

    def _make(self) -> str:
        return sh_file(__file__, "sh/make.sh", directory=self.directory, purpose=self.purpose)

    def removal(self) -> tuple[Resource, ...]:
        files = (self.file, f"{self.directory}/authority.pem", f"{self.directory}/{AUTHORITY}")
        return tuple(Absent(file, f"the {self.purpose} goes") for file in files)

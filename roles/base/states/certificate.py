"""Certificate for a host's own names, signed by a certificate authority on the same host."""

from __future__ import annotations

from dataclasses import dataclass, field

from hostwright.resources import NO_IDENTITY, Absent, Change, Facts, Probe, Resource, Step
from hostwright.roles import sh_file

#: file name of the certificate authority's own certificate. Users import this file into browsers.
AUTHORITY = "authority.crt"


@dataclass(frozen=True, slots=True)
class OwnCertificate(Resource):
    r"""``directory`` has a certificate with its key for all names of the host, valid for at least 30 days.

    Renewal keeps the authority's certificate, so that users import it only once. The authority can sign only for the
    host's names and for IP addresses, in case its key is stolen.

    >>> from hostwright.plan.testing import plan_text
    >>> print(plan_text(OwnCertificate("/var/lib/proxy", (), "proxy"), {"problems": "ends within 30 days\n"}))
    ~ certificate /var/lib/proxy/host.pem: ends within 30 days → of the host's own authority, for all its names
    """

    directory: str
    names: tuple[str, ...]  #: host names in the certificate besides the host's own name
    purpose: str = field(metadata=NO_IDENTITY)  #: name of the role that owns the certificate

    @property
    def file(self) -> str:
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
        return tuple(Absent(file, f"the {self.purpose} is removed") for file in files)

"""TLS certificate from an ACME authority, such as Let's Encrypt or the site's own."""

from __future__ import annotations

from dataclasses import dataclass, field

from hostwright.resources import NO_IDENTITY, Absent, Change, Facts, Probe, Resource, Step
from hostwright.roles import sh, sh_file

#: time limit in seconds for obtaining a certificate. The ACME server validates each name several times.
OBTAIN_S = 600.0


@dataclass(frozen=True, slots=True)
class AcmeCertificate(Resource):
    r"""``file`` has a certificate for all ``names``, valid for at least 20 more days, and its private key.

    A timer renews the certificate 30 days before its end, so fewer than 20 days show a failed renewal.

    >>> from hostwright.plan.testing import plan_text
    >>> acme = AcmeCertificate("/var/lib/proxy/acme.pem", ("gpu01.example.org",), "/usr/local/lib/renew")
    >>> print(plan_text(acme, {"openssl": "absent\n"}))
    ~ certificate /var/lib/proxy/acme.pem: absent → of the ACME authority, for gpu01.example.org
    """

    file: str
    names: tuple[str, ...]
    program: str = field(metadata=NO_IDENTITY)

    def probes(self) -> tuple[Probe, ...]:
        return (Probe(sh_file(__file__, "sh/acme_problems.sh", file=self.file, names=self.names), root=True),)

    def plan(self, facts: Facts) -> Change | None:
        answer = facts[self.probes()[0]]
        problems = answer.strip().splitlines() if answer.ok else ["absent"]
        if not problems:
            return None
        want = f"of the ACME authority, for {', '.join(self.names)}"
        step = Step(sh("%s now", self.program), timeout_s=OBTAIN_S)
        return Change(f"certificate {self.file}", ", ".join(problems), want, (step,))

    def removal(self) -> tuple[Resource, ...]:
        return (Absent(self.file, "the proxy is removed"),)

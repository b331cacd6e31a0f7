"""Failures of the proxy in front of workspaces: nginx, its certificate, and the workspaces behind it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hostwright.failures import Covers, FailureRule, ForPeople, Sign, Units
from hostwright.resources import Probe
from hostwright.roles import sh_file

if TYPE_CHECKING:
    from hostwright.failures import AuditContext


UNIT = "nginx.service"
CONF = "/etc/nginx/conf.d/hostwright-workspaces.conf"
UNITS = Units((UNIT,))
SERVED = Probe(sh_file(__file__, "served.sh", conf=CONF), root=True)


def taken(ctx: AuditContext) -> Iterator[str]:
    """nginx.service failed, and its journal names an address that is in use."""
    yield from _why(ctx, "proxy-port-taken")


def without_ipv6(ctx: AuditContext) -> Iterator[str]:
    """nginx.service failed, and its journal reports that the host has no IPv6."""
    yield from _why(ctx, "proxy-without-ipv6")


def unusable(ctx: AuditContext) -> Iterator[str]:
    """nginx.service failed, and its journal names a certificate or key that nginx cannot load."""
    yield from _why(ctx, "proxy-certificate-unusable")


def ended(ctx: AuditContext) -> Iterator[str]:
    """The certificate in nginx's configuration for workspaces has expired, or openssl cannot read it."""
    yield from _lines(ctx, "ended")


def ending(ctx: AuditContext) -> Iterator[str]:
    """The certificate in nginx's configuration for workspaces expires within 14 days."""
    yield from _lines(ctx, "ending")


def without_workspace(ctx: AuditContext) -> Iterator[str]:
    """nginx's configuration routes a path to a loopback port on which no process listens."""
    yield from _lines(ctx, "silent")


def _why(ctx: AuditContext, rule: str) -> Iterator[str]:
    if UNITS.unit(ctx, UNIT).failed:
        name, line = ctx.named("\n".join(UNITS.journal(ctx, UNIT))) or ("", "")
        if name == rule:
            yield line


def _explained(ctx: AuditContext) -> Iterator[str]:
    if ctx.named("\n".join(UNITS.journal(ctx, UNIT))):
        yield UNIT


def _lines(ctx: AuditContext, word: str) -> Iterator[str]:
    rows = (line.partition(" ") for line in ctx.text(SERVED).splitlines())
    yield from (rest for first, _, rest in rows if first == word)


COMMANDS = ("nginx",)  #: command names that stay lowercase at the start of a sentence

FAILURES = (
    FailureRule(
        "proxy-port-taken",
        r"\[emerg\][^\n]*bind\(\) to \S+ failed \([0-9]{1,3}: Address (?:already )?in use",
        "nginx does not start: another program uses a port that nginx listens on (443, or 80 for the distribution's"
        " default site)",
        "Find the program with ss -ltnp. Stop it, or set proxy_listen to another port. For port 80, remove the"
        " default site: rm /etc/nginx/sites-enabled/default. Then provision again",
        "Eugeny/ajenti-v#68, EasyEngine/easyengine#10",
        sign=Sign("proxy", taken, (UNITS.states, UNITS.journals)),
        covers=Covers(("other-unit-failed",), _explained),
        treatment=ForPeople(),
    ),
    FailureRule(
        "proxy-without-ipv6",
        r"\[emerg\][^\n]*socket\(\) \[[0-9a-f:]{2,39}\]:[0-9]{1,5} failed \([0-9]{1,3}: Address family not supported",
        "nginx does not start: its configuration listens on IPv6, which is disabled on this host. The cause is"
        " usually the distribution's default site",
        "Remove the line listen [::]:80 from /etc/nginx/sites-available/default, or the IPv6 addresses from"
        " proxy_listen. Then provision again",
        "digitalocean/nginxconfig.io#151; geerlingguy/ansible-role-nginx#183",
        sign=Sign("proxy", without_ipv6, (UNITS.states, UNITS.journals)),
        treatment=ForPeople(),
    ),
    FailureRule(
        "proxy-certificate-unusable",
        r"cannot load certificate(?: key)? \"|\bBIO_new_file\(\"[^\"\n]{1,300}\"\) failed"
        r"|SSL_CTX_use_PrivateKey(?:_file)?\([^\n]{1,300}failed|X509_check_private_key:key values mismatch"
        r"|PEM_read_bio_X509_AUX\([^\n]{1,300}failed",
        "nginx cannot use its certificate: a file is missing or unreadable, the key belongs to another certificate,"
        " or the chain does not begin with the host's certificate",
        "Compare certificate and key (openssl x509 -noout -pubkey -in CERTIFICATE, openssl pkey -pubout -in KEY). Put"
        " the host's certificate first in its file, then the chain. Then provision again",
        "ngx_event_openssl.c; xdtianyu/scripts#30",
        sign=Sign("proxy", unusable, (UNITS.states, UNITS.journals)),
        treatment=ForPeople(),
    ),
    FailureRule(
        "proxy-certificate-ended",
        "",
        "the proxy's certificate has expired or is unreadable, so that browsers refuse the pages of workspaces",
        "Provision again to renew the host's own certificate. Have a certificate of the site (proxy_certificate)"
        " renewed by its issuer, then run systemctl reload nginx. For a certificate from an ACME authority, read the"
        " reason in journalctl -u hostwright-acme",
        "wolfgang42/yaml-multiline#17",
        sign=Sign("proxy", ended, (SERVED,)),
        treatment=ForPeople(),
    ),
    FailureRule(
        "proxy-certificate-ending",
        "",
        "the proxy's certificate expires within two weeks and was not renewed",
        "Provision again to renew the host's own certificate. Have a certificate of the site (proxy_certificate)"
        " renewed by its issuer. For a certificate from an ACME authority, read the reason in journalctl -u"
        " hostwright-acme",
        "jezdez/caniusepython3.com#62, #64",
        sign=Sign("proxy", ending, (SERVED,), grave=False),
    ),
    FailureRule(
        "proxy-without-workspace",
        r"connect\(\) failed \([0-9]{1,3}: Connection refused\) while connecting to upstream"
        r"|no live upstreams while connecting to upstream"
        r"|WebSocket handshake: Unexpected response code: 50[234]",
        "the proxy answers 502: the workspace behind it is stopped, or does not answer yet",
        "Read its last output with `invoke workspace.logs`. To start a stopped workspace, provision with --roles"
        " workspaces",
        "jupyter/notebook#625; twosigma/beakerx#2601",
        sign=Sign("proxy", without_workspace, (SERVED,), grave=False, provision=True),
        weight="consequence",
    ),
)

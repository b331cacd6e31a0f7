"""Failures of the proxy in front of workspaces: of nginx, of its certificate, and of what is behind it."""

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
    """nginx.service failed, and its journal says that the host has no IPv6."""
    yield from _why(ctx, "proxy-without-ipv6")


def unusable(ctx: AuditContext) -> Iterator[str]:
    """nginx.service failed, and its journal names a certificate or a key that it cannot use."""
    yield from _why(ctx, "proxy-certificate-unusable")


def ended(ctx: AuditContext) -> Iterator[str]:
    """The certificate that nginx's configuration for workspaces names has ended, or openssl cannot read it."""
    yield from _lines(ctx, "ended")


def ending(ctx: AuditContext) -> Iterator[str]:
    """The certificate that nginx's configuration for workspaces names ends within 14 days."""
    yield from _lines(ctx, "ending")


def without_workspace(ctx: AuditContext) -> Iterator[str]:
    """nginx's configuration leads a path to a port of the loopback on which nothing listens."""
    yield from _lines(ctx, "silent")


def _why(ctx: AuditContext, rule: str) -> Iterator[str]:
    """The line of the failed unit's journal by which a rule is recognised."""
    if UNITS.unit(ctx, UNIT).failed:
        name, line = ctx.named("\n".join(UNITS.journal(ctx, UNIT))) or ("", "")
        if name == rule:
            yield line


def _explained(ctx: AuditContext) -> Iterator[str]:
    """The unit, where its journal says why it failed."""
    if ctx.named("\n".join(UNITS.journal(ctx, UNIT))):
        yield UNIT


def _lines(ctx: AuditContext, word: str) -> Iterator[str]:
    """What the host says of one kind."""
    rows = (line.partition(" ") for line in ctx.text(SERVED).splitlines())
    yield from (rest for first, _, rest in rows if first == word)


COMMANDS = ("nginx",)  #: the first words of sentences

FAILURES = (
    FailureRule(
        "proxy-port-taken",
        r"\[emerg\][^\n]*bind\(\) to \S+ failed \([0-9]{1,3}: Address (?:already )?in use",
        "nginx does not start, because another program has a port that it is to listen on: 443, or 80 for the"
        " distribution's default site",
        "See which program it is (ss -ltnp); stop it, or set proxy_listen to another port; the default site goes with"
        " rm /etc/nginx/sites-enabled/default; then provision again",
        "Eugeny/ajenti-v#68, EasyEngine/easyengine#10",
        sign=Sign("proxy", taken, (UNITS.states, UNITS.journals)),
        covers=Covers(("other-unit-failed",), _explained),
        treatment=ForPeople(),
    ),
    FailureRule(
        "proxy-without-ipv6",
        r"\[emerg\][^\n]*socket\(\) \[[0-9a-f:]{2,39}\]:[0-9]{1,5} failed \([0-9]{1,3}: Address family not supported",
        "nginx does not start, because it is to listen on IPv6, which is switched off on this host: mostly it is the"
        " distribution's default site",
        "Take the line listen [::]:80 out of /etc/nginx/sites-available/default, or addresses of IPv6 out of"
        " proxy_listen, and provision again",
        "digitalocean/nginxconfig.io#151; geerlingguy/ansible-role-nginx#183",
        sign=Sign("proxy", without_ipv6, (UNITS.states, UNITS.journals)),
        treatment=ForPeople(),
    ),
    FailureRule(
        "proxy-certificate-unusable",
        r"cannot load certificate(?: key)? \"|\bBIO_new_file\(\"[^\"\n]{1,300}\"\) failed"
        r"|SSL_CTX_use_PrivateKey(?:_file)?\([^\n]{1,300}failed|X509_check_private_key:key values mismatch"
        r"|PEM_read_bio_X509_AUX\([^\n]{1,300}failed",
        "nginx does not take its certificate: a file is missing or not readable, or the key belongs to another"
        " certificate, or the chain begins with the authority's",
        "Compare the two (openssl x509 -noout -pubkey -in CERTIFICATE, openssl pkey -pubout -in KEY); the certificate"
        " of the host comes first in its file, then those that lead to its authority; then provision again",
        "ngx_event_openssl.c; xdtianyu/scripts#30",
        sign=Sign("proxy", unusable, (UNITS.states, UNITS.journals)),
        treatment=ForPeople(),
    ),
    FailureRule(
        "proxy-certificate-ended",
        "",
        "the certificate of the proxy has ended, or cannot be read, and browsers refuse the pages of workspaces",
        "Provision again, which makes a new one; one that the site gave (proxy_certificate) must be renewed by whoever"
        " gave it, and nginx reloaded (systemctl reload nginx); of one from an ACME authority journalctl -u"
        " hostwright-acme says why it was not renewed",
        "wolfgang42/yaml-multiline#17",
        sign=Sign("proxy", ended, (SERVED,)),
        treatment=ForPeople(),
    ),
    FailureRule(
        "proxy-certificate-ending",
        "",
        "the certificate of the proxy ends within two weeks, and nothing has renewed it",
        "Provision again, which renews the host's own; one that the site gave (proxy_certificate) must be renewed by"
        " whoever gave it; of one from an ACME authority journalctl -u hostwright-acme says why it was not renewed",
        "jezdez/caniusepython3.com#62, #64",
        sign=Sign("proxy", ending, (SERVED,), grave=False),
    ),
    FailureRule(
        "proxy-without-workspace",
        r"connect\(\) failed \([0-9]{1,3}: Connection refused\) while connecting to upstream"
        r"|no live upstreams while connecting to upstream"
        r"|WebSocket handshake: Unexpected response code: 50[234]",
        "the proxy answers 502, because the workspace behind it does not run or has not begun to answer",
        "Read what it printed last (`invoke workspace.logs`); provision with --roles workspaces starts one that stands"
        " still",
        "jupyter/notebook#625; twosigma/beakerx#2601",
        sign=Sign("proxy", without_workspace, (SERVED,), grave=False, provision=True),
        weight="consequence",
    ),
)

"""States of the role ``proxy``, imported only for hosts with this role."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hostwright.resources import Absent, Debs, Directory, File, Resource, Service
from hostwright.roles import RoleContext, sh, sh_file
from hostwright.standard.roles.base.states.certificate import OwnCertificate
from hostwright.standard.roles.proxy import CONF, GATED, STATE, TOKENS, UNIT, Proxy, names_of_people, served
from hostwright.standard.roles.proxy.acme import CERTIFICATE as ACME
from hostwright.standard.roles.proxy.acme import CONF as ACME_CONF
from hostwright.standard.roles.proxy.acme import TIMER, acme_states
from hostwright.standard.roles.proxy.states.reloaded import ReloadedAfter
from hostwright.standard.roles.proxy.states.tokens import PageTokens, SharedName


def states(v: Proxy, ctx: RoleContext) -> Iterator[Resource]:
    """Yield the states of the role ``proxy``."""
    yield Debs(("nginx", "openssl"))
    inputs: list[Resource] = []
    files: tuple[str, ...] = (v.certificate, v.key)
    spaces = served(ctx)
    people = names_of_people(v, spaces)
    names = (*v.names, *([v.people_domain] if people else []), *people)
    gated = tuple(space.name for space in spaces if space.entry.kind in GATED)
    if gated or not v.certificate:
        yield Directory(STATE)
    if v.acme:
        acme = tuple(acme_states(replace(v, names=(*v.names, *people)), ctx))
        yield from acme
        inputs, files = [acme[-1]], (ACME, ACME)
    elif not v.certificate:
        own = OwnCertificate(STATE, names, "proxy")
        yield own
        inputs, files = [own], (own.file, own.file)
    text = ctx.render(
        "proxy/workspaces.conf.j2", v=v, spaces=spaces, people=people, certificate=files[0], key=files[1],
        given=v.certificate or v.acme, gated=GATED, tokens=TOKENS if gated else "",
    )  # fmt: skip
    if gated:
        inputs.append(PageTokens(TOKENS, gated))
        files = (*files, TOKENS)
        yield inputs[-1]
    conf = File(CONF, text, check=_check())
    yield conf
    if not v.acme:
        yield Service(TIMER, running=False)
        yield Absent(ACME_CONF, "the certificate is not from an ACME authority")
    if not gated:
        yield Absent(TOKENS, "no workspace page needs it")
    if not people:
        yield SharedName(tuple(sorted({space.owner for space in spaces})))
    yield Service(UNIT)
    yield ReloadedAfter(UNIT, (CONF, *dict.fromkeys(files)), (*inputs, conf))


def _check() -> str:
    program = sh_file(__file__, "states/sh/tried.sh", conf=CONF)
    return sh("unshare -m -- sh -euc %s sh", program).replace("%", "%%") + " %s"

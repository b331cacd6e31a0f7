"""Network access to workspaces' containers: closed to other hosts, and withdrawn from users who left."""

from __future__ import annotations

from dataclasses import dataclass

from hostwright.resources import ABSENT, ERROR, Change, Deferred, Facts, Planned, Probe, Resource, Step, few
from hostwright.roles import sh, sh_file
from hostwright.standard.roles.workspaces.states.facts import WORKSPACES_PROBE, read_workspaces
from hostwright.standard.roles.workspaces.states.undeclared import failing

#: path of the program that closes users' networks to other hosts
CLOSED = "/usr/local/lib/hostwright/workspace-networks"
RULES_SH = sh_file(__file__, "sh/network/rules.sh")
#: probe that prints missing firewall rules, and nothing on a host without iptables
KEPT = Probe(RULES_SH + sh_file(__file__, "sh/network/kept.sh"), root=True)
_SET = Probe(f'{RULES_SH}for bridge in $bridges; do ! rule -C "$bridge" 2>/dev/null || echo "$bridge"; done', root=True)
OTHERS, KEPT_OUT = "other hosts", "kept from people's containers"
CUT_OFF = "cut off: open connections end, processes go on until the workspace is removed"


@dataclass(frozen=True, slots=True)
class NetworksClosed(Resource):
    """No other host can connect to a user's container, not even by a route to the container's address.

    The start of Docker sets the firewall rules. After a flush, Hostwright sets the rules again while containers run.
    """

    def probes(self) -> tuple[Probe, ...]:
        return (KEPT,)

    def plan(self, facts: Facts) -> Planned | None:
        missing = facts[KEPT].text.splitlines()
        if not missing:
            return None
        if missing == ["docker absent"]:
            return Deferred(OTHERS, "Docker is not installed", KEPT_OUT, "Docker is installed")
        failed = sh("echo %s", f"{ERROR}the host's firewall refused the rules; check iptables -S")
        step = Step(f"{sh('%s', CLOSED)} || {{ {failed}; exit 1; }}")
        return Change(OTHERS, f"not kept out: {few(missing)}", KEPT_OUT, (step,), alone=True)

    def removal(self) -> tuple[Resource, ...]:
        return (NetworksOpen(),)


@dataclass(frozen=True, slots=True)
class NetworksOpen(Resource):
    """The host's firewall has no rules of ``NetworksClosed``."""

    def probes(self) -> tuple[Probe, ...]:
        return (_SET,)

    def plan(self, facts: Facts) -> Planned | None:
        bridges = facts[_SET].text.split()
        if not bridges:
            return None
        taken = 'while rule -C "$bridge" 2>/dev/null; do rule -D "$bridge"; done'
        script = f"{RULES_SH}for bridge in $bridges; do {taken}; done"
        return Change("rules in DOCKER-USER", f"for {', '.join(bridges)}", ABSENT, (Step(script),))

    def removal(self) -> tuple[Resource, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class AccessWithdrawn(Resource):
    """The containers of the users ``people`` have no network, so that connections and ports are closed.

    Running processes continue until ``Undeclared`` removes the container. Only ``left: true`` withdraws access, because
    a user missing in the inventory may be a mistake.
    """

    people: tuple[str, ...]

    def probes(self) -> tuple[Probe, ...]:
        return (WORKSPACES_PROBE,)

    def plan(self, facts: Facts) -> Planned | None:
        found = read_workspaces(facts)
        if found.docker:
            what = f"access of {', '.join(self.people)}"
            return Deferred(what, found.trouble, CUT_OFF, "Docker answers") if found.docker == "silent" else None
        theirs = [held for held in found.containers if held.user in self.people and held.connected and not held.over]
        if not theirs:
            return None
        what = f"access of {', '.join(sorted({held.user for held in theirs}))}"
        names = sorted({held.workspace for held in theirs})
        have = f"workspace{'s' if len(names) > 1 else ''} {', '.join(names)} on the network"
        containers = [held.name.removeprefix("/") for held in theirs]
        script = failing(what) + sh_file(__file__, "sh/network/cutoff.sh", containers=containers)
        return Change(what, have, CUT_OFF, (Step(script, timeout_s=900),), alone=True)

    def removal(self) -> tuple[Resource, ...]:
        return ()

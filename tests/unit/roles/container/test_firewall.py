"""Docker's own rules in the host's firewall: detection of missing rules, and their restoration."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from hostwright.plan.model import Answer, Change, Facts, Planned, Refusal
from hostwright.plan.testing import facts_for
from hostwright.standard.roles.container.engine import FIREWALL, RESTARTS, FirewallRules
from tests.unit.support.stubs import stub

IDENT = "9cd078cb21bc" + "0" * 52
ROW = f"7 {IDENT} /workspace-alice-lab unless-stopped\n"
GONE = (
    "none in nat: containers cannot reach other hosts, and their published ports may not respond; none in "
    "filter: packets between containers and other networks are dropped, or let through unchecked"
)
#: output of iptables -S with Docker 20.10 and Docker 28
CHAINS = {
    "20.10": "-P FORWARD DROP\n-A FORWARD -j DOCKER-USER\n-A FORWARD -j DOCKER-ISOLATION-STAGE-1\n"
    "-A FORWARD -o docker0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n-A FORWARD -o docker0 -j DOCKER\n",
    "28": "-P FORWARD DROP\n-A FORWARD -j DOCKER-USER\n-A FORWARD -j DOCKER-FORWARD\n",
}
NAT = "-P PREROUTING ACCEPT\n-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER\n"
#: rules of workspaces' ``closed.sh`` that remain after a flush
OURS = "-P FORWARD DROP\n-A FORWARD -j DOCKER-USER\n"


def facts(state: FirewallRules, lost: str, *, spared: bool = False, containers: str = ROW) -> Facts:
    answers = {
        "lost_rules": lost,
        "docker ps": f"spared {str(spared).lower()}\nboots\n{containers}" if containers else "",
        "systemctl show": "ActiveState=active\n",
    }
    return facts_for(state, answers)


def planned(lost: str, *, force: bool = False, spared: bool = False, containers: str = ROW) -> Planned | None:
    state = FirewallRules(force=force)
    return state.plan(facts(state, lost, spared=spared, containers=containers))


def test_rules_that_are_there_are_let_be() -> None:
    assert planned("") is None


def test_a_restart_that_ends_containers_is_refused_alone_and_names_them_and_what_is_not_reached() -> None:
    plan = planned("nat\nfilter\n")
    assert isinstance(plan, Refusal)
    assert plan.alone  # other states, which keep other hosts out, are applied nevertheless
    assert plan.have == GONE
    assert "the restart would end container 9cd078cb21bc (pid 7) workspace-alice-lab; wait until" in plan.sentence
    assert '"live-restore": true' in plan.sentence


def test_a_restart_that_ends_nobody_is_made() -> None:
    for plan in (planned("nat\n", spared=True), planned("nat\n", containers="")):
        assert isinstance(plan, Change)
        assert plan.disturbs == ""
        assert plan.steps[0].script.endswith("|| systemctl restart docker.service")


def test_force_restarts_and_names_whom_it_ends() -> None:
    plan, state = planned("filter\n", force=True), FirewallRules(force=True)
    assert isinstance(plan, Change)
    assert plan.disturbs == RESTARTS
    assert state.users(facts(state, "filter\n")) == ("container 9cd078cb21bc (pid 7) workspace-alice-lab",)


class Host:
    """A made-up host on which Docker runs, as this process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "docker.pid").write_text(str(os.getpid()))  # without a newline, like dockerd

    def lost(self, chains: str, nat: str, *, daemon_json: str = "{}", iptables: str = "") -> list[str]:
        (self.folder / "daemon.json").write_text(daemon_json)
        (self.folder / "filter").write_text(chains)
        (self.folder / "nat").write_text(nat)
        text = f'case "$*" in *nat*) cat {self.folder}/nat ;; *) cat {self.folder}/filter ;; esac'
        script = FIREWALL.script.replace("/run/docker.pid", f"{self.folder}/docker.pid")
        script = script.replace("/etc/docker/daemon.json", f"{self.folder}/daemon.json")
        done = subprocess.run(
            ["/bin/sh", "-euc", script], env=stub(self.folder, iptables=iptables or text), capture_output=True,
            text=True, check=True,
        )  # fmt: skip
        return done.stdout.split()


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


@pytest.mark.parametrize("version", CHAINS)
def test_dockers_rules_of_each_version_are_known(host: Host, version: str) -> None:
    assert host.lost(CHAINS[version], NAT) == []


@pytest.mark.parametrize(
    ("chains", "nat", "gone"),
    [
        ("-P FORWARD DROP\n", "-P PREROUTING ACCEPT\n", ["nat", "filter"]),
        (OURS, "-P PREROUTING ACCEPT\n", ["nat", "filter"]),  # Hostwright's own rule does not count as Docker's
        (OURS, NAT, ["filter"]),
        (CHAINS["28"], "-P PREROUTING ACCEPT\n", ["nat"]),
    ],
)
def test_a_flush_is_seen(host: Host, chains: str, nat: str, gone: list[str]) -> None:
    assert host.lost(chains, nat) == gone


@pytest.mark.parametrize(
    ("bridge", "rule", "gone"),
    [("lo", "", ["filter"]), ("lo", "-A DOCKER-BRIDGE -o lo -j DOCKER\n", []), ("br-gone", "", [])],
)
def test_a_network_that_was_made_after_a_flush_does_not_hide_it(
    host: Host, bridge: str, rule: str, gone: list[str]
) -> None:
    masked = f"{NAT}-A POSTROUTING -s 172.18.0.0/16 ! -o {bridge} -j MASQUERADE\n"
    assert host.lost(CHAINS["28"] + rule, masked) == gone


@pytest.mark.parametrize("text", ['{"iptables": false}', '{ "firewall-backend" : "nftables" }'])
def test_a_docker_that_does_without_iptables_has_lost_nothing(host: Host, text: str) -> None:
    assert host.lost(OURS, "", daemon_json=text) == []


def test_a_docker_that_stands_still_or_a_firewall_that_does_not_answer_tells_nothing(host: Host) -> None:
    assert host.lost(OURS, "", iptables="exit 4") == []
    (host.folder / "docker.pid").unlink()
    (host.folder / "bin" / "iptables").unlink()
    (host.folder / "bin").rmdir()
    assert host.lost(OURS, "") == []


def test_a_host_that_did_not_answer_is_no_change() -> None:
    state = FirewallRules()
    assert state.plan(facts_for(state, {}, default=Answer(1, ""))) is None

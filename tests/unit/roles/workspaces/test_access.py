"""Withdrawn access: containers leave the network at once, their work continues, and access can be restored."""

from __future__ import annotations

import subprocess
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostwright.audit import readings
from hostwright.plan.host.jobs import ERROR
from hostwright.plan.model import Answer, Change, Deferred, Facts, Plan, Planned, Refusal, RolePlan
from hostwright.plan.roles.role import RoleContext
from hostwright.plan.testing import facts_for
from hostwright.resources.files.files import File
from hostwright.standard.roles.workspaces import workspaces
from hostwright.standard.roles.workspaces.audit import NETWORKS, audit_values
from hostwright.standard.roles.workspaces.states.access import CLOSED, KEPT, NetworksClosed, NetworksOpen
from hostwright.standard.roles.workspaces.states.facts import read_workspaces
from hostwright.standard.roles.workspaces.states.undeclared import Undeclared
from hostwright.standard.roles.workspaces.verbs.queries import rows_of
from tests.unit.roles.workspaces.spaces import (
    DECLARED,
    ENTRIES,
    RECORDED,
    STACK,
    answers,
    facts,
    planned,
    recorded,
    states,
    variables,
)
from tests.unit.support.stubs import stub

LEFT = replace(DECLARED, users={**DECLARED.users, "bob": replace(DECLARED.users["bob"], left=True)})
CUT_OFF = "cut off: open connections end, processes go on until the workspace is removed"
OFF: Mapping[str, Any] = {"networks": ""}


def at_work(**changed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer of a host on which bob works in his Jupyter, with these container values."""
    return answers(recorded(**changed).replace("children 15501 1\n", "children 15911 2\n"))


def change(plans: Mapping[str, Planned], what: str) -> Change:
    plan = plans[what]
    assert isinstance(plan, Change), plan
    return plan


def containers(plan: Change) -> str:
    """Return the containers that are disconnected."""
    return next(line for line in plan.steps[0].script.splitlines() if line.startswith("containers="))


# --- plans


def test_who_left_is_cut_off_at_work_and_before_his_containers_are_refused() -> None:
    plans = planned(LEFT, at_work())
    assert list(plans) == ["access of bob", "undeclared workspaces"]
    access = change(plans, "access of bob")
    assert (access.have, access.want) == ("workspaces bob-board, bob-lab on the network", CUT_OFF)
    assert (access.disturbs, access.alone) == ("", True)  # the change waits for no user, and its failure blocks nothing
    assert "alice" not in access.steps[0].script
    removal = plans["undeclared workspaces"]
    assert isinstance(removal, Refusal)
    whole = Plan("gpu01", "lab", (RolePlan("workspaces", (), tuple(plans.values())),))
    assert whole.refusals == ()  # the host is not refused: the change is made, and the run fails at its end


def test_a_second_plan_cuts_nobody_off_again() -> None:
    plans = planned(LEFT, at_work(bob_lab=OFF, bob_board=OFF))
    assert list(plans) == ["undeclared workspaces"]


def test_whose_work_may_end_is_cut_off_before_it_does() -> None:
    plans = planned(LEFT, at_work(), force=True)
    assert list(plans) == ["access of bob", "undeclared workspaces"]
    assert change(plans, "undeclared workspaces").disturbs


def test_a_workspace_that_only_its_file_lacks_stays_reachable() -> None:
    """A missing name may be a mistake; ``left: true`` is intentional."""
    assert list(planned(variables(bob_lab=None), at_work())) == ["undeclared workspaces"]
    nobody = replace(DECLARED, users={"alice": DECLARED.users["alice"]}, containers={"a-run": ENTRIES["a-run"]})
    assert not any(what.startswith("access") for what in planned(nobody, at_work()))


def test_a_run_in_the_queue_begins_without_a_network_and_one_that_has_ended_is_let_be() -> None:
    queued = recorded(b_run={"state": "created"}).replace("network hostwright-bob\n", "network x\nbatch b-run\n")
    assert "workspace-b-run" in containers(change(planned(LEFT, answers(queued)), "access of bob"))
    assert "workspace-b-run" not in containers(change(planned(LEFT), "access of bob"))


def test_what_a_cut_change_left_beside_it_is_cut_off_too() -> None:
    row = next(line for line in RECORDED.splitlines() if '"/workspace-bob-lab"' in line)
    both = RECORDED.replace(row, row + "\n" + row.replace("/workspace-bob-lab", "/workspace-bob-lab.old"))
    access = change(planned(LEFT, answers(both)), "access of bob")
    assert access.have == "workspaces bob-board, bob-lab on the network"
    assert "workspace-bob-lab.old" in containers(access)


def test_a_container_without_a_network_by_dockers_own_word_is_cut_off_already() -> None:
    none = {"networks": "none "}
    assert "access of bob" not in planned(LEFT, at_work(bob_lab=none, bob_board=none))
    host = change(planned(LEFT, at_work(bob_lab={"networks": "host "}, bob_board=OFF)), "access of bob")
    assert host.have == "workspace bob-lab on the network"


def test_whoever_takes_over_a_workspace_does_not_keep_its_former_owner_in_it() -> None:
    mine = replace(ENTRIES["bob-lab"], user="alice")
    v = replace(LEFT, containers={**ENTRIES, "bob-lab": mine})
    plans = planned(v, at_work())
    assert "workspace-bob-lab" in containers(change(plans, "access of bob"))
    kept = plans["workspace bob-lab"]
    assert isinstance(kept, Refusal)
    assert kept.alone


def test_docker_that_does_not_answer_is_no_withdrawn_access() -> None:
    silent = planned(LEFT, {**answers(), "docker ps -aq": "docker silent\nend\n"})["access of bob"]
    assert isinstance(silent, Deferred)
    assert (silent.have.partition(":")[0], silent.want) == ("Docker does not answer", CUT_OFF)
    assert "access of bob" not in planned(LEFT, {**answers(), "docker ps -aq": "docker absent\nend\n"})


def test_the_last_person_of_a_host_is_cut_off_too() -> None:
    """The inventory has no other user's workspace on this host: cut-off and proxy are applied despite the refusal."""
    alone = replace(LEFT, containers={name: entry for name, entry in ENTRIES.items() if entry.user == "bob"})
    plans = planned(alone, at_work(alice_lab={}, alice_box={}, a_run={}))
    removal = plans["undeclared workspaces"]
    assert isinstance(removal, Refusal)
    assert removal.alone
    assert change(plans, "access of bob").have == "workspaces bob-board, bob-lab on the network"


def test_a_role_that_is_removed_is_refused_as_a_whole() -> None:
    removals = {state for one in states() for state in one.removal()}
    assert removals == {Undeclared(removes=True)}
    (state,) = removals
    plan = state.plan(facts_for([state], at_work()))
    assert isinstance(plan, Refusal)
    assert not plan.alone


def test_the_list_says_who_is_cut_off() -> None:
    look = read_workspaces(facts(states(LEFT), at_work(bob_lab=OFF)))
    rows = {row.name: row.state for row in rows_of("gpu01", (), look)}
    assert rows["bob-lab"] == "running, no longer declared, cut off"
    assert rows["bob-board"] == "running, no longer declared"


# --- restored access


def test_who_comes_back_is_reachable_again_and_what_ran_goes_on() -> None:
    gone = recorded(bob_lab=OFF).replace("listen 127.0.0.1:21615\n", "")
    plans = planned(replies=answers(gone))
    assert list(plans) == ["workspace bob-lab"]
    plan = change(plans, "workspace bob-lab")
    assert (plan.have, plan.want) == ("off its network", "on it again with port 21615; what runs goes on")


def test_one_that_ended_meanwhile_is_in_its_network_before_it_is_started() -> None:
    ended = {**OFF, "state": "exited", "code": 0, "pid": 0}
    gone = recorded(bob_lab=ended).replace("listen 127.0.0.1:21615\n", "")
    plan = change(planned(replies=answers(gone)), "workspace bob-lab")
    assert (plan.have, plan.want) == ("exited (status 0), off its network", "running")
    text = plan.steps[0].script
    assert text.index("docker network connect") < text.index('docker start "$container"')


@pytest.mark.parametrize(
    ("state", "queue", "have"),
    [("created", "batch b-run\n", "off its network"), ("running", "", "off its network"),
     ("created", "", "not in the queue, off its network")],
)  # fmt: skip
def test_a_batch_run_gets_its_network_back_and_not_a_second_start(state: str, queue: str, have: str) -> None:
    look = recorded(b_run={**OFF, "state": state}).replace(
        "network hostwright-bob\n", f"network hostwright-bob\n{queue}"
    )
    plan = change(planned(replies=answers(look)), "workspace b-run")
    assert plan.have == have
    assert "docker network connect" in plan.steps[0].script
    assert ("systemctl start" in plan.steps[0].script) == (have != "off its network")


def test_a_batch_run_that_has_ended_needs_no_network() -> None:
    assert planned(replies=answers(recorded(b_run=OFF))) == {}


def test_a_port_that_another_program_took_meanwhile_is_told() -> None:
    plan = planned(replies=answers(recorded(bob_lab=OFF)))["workspace bob-lab"]  # another program listens on 21615
    assert isinstance(plan, Refusal)
    assert (plan.rule, plan.alone) == ("workspace-port", True)


# --- any output of a host


@settings(max_examples=200, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=5,
    )
)
def test_whatever_a_host_calls_its_networks_is_a_plan(networks: Any) -> None:
    plans = planned(LEFT, at_work(bob_lab={"networks": networks}))
    known = isinstance(networks, str) and networks.split() not in ([], ["none"])
    assert ("bob-lab" in change(plans, "access of bob").have) == known
    assert ";" not in containers(change(plans, "access of bob"))  # names of networks appear in no command


def test_names_of_containers_reach_the_shell_as_words() -> None:
    name = "/workspace-x'; touch /tmp/y; '"
    access = change(planned(LEFT, at_work(bob_lab={"name": name})), "access of bob")
    done = subprocess.run(
        ["/bin/sh", "-c", f'{containers(access)}\neval "set -- $containers"\nfor one; do printf "%s\\n" "$one"; done'],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert name.removeprefix("/") in done.stdout.splitlines()


# --- the scripts with a docker that keeps networks in files

#: ``containers/NAME`` has a container's networks; the command in FAILS prints FAILURE
DOCKER = """
echo "$*" >>"$DOCKER/asked"
[ "$*" != "$FAILS" ] || { echo "$FAILURE" >&2; exit 1; }
case "$1 $2" in
"container inspect")
  [ -e "$DOCKER/containers/$5" ] || exit 1
  case $5 in *loops*) restarting=true ;; *) restarting=false ;; esac
  echo "$restarting $(cat "$DOCKER/containers/$5")" ;;
"network disconnect") sed -i "s/$3 //" "$DOCKER/containers/$4" ;;
"network connect") printf '%s ' "$3" >>"$DOCKER/containers/$4" ;;
"network inspect") [ -e "$DOCKER/networks/$3" ] ;;
"network create") for last; do :; done; : >"$DOCKER/networks/$last" ;;
esac
"""


@dataclass(frozen=True)
class Docker:
    """A made-up Docker in a directory."""

    folder: Path
    known: Mapping[str, str]

    @classmethod
    def with_(cls, folder: Path, **networks: str) -> Docker:
        """Create one with these containers (``bob_lab`` is workspace-bob-lab), each with its networks."""
        for part in ("containers", "networks"):
            (folder / part).mkdir()
        for name, there in networks.items():
            (folder / "containers" / f"workspace-{name.replace('_', '-')}").write_text(there)
        return cls(folder, stub(folder, docker=DOCKER))

    def run(self, plan: Change, fails: str = "", failure: str = "") -> subprocess.CompletedProcess[str]:
        """Run a change's step."""
        known = {**self.known, "DOCKER": str(self.folder), "FAILS": fails, "FAILURE": failure}
        script = plan.steps[0].script.replace(CLOSED, "true")
        return subprocess.run(["/bin/sh", "-euc", script], env=known, capture_output=True, text=True, check=False)

    def networks(self, name: str) -> str:
        return (self.folder / "containers" / f"workspace-{name}").read_text()

    @property
    def asked(self) -> list[str]:
        """Return the commands that changed something."""
        lines = (self.folder / "asked").read_text().splitlines()
        return [line for line in lines if " inspect " not in line]


def test_they_are_taken_off_every_network_and_once(tmp_path: Path) -> None:
    docker = Docker.with_(tmp_path, bob_lab="hostwright-bob more ", bob_board="hostwright-bob ")
    plan = change(planned(LEFT, at_work()), "access of bob")
    for _ in range(2):  # as after an interruption
        assert docker.run(plan).returncode == 0
    assert sorted(docker.asked) == [
        "network disconnect hostwright-bob workspace-bob-board",
        "network disconnect hostwright-bob workspace-bob-lab",
        "network disconnect more workspace-bob-lab",
    ]


def test_one_that_cannot_be_taken_off_is_told_and_spares_nobody(tmp_path: Path) -> None:
    docker = Docker.with_(tmp_path, bob_lab="host ", bob_board="hostwright-bob ")
    refused = "Error response from daemon: cannot disconnect container from host network"
    plan = change(planned(LEFT, at_work()), "access of bob")
    assert containers(plan).index("bob-lab") < containers(plan).index("bob-board")
    done = docker.run(plan, "network disconnect host workspace-bob-lab", refused)
    assert done.returncode == 1
    assert docker.networks("bob-board") == ""
    told = [line for line in done.stdout.splitlines() if line.startswith(ERROR)]
    assert told == [
        f"{ERROR}access of bob: workspace-bob-lab could not be taken off the network host: {refused} (journalctl -u "
        "docker on the host says more)"
    ]


def test_one_that_has_just_gone_is_no_failure(tmp_path: Path) -> None:
    docker = Docker.with_(tmp_path, bob_board="hostwright-bob ")
    assert docker.run(change(planned(LEFT, at_work()), "access of bob")).returncode == 0
    assert docker.networks("bob-board") == ""


def test_one_that_ends_again_and_again_is_stopped_first(tmp_path: Path) -> None:
    """Between two starts, Docker finds no network endpoint and reports that the container is not connected."""
    docker = Docker.with_(tmp_path, loops="hostwright-bob ")
    look = recorded(bob_lab={"name": "/workspace-loops", "state": "restarting"}, bob_board={})
    assert docker.run(change(planned(LEFT, answers(look)), "access of bob")).returncode == 0
    assert docker.asked == [
        "stop --time 20 workspace-loops", "network disconnect hostwright-bob workspace-loops"
    ]  # fmt: skip


@pytest.mark.parametrize("there", [True, False], ids=["network", "pruned"])
def test_who_comes_back_gets_the_network_also_where_it_was_pruned(tmp_path: Path, *, there: bool) -> None:
    docker = Docker.with_(tmp_path, bob_lab="")
    if there:
        (tmp_path / "networks" / "hostwright-bob").touch()
    gone = recorded(bob_lab=OFF).replace("listen 127.0.0.1:21615\n", "")
    done = docker.run(change(planned(replies=answers(gone)), "workspace bob-lab"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert docker.networks("bob-lab") == "hostwright-bob "
    *created, connected = docker.asked  # no command ends running processes
    assert connected == "network connect hostwright-bob workspace-bob-lab"
    assert [line.rpartition(" ")[2] for line in created] == ([] if there else ["hostwright-bob"])
    assert all("com.docker.network.bridge.enable_icc=false" in line for line in created)


# --- other hosts, with an iptables that keeps its rules in a file, one line per rule with its chain

IPTABLES = """
shift # -w
action=$1 chain=$2
shift 2
[ -e "$RULES" ] || { echo 'iptables: the kernel has no table' >&2; exit 3; }
case $action in
-N) ! grep -qx -e "$chain" "$RULES" || exit 1; echo "$chain" >>"$RULES" ;;
-C) grep -xF -e "$chain $*" "$RULES" ;; # it prints the rule, as iptables 1.8.9 over nftables does
-I) case $chain in FORWARD) ;; *) grep -qx -e "$chain" "$RULES" || exit 1 ;; esac; echo "$chain $*" >>"$RULES" ;;
-D) sed -i "$(grep -nxF -m 1 -e "$chain $*" "$RULES" | cut -d: -f1)d" "$RULES" ;;
esac
"""
DROPPED = "DOCKER-USER -o {} -m conntrack ! --ctstate RELATED,ESTABLISHED -j DROP"
RULES = {"DOCKER-USER", DROPPED.format("hww-+"), DROPPED.format("hostwright-hub"), "FORWARD -j DOCKER-USER"}


@dataclass(frozen=True)
class Firewall:
    """A host's made-up firewall in a directory."""

    folder: Path
    known: Mapping[str, str]

    @classmethod
    def with_(cls, folder: Path, *rules: str) -> Firewall:
        (folder / "rules").write_text("".join(f"{rule}\n" for rule in rules))
        return cls(folder, {**stub(folder, docker=":", iptables=IPTABLES), "RULES": str(folder / "rules")})

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["/bin/sh", "-euc", script], env=self.known, capture_output=True, text=True, check=False)

    def planned(self, state: NetworksClosed | NetworksOpen) -> Planned | None:
        """Return the plan for the host's answer."""
        (probe,) = state.probes()
        done = self.run(probe.script)
        return state.plan(Facts({probe: Answer(done.returncode, done.stdout)}))

    def close(self, plan: Change) -> subprocess.CompletedProcess[str]:
        """Run the step with the program that the role installs."""
        ctx = RoleContext(STACK)
        files = [state for state in workspaces.resources(DECLARED, ctx) if isinstance(state, File)]
        program = self.folder / "closed"
        program.write_text(next(file.content for file in files if file.path == CLOSED))
        program.chmod(0o755)
        return self.run(plan.steps[0].script.replace(CLOSED, str(program)))

    @property
    def rules(self) -> list[str]:
        return (self.folder / "rules").read_text().splitlines()


@pytest.mark.parametrize(
    ("there", "lost"),
    [
        ((), "DOCKER-USER has no rule for hww-+; DOCKER-USER has no rule for hostwright-hub; FORWARD does not lead to "
         "DOCKER-USER"),
        (RULES - {"FORWARD -j DOCKER-USER"}, "FORWARD does not lead to DOCKER-USER"),
        (RULES - {DROPPED.format("hww-+")}, "DOCKER-USER has no rule for hww-+"),
    ],
    ids=["flushed", "forward", "rule"],
)  # fmt: skip
def test_other_hosts_are_kept_out_again_after_a_flush(tmp_path: Path, there: Collection[str], lost: str) -> None:
    firewall = Firewall.with_(tmp_path, *there)
    plan = firewall.planned(NetworksClosed())
    assert isinstance(plan, Change)
    assert (plan.what, plan.have, plan.disturbs) == ("other hosts", f"not kept out: {lost}", "")
    assert firewall.close(plan).returncode == 0
    assert firewall.planned(NetworksClosed()) is None
    assert sorted(firewall.rules) == sorted(RULES)  # each once
    assert firewall.close(plan).returncode == 0
    assert len(firewall.rules) == len(RULES)


def test_a_firewall_that_takes_no_rule_is_told(tmp_path: Path) -> None:
    firewall = Firewall.with_(tmp_path)
    plan = firewall.planned(NetworksClosed())
    assert isinstance(plan, Change)
    (tmp_path / "rules").unlink()
    done = firewall.close(plan)
    assert done.returncode == 1
    assert f"{ERROR}the host's firewall refused the rules; check iptables -S\n" in done.stdout
    assert "the kernel has no table" in done.stderr


def test_nothing_is_asked_of_a_host_without_docker_and_one_without_iptables_needs_no_rule() -> None:
    plan = NetworksClosed().plan(Facts({KEPT: Answer(0, "docker absent\n")}))
    assert isinstance(plan, Deferred)
    assert NetworksClosed().plan(Facts({KEPT: Answer(0, "")})) is None


def test_a_role_that_is_removed_takes_its_rules_along_and_leaves_others(tmp_path: Path) -> None:
    theirs = ("DOCKER-USER -s 10.9.0.0/16 -j DROP", "FORWARD -j ufw-before-forward")
    firewall = Firewall.with_(tmp_path, *sorted(RULES), DROPPED.format("hww-+"), *theirs)
    (state,) = NetworksClosed().removal()
    assert isinstance(state, NetworksOpen)
    plan = firewall.planned(state)
    assert isinstance(plan, Change)
    assert plan.have == "for hww-+, hostwright-hub"
    assert firewall.run(plan.steps[0].script).returncode == 0
    assert sorted(firewall.rules) == sorted(["DOCKER-USER", "FORWARD -j DOCKER-USER", *theirs])
    assert firewall.planned(state) is None


@pytest.mark.parametrize(("rules", "shown"), [(RULES, "kept out"), ((), "DOCKER-USER has no rule for hww-+")])
def test_an_audit_says_whether_they_are(tmp_path: Path, rules: Collection[str], shown: str) -> None:
    firewall = Firewall.with_(tmp_path, *sorted(rules))
    prelude = (Path(readings.__file__).parent / "prelude.sh").read_text()
    done = firewall.run(prelude + NETWORKS.text)
    assert done.stdout == f"other hosts={shown}\n"
    *_, value = audit_values(DECLARED, RoleContext(STACK))
    assert (value.name, value.where, value.want) == ("other hosts", NETWORKS.line("other hosts"), "kept out")

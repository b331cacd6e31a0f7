"""The role jupyterhub: plans for users, GPUs and servers."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from hostwright.common.errors import InputError
from hostwright.plan.host.occupancy import Occupancies
from hostwright.plan.model import Answer, Change, Deferred, Facts, Plan, Planned, Refusal, RolePlan
from hostwright.plan.roles.role import RoleContext
from hostwright.plan.testing import facts_for
from hostwright.resources.files.files import File
from hostwright.resources.python.hashes import wheel_hashes
from hostwright.standard.roles.container.running import CHILDREN, CONTAINERS
from hostwright.standard.roles.jupyterhub import Jupyterhub, jupyterhub
from hostwright.standard.roles.jupyterhub.desired import LOCATIONS, PYTHONS, _inside, _pins, _recipe, users_of
from hostwright.standard.roles.jupyterhub.occupancy import OCCUPANCY
from hostwright.standard.roles.jupyterhub.states.cards import HubCards
from hostwright.standard.roles.jupyterhub.states.facts import HUB_PROBE, read_hub
from hostwright.standard.roles.jupyterhub.states.image import HubImage
from hostwright.standard.roles.jupyterhub.states.network import HubNetwork
from hostwright.standard.roles.jupyterhub.states.servers import HubGone, HubServers, HubUser, HubUserLeft
from hostwright.standard.roles.proxy import Proxy, proxy
from hostwright.standard.roles.workspaces import Workspaces, workspaces
from tests.unit.roles.workspaces.spaces import CARD, OTHER, RECORDED, STACK, report
from tests.unit.support.stubs import stub

PEOPLE = {"alice": {"uid": 2001}, "bob": None, "eve": {"uid": 2003, "left": True}}
SPACE = {"user": "bob", "kind": "jupyter", "gpus": [0], "image": "lab/jupyter:1"}
USERS = (HubUser("alice", 2001, None, 30001), HubUser("bob", None, None, 30002))
EMPTY = "end\n"


def read(kind: type[Any], values: Any) -> Any:
    return TypeAdapter(kind).validate_python(values)


def role_context(v: Jupyterhub, containers: Any = None, users: Any = None) -> RoleContext:
    people = read(Workspaces, {"users": users or PEOPLE, "containers": containers or {}})
    roles = ((workspaces, people), (proxy, Proxy()), (jupyterhub, v))
    return RoleContext(STACK, roles=roles)


def texts(v: Jupyterhub | None = None, users: Any = None) -> dict[str, str]:
    """Return the files by the last part of their path."""
    v = v or Jupyterhub()
    states = jupyterhub.resources(v, role_context(v, users=users))
    files = [getattr(state, "resource", state) for state in states]
    return {file.path: file.content for file in files if isinstance(file, File)}


def planned(
    state: Any, hub: str = EMPTY, cards: tuple[str, ...] = (CARD, OTHER), look: str = "end\n"
) -> Planned | None:
    answers = {"hostwright.hub": hub, "nvidia-smi -q -x": report(*cards), "label=hostwright.workspace": look}
    result: Planned | None = state.plan(facts_for(state, answers))
    return result


def server(user: str = "alice", port: int = 30001, gpus: str = "", state: str = "running", children: int = 0) -> str:
    return f"server\t{user}\t{port}\t{gpus}\t{state}\t71\nchildren\t71\t{children}\n"


class TestVariables:
    def test_more_gpus_each_than_there_are_is_a_mistake(self) -> None:
        with pytest.raises(ValidationError, match="gpus_each is 2, but the number of GPUs in gpus is only 1"):
            read(Jupyterhub, {"gpus": [0], "gpus_each": 2})

    def test_a_part_of_a_card_is_no_card(self) -> None:
        with pytest.raises(ValidationError, match="jupyterhub_gpus takes only whole GPUs"):
            read(Jupyterhub, {"gpus": [CARD.replace("GPU", "MIG")]})

    @pytest.mark.parametrize("network", ["172.30.250.1/24", "10.0.0.0/8", "172.30.250.0/30", "::/64", "x"])
    def test_a_network_that_is_none_is_refused(self, network: str) -> None:
        with pytest.raises(ValidationError):
            read(Jupyterhub, {"network": network})

    def test_an_image_without_an_exact_tag_is_refused(self) -> None:
        with pytest.raises(ValidationError, match="name an exact tag"):
            read(Jupyterhub, {"image": "jupyter/scipy-notebook:latest"})


class TestPeople:
    def test_who_left_is_in_no_file(self) -> None:
        assert [user.name for user in users_of(Jupyterhub(), role_context(Jupyterhub()))] == ["alice", "bob"]
        assert not [path for path, text in texts().items() if re.search(r"\beve\b", text)]

    def test_a_port_stays_when_others_come_and_is_no_workspaces(self) -> None:
        v = Jupyterhub(ports="30000-30003")
        before = {user.name: user.port for user in users_of(v, role_context(v, users={"bob": None, "carl": None}))}
        assert len(set(before.values())) == 2
        entry = {**SPACE, "port": before["bob"], "gpus": []}
        moved = users_of(v, role_context(v, {"bob-lab": entry}, {"bob": None, "carl": None}))
        assert before["bob"] not in {user.port for user in moved}

    def test_the_port_of_somebody_who_left_is_nobody_elses_while_there_is_room(self) -> None:
        v = Jupyterhub(ports="30000-30003")
        names = ("bob", "carl", "dora", "emil")
        before = {user.name: user.port for user in users_of(v, role_context(v, users=dict.fromkeys(names)))}
        for gone in names:  # with four ports for four users, all ports are neighbours
            people = {**dict.fromkeys(names), gone: {"left": True}}
            after = {user.name: user.port for user in users_of(v, role_context(v, users=people))}
            assert after == {name: port for name, port in before.items() if name != gone}
        # five users: a user who left needs no port when they are scarce
        many = {**dict.fromkeys(names), "aaron": {"left": True}}
        assert len({user.port for user in users_of(v, role_context(v, users=many))}) == 4

    def test_nginx_has_a_path_for_each_and_the_hub_has_the_same_port(self) -> None:
        files = texts()
        settings = json.loads(next(text for path, text in files.items() if path.endswith("settings.json")))
        locations = files[LOCATIONS]
        for name, user in settings["users"].items():
            assert f"location /jupyterhub/user/{name}/ {{\n  proxy_pass http://127.0.0.1:{user['port']};" in locations
        assert locations.count("/jupyterhub/user/") == 2

    def test_a_workspace_whose_page_would_be_among_the_hubs_is_refused(self) -> None:
        space = {"user": "jupyterhub", "kind": "jupyter", "image": "lab/jupyter:1"}
        with pytest.raises(InputError, match="/jupyterhub/hub/ is inside JupyterHub's addresses"):
            jupyterhub.resources(
                Jupyterhub(), role_context(Jupyterhub(), {"hub": space}, {"jupyterhub": {"uid": 2009}})
            )


class TestCards:
    def test_the_host_has_them(self) -> None:
        assert planned(HubCards(("0", OTHER))) is None
        assert planned(HubCards(())) is None

    def test_one_that_is_missing_or_named_twice_is_refused(self) -> None:
        missing, twice = planned(HubCards(("2",))), planned(HubCards(("1", OTHER)))
        assert isinstance(missing, Refusal)
        assert f"names GPU 2, but the host has only 0 ({CARD}), 1 ({OTHER})" in missing.sentence
        assert isinstance(twice, Refusal)
        assert "one GPU twice: 1 and" in twice.sentence

    def test_one_that_a_workspace_has_is_refused_with_its_name(self) -> None:
        plan = planned(HubCards(("0",)), look=RECORDED)
        assert isinstance(plan, Refusal)
        assert re.search(r"The workspace (alice-lab|a-run|b-run) of \w+ uses that GPU", plan.sentence)

    def test_a_workspace_is_refused_the_hubs_card_by_number_and_uuid(self) -> None:
        for gpus in ([0], [CARD]):
            host = role_context(read(Jupyterhub, {"gpus": gpus}), {"bob-lab": {**SPACE, "user": "alice"}})
            v = next(v for role, v in host.roles if role is workspaces)
            (state,) = [each for each in workspaces.resources(v, host) if getattr(each, "name", "") == "bob-lab"]
            answers = {
                "docker ps -aq": "image sha256:1 lab/jupyter:1 x\nend\n",
                "nvidia-smi -q -x": report(CARD, OTHER),
            }
            plan = state.plan(facts_for(state, {**answers, "getent": Answer(2, "")}))
            assert isinstance(plan, Refusal), plan
            assert f"{CARD} is reserved by the role jupyterhub" in plan.sentence

    def test_a_workspace_is_refused_a_part_of_the_hubs_card(self) -> None:
        part = f"MIG-{CARD}/1/0"
        host = role_context(read(Jupyterhub, {"gpus": [0]}), {"bob-lab": {**SPACE, "user": "alice", "gpus": [part]}})
        v = next(v for role, v in host.roles if role is workspaces)
        (state,) = [each for each in workspaces.resources(v, host) if getattr(each, "name", "") == "bob-lab"]
        listed = f"GPU 0: A100 (UUID: {CARD})\n  MIG 3g.20gb     Device  0: (UUID: {part})\n"
        answers = {
            "docker ps -aq": "image sha256:1 lab/jupyter:1 x\nend\n",
            "nvidia-smi -q -x": report(CARD, OTHER),
            "nvidia-smi -L": listed,
            "getent": Answer(2, ""),
        }
        plan = state.plan(facts_for(state, answers))
        assert isinstance(plan, Refusal), plan
        assert f"{CARD}, the GPU of {part}, is reserved by the role jupyterhub" in plan.sentence

    def test_a_driver_that_does_not_answer_is_waited_for(self) -> None:
        state = HubCards(("0",))
        assert isinstance(state.plan(facts_for(state, {"nvidia-smi": Answer(9, "")})), Deferred)


class TestServers:
    def test_those_that_may_stay_stay(self) -> None:
        rows = server(gpus=OTHER, children=3) + server("bob", 30002) + EMPTY
        assert planned(HubServers(USERS, ("1",)), rows) is None

    @pytest.mark.parametrize(
        ("row", "why"),
        [
            (server("eve", 30009), "may no longer log in"),
            (server("eve", 30009, state="exited"), "may no longer log in"),
            (server("alice", 30007), "port 30007 is now 30001"),
            (server("alice", gpus=CARD), "is no longer the hub's"),
        ],
    )
    def test_another_is_ended_unless_somebody_works_in_it(self, row: str, why: str) -> None:
        plan = planned(HubServers(USERS, ("1",)), row + EMPTY)
        assert isinstance(plan, Change)
        assert why in plan.have
        assert "docker stop" in plan.steps[0].script
        busy = row.replace("children\t71\t0", "children\t71\t2")
        refused = planned(HubServers(USERS, ("1",)), busy + EMPTY)
        if "exited" in row:
            assert isinstance(refused, Change)
            return
        assert isinstance(refused, Refusal)
        assert "(2 processes) on JupyterHub would be ended" in refused.sentence
        assert isinstance(planned(HubServers(USERS, ("1",), force=True), busy + EMPTY), Change)

    def test_work_of_somebody_who_left_refuses_their_own_server_alone(self) -> None:
        rows = server("eve", 30009, children=2) + EMPTY
        v = Jupyterhub()
        states = [s for s in jupyterhub.resources(v, role_context(v)) if isinstance(s, HubServers | HubUserLeft)]
        plans = [plan for state in states if (plan := planned(state, rows)) is not None]
        (refused,) = plans
        assert isinstance(refused, Refusal)
        assert refused.sentence == (
            "the server of eve (2 processes) on JupyterHub would be ended: eve may no longer log in; wait until "
            "nobody uses it, stop it on the hub's page, or pass --force"
        )
        due = planned(HubNetwork(v.network), EMPTY)
        assert due is not None
        assert Plan("gpu01", "lab", (RolePlan("jupyterhub", (), (due, refused)),)).refusals == ()

    def test_a_server_of_somebody_who_left_ends_when_nobody_works_in_it_or_by_force(self) -> None:
        idle = server("eve", 30009) + EMPTY
        ended = planned(HubUserLeft("eve"), idle)
        assert isinstance(ended, Change)
        assert (ended.what, ended.disturbs, ended.alone) == ("JupyterHub server of eve", "", True)
        assert ended.steps[0].script.startswith("names=hostwright-hub-eve\n")
        busy = server("eve", 30009, children=2) + EMPTY
        forced = planned(HubUserLeft("eve", force=True), busy)
        assert isinstance(forced, Change)
        assert forced.disturbs
        state = HubUserLeft("eve", force=True)
        assert state.users(facts_for(state, {"hostwright.hub": busy})) == ("the server of eve (2 processes)",)
        assert planned(HubUserLeft("eve"), server("alice", children=2) + EMPTY) is None
        assert planned(HubUserLeft("eve"), "docker\tsilent\nend\n") is None

    def test_work_of_somebody_whom_nobody_declares_refuses_the_host(self) -> None:
        """A missing name may be a mistake; ``left: true`` is intentional."""
        plan = planned(HubServers(USERS, (), ("eve",)), server("zoe", 30009, children=2) + EMPTY)
        assert isinstance(plan, Refusal)
        assert not plan.alone

    def test_a_driver_that_does_not_answer_ends_nobody(self) -> None:
        state = HubServers(USERS, ("1",))
        facts = facts_for(state, {"hostwright.hub": server(gpus=CARD) + EMPTY, "nvidia-smi": Answer(9, "")})
        assert state.plan(facts) is None

    def test_nothing_is_ended_for_an_answer_that_was_cut(self) -> None:
        assert planned(HubServers((), ()), server()) is None
        assert planned(HubGone(), server()) is None

    @pytest.mark.parametrize(("memory", "told"), [("512m", True), ("1g", False), (None, False)])
    def test_shared_memory_that_is_larger_than_the_memory_is_said(self, memory: str | None, told: bool) -> None:
        v = Jupyterhub(memory=memory)
        (servers,) = (state for state in jupyterhub.resources(v, role_context(v)) if isinstance(state, HubServers))
        notes = servers.notes(facts_for(servers, {}))
        assert [note.startswith("each server of JupyterHub has 1g of shared memory") for note in notes] == [True] * told

    def test_removal_takes_servers_network_and_images(self) -> None:
        rows = server() + "network\t172.30.250.0/24\nimage\thostwright/jupyterhub:1\n" + EMPTY
        (gone,) = HubServers(USERS).removal()
        plan = planned(gone, rows)
        assert isinstance(plan, Change)
        assert plan.have == "the server of alice, hostwright-hub, hostwright/jupyterhub:1"
        assert isinstance(planned(gone, rows.replace("71\t0", "71\t1")), Refusal)
        assert planned(gone) is None

    def test_what_disturbs_nobody_names_nobody(self) -> None:
        """``users`` is a method of some states: a field of that name broke a run."""
        v = read(Jupyterhub, {"gpus": [1]})
        for state in jupyterhub.resources(v, role_context(v)):
            assert state.users(facts_for(state, {})) == ()

    def test_people_are_named_before_a_reboot(self) -> None:
        ident = "9cd078cb21bc" + "0" * 52
        rows = f"spared false\nboots\n7 {ident} /hostwright-hub-alice unless-stopped\n8 {ident} /other no\n"
        facts = Facts({CONTAINERS: Answer(0, rows), CHILDREN: Answer(0, "")})
        ended = Occupancies((OCCUPANCY,)).returning(facts)
        assert ended == (
            "the reboot ends the JupyterHub server of alice; Docker starts it again (restart policy unless-stopped)",
        )
        working = Facts({CONTAINERS: Answer(0, rows), CHILDREN: Answer(0, "children 7 3\n")})
        assert Occupancies((OCCUPANCY,)).ended(working) == ("the JupyterHub server of alice (3 processes)",)


class TestNetwork:
    def test_another_network_is_made_anew_unless_people_are_in_it(self) -> None:
        state = HubNetwork("172.30.250.0/24")
        assert isinstance(planned(state), Change)
        assert planned(state, "network\t172.30.250.0/24\n" + EMPTY) is None
        other = "network\t10.9.0.0/24\n"
        assert isinstance(planned(state, other + EMPTY), Change)
        refused = planned(state, other + server() + EMPTY)
        assert isinstance(refused, Refusal)
        assert "the servers of alice still use 10.9.0.0/24" in refused.sentence

    def test_docker_that_is_silent_is_waited_for(self) -> None:
        assert isinstance(planned(HubNetwork("172.30.250.0/24"), "docker\tsilent\nend\n"), Deferred)


class TestImage:
    def image(self, **values: Any) -> HubImage:
        v = read(Jupyterhub, values)
        (found,) = [state for state in jupyterhub.resources(v, role_context(v)) if isinstance(state, HubImage)]
        return found

    def test_another_base_or_pin_is_another_image(self) -> None:
        assert self.image().tag != self.image(image="site/jupyter:2").tag

    def test_a_base_that_is_missing_is_refused_and_one_that_may_be_pulled_is_not(self) -> None:
        plan = planned(self.image(image="site/jupyter:2"))
        assert isinstance(plan, Refusal)
        assert "load it with `invoke images.push --archive FILE`" in plan.sentence
        assert isinstance(planned(self.image(image="site/jupyter:2", pull=True)), Change)

    def test_it_is_built_once(self) -> None:
        image = self.image()
        assert planned(image, look=f"image sha256:1 {image.tag} x\nend\n") is None

    @pytest.mark.parametrize("version", ["3.6", "3.14"])
    def test_an_image_with_another_python_is_refused_with_those_that_do(self, tmp_path: Path, version: str) -> None:
        plan = planned(self.image(image="site/jupyter:2", pull=True))
        assert isinstance(plan, Change)
        docker = f'case "$1 $2" in "image inspect") exit 0 ;; "run --rm") echo {version}.2 ;; *) exit 9 ;; esac'
        command = ["/bin/sh", "-euc", plan.steps[0].script]
        done = subprocess.run(command, env=stub(tmp_path, docker=docker), capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert done.stderr == (
            f"the image site/jupyter:2: it has Python {version}, and JupyterHub's part is known for 3.11, 3.12, 3.13, "
            "3.10, 3.9, 3.8: take another image\n"
        )


class TestPins:
    @pytest.mark.parametrize("python", PYTHONS)
    def test_every_pin_has_a_wheel_with_a_hash(self, python: str) -> None:
        recipe = _recipe(python)
        known = wheel_hashes(_pins("wheels.txt"), python)
        assert [pin for pin in recipe.pins.items() if pin not in known] == []
        assert recipe.hashed()
        assert recipe.pins["jupyterhub"] == "5.5.4"
        assert "dockerspawner" in recipe.pins
        assert "dockerspawner" not in _inside(python)

    def test_no_wheel_is_left_over(self) -> None:
        known = {pin for python in PYTHONS for pin in wheel_hashes(_pins("wheels.txt"), python)}
        assert known == {pin for python in PYTHONS for pin in _recipe(python).pins.items()}


class TestLook:
    def run(self, folder: Path, docker: str) -> list[str]:
        done = subprocess.run(
            ["/bin/sh", "-c", HUB_PROBE.script],
            env=stub(folder, docker=docker),
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout.splitlines()

    def test_servers_are_read_with_their_processes(self, tmp_path: Path) -> None:
        with subprocess.Popen(
            ["sh", "-c", "sleep 60 & sleep 61 & echo up; wait"], stdout=subprocess.PIPE, text=True
        ) as first:
            assert first.stdout is not None
            first.stdout.readline()
            row = f"alice\\t30001\\t{CARD}\\trunning\\t{first.pid}\\n"
            docker = f"case $1 in ps) echo x ;; inspect) printf '{row}' ;; network) echo 172.30.250.0/24 ;; *) ;; esac"
            lines = self.run(tmp_path, docker)
            subprocess.run(["pkill", "-P", str(first.pid)], check=True)
        hub = read_hub(Facts({HUB_PROBE: Answer(0, "\n".join(lines) + "\n")}))
        assert hub.servers[0].at_work == "the server of alice (2 processes)"
        assert (hub.docker, hub.subnet, hub.servers[0].gpus) == ("", "172.30.250.0/24", (CARD,))

    def test_a_docker_that_fails_is_silent(self, tmp_path: Path) -> None:
        assert self.run(tmp_path, "exit 1") == ["docker\tsilent", "end"]

"""The hub's own configuration on a host: logins, and assignment of GPUs."""

from __future__ import annotations

import ast
import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Coroutine
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, TypeVar

import pytest

from hostwright.common.templates import STANDARD
from tests.unit.roles.workspaces.spaces import CARD, OTHER
from tests.unit.support.stubs import stub

TEXT = (STANDARD / "jupyterhub" / "config.py.j2").read_text()
SETTINGS = {
    "path": "/jupyterhub", "address": "172.30.250.1", "port": 8081, "pam": "hub", "image": "hostwright/jupyterhub:1",
    "users": {"alice": {"uid": 2001, "gid": None, "port": 30001}, "bob": {"uid": None, "gid": None, "port": 30002}},
    "admins": ["alice", "eve"], "gpus": ["0", OTHER], "gpus_each": 2, "shared": False, "cpus": 1.5, "memory": "2g",
    "shm": "1g", "pids": 100, "idle_minutes": 0,
}  # fmt: skip
Value = TypeVar("Value")


class Config:
    """Stand-in for traitlets' configuration."""

    def __getattr__(self, name: str) -> Any:
        self.__dict__[name] = section = Config()
        return section


class HTTPError(Exception):
    """Stand-in for tornado's class, which the hub shows on the page; other exceptions count as unhandled."""


class APIError(Exception):
    """Stand-in for docker's class."""

    explanation = "port is already allocated"


class ImageNotFound(APIError):
    """Stand-in for docker's class."""


class Base:
    """Stand-in for the hub's base classes, with the methods that the configuration calls."""

    def add_user(self, user: Any) -> None:
        self.added = user

    async def authenticate(self, handler: Any, data: dict[str, str]) -> str:
        return data["username"].lower()  # PAM accepted account and password; the hub's names are lowercase

    async def start(self) -> tuple[str, int]:
        return "127.0.0.1", 30001

    async def stop(self, now: bool = False) -> None:
        self.stopped = now


def run(work: Coroutine[Any, Any, Value]) -> Value:
    return asyncio.run(work)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the configuration's names; ``settings`` may be changed, and files are below ``tmp_path``."""
    settings = {**SETTINGS, "state": str(tmp_path / "state"), "directory": str(tmp_path / "people")}
    for folder in ("state", "people"):
        (tmp_path / folder).mkdir()
    (tmp_path / "settings.json").write_text(json.dumps(settings))
    modules = {
        "dockerspawner": {"DockerSpawner": Base},
        "docker.errors": {"APIError": APIError, "ImageNotFound": ImageNotFound},
        "jupyterhub": {},
        "jupyterhub.auth": {"Authenticator": Base, "PAMAuthenticator": Base},
        "jupyterhub.proxy": {"Proxy": Base},
        "tornado": {"web": SimpleNamespace(HTTPError=HTTPError)},
    }
    for name, values in modules.items():
        module = ModuleType(name)
        vars(module).update(values)
        monkeypatch.setitem(sys.modules, name, module)
    config = Config()
    names: dict[str, Any] = {"__file__": str(tmp_path / "config.py"), "__name__": "hub", "get_config": lambda: config}
    exec(compile(TEXT, "config.py", "exec"), names)  # noqa: S102 - JupyterHub does just this
    return SimpleNamespace(**names)


def container(user: str = "", gpus: str = "", state: str = "running", workspace: str = "") -> dict[str, Any]:
    labels = {"hostwright.gpus": gpus, **({"hostwright.hub": user} if user else {"hostwright.workspace": workspace})}
    return {"State": state, "Labels": labels}


def test_the_oldest_python_can_read_it() -> None:
    ast.parse(TEXT, feature_version=(3, 8))
    ast.parse((STANDARD / "jupyterhub" / "add.py.j2").read_text(), feature_version=(3, 8))


def test_a_database_that_cannot_be_read_is_named(hub: Any, tmp_path: Path) -> None:
    path = tmp_path / "jupyterhub.sqlite"
    assert hub.readable(str(path)) == str(path)  # a new hub creates the file
    path.write_bytes(b"")
    assert hub.readable(str(path)) == str(path)
    path.write_bytes(b"no database" * 100)
    with pytest.raises(SystemExit, match=f"^{path} cannot be read .file is not a database.: put a copy back"):
        hub.readable(str(path))


@pytest.mark.parametrize(("has", "shell"), [("bash", "bash"), ("", "sh")])
def test_a_terminal_of_a_server_has_a_shell_that_the_image_has(hub: Any, tmp_path: Path, has: str, shell: str) -> None:
    """jupyterlab#2779: a container has no SHELL, so that terminals ran sh."""
    stub(tmp_path, **{"jupyterhub-singleuser": 'echo "$SHELL $*"', "sh": ":", **dict.fromkeys(has.split(), ":")})
    words = [*hub.c.Spawner.cmd, *hub.c.Spawner.args]
    done = subprocess.run(words, env={"PATH": f"{tmp_path}/bin"}, capture_output=True, text=True, check=True)
    assert done.stdout == f"{tmp_path}/bin/{shell} {' '.join(hub.c.Spawner.args)}\n"


def test_a_terminal_of_a_server_reads_what_one_of_a_workspace_does(hub: Any) -> None:
    lines = (STANDARD / "workspaces" / "profile.j2").read_text().replace("||\n ", "||").splitlines()
    assert hub.PROFILE.splitlines() == [line for line in lines if not line.startswith("#")]


class TestWhoComesIn:
    def test_those_of_the_inventory_and_nobody_who_was_known_before(self, hub: Any) -> None:
        assert hub.c.Authenticator.allowed_users == {"alice", "bob"}
        assert hub.c.Authenticator.allow_existing_users is False
        assert hub.c.Authenticator.admin_users == {"alice"}  # eve is not a declared user

    def test_a_browser_of_somebody_who_left_is_logged_out(self, hub: Any) -> None:
        accounts = hub.Accounts()
        assert run(accounts.refresh_user(SimpleNamespace(name="alice"))) is True
        assert run(accounts.refresh_user(SimpleNamespace(name="eve"))) is False

    def test_an_account_in_capitals_is_nobody_elses(self, hub: Any) -> None:
        accounts = hub.Accounts()
        assert run(accounts.authenticate(None, {"username": "bob", "password": "his"})) == "bob"
        assert run(accounts.authenticate(None, {"username": "Bob", "password": "another's"})) is None

    def test_somebody_without_an_account_keeps_nobody_out(self, hub: Any) -> None:
        run(hub.Accounts().add_user(SimpleNamespace(name="bob")))  # PAMAuthenticator's method would raise KeyError


class TestCards:
    def given(self, hub: Any, wanted: int, *containers: dict[str, Any], name: str = "alice") -> list[str]:
        found: list[str] = hub.free_cards([CARD, OTHER], list(containers), name, wanted)
        return found

    def test_two_people_get_two_cards(self, hub: Any) -> None:
        assert self.given(hub, 1) == [CARD]
        assert self.given(hub, 1, container("bob", CARD)) == [OTHER]

    def test_the_page_shows_why(self, hub: Any) -> None:
        with pytest.raises(HTTPError) as refused:
            self.given(hub, 3)
        assert refused.value.jupyterhub_message == (  # type: ignore[attr-defined]
            "2 of the 2 GPUs that JupyterHub has here are free, and you asked for 3. Start with fewer, or ask for some "
            "back."
        )

    def test_none_is_taken_from_somebody(self, hub: Any) -> None:
        with pytest.raises(hub.Refused, match=r"1 of the 2 .* you asked for 2 \(in use by bob\)"):
            self.given(hub, 2, container("bob", CARD))
        with pytest.raises(hub.Refused, match=r"0 of the 2 .* you asked for 1 \(in use by bob, carl\)"):
            self.given(hub, 1, container("bob", CARD), container("carl", OTHER, "restarting"))

    def test_ones_own_and_those_of_servers_that_ended_are_free(self, hub: Any) -> None:
        ended = container("bob", CARD, "exited")
        assert self.given(hub, 2, ended, container("alice", OTHER)) == [CARD, OTHER]

    def test_a_workspaces_card_is_not_free_whether_it_runs_or_not(self, hub: Any) -> None:
        assert self.given(hub, 1, container(gpus=CARD, state="exited", workspace="bob-lab")) == [OTHER]

    def test_shared_ones_are_given_evenly_and_never_a_workspaces(self, hub: Any) -> None:
        hub.SETTINGS["shared"] = True
        assert self.given(hub, 1, container("bob", CARD)) == [OTHER]
        assert self.given(hub, 1, container("bob", CARD), container("carl", OTHER), container("dan", OTHER)) == [CARD]
        with pytest.raises(hub.Refused):
            self.given(hub, 2, container(gpus=CARD, workspace="lab"))

    def test_the_share_is_found_by_number_and_uuid(self, hub: Any) -> None:
        assert hub.share_of([CARD, OTHER]) == [CARD, OTHER]
        assert hub.share_of([OTHER]) == [OTHER]  # moved to the first slot: index and UUID are both its own
        assert hub.share_of([CARD]) == [CARD]

    @pytest.mark.parametrize("asked", ["3", "-1", "x", "", "1.5", None])
    def test_a_number_that_nobody_may_have_is_refused(self, hub: Any, asked: Any) -> None:
        spawner = hub.Containers()
        spawner.user_options = {"gpus": asked}
        with pytest.raises(hub.Refused, match="Ask for 0 to 2 GPUs"):
            spawner.wanted_gpus()

    def test_nothing_else_that_a_request_says_is_taken(self, hub: Any) -> None:
        """DockerSpawner would start any image that a request names."""
        spawner = hub.Containers()
        spawner.user_options = {"gpus": 1, "image": "root/kit:1", "volumes": {"/": "/host"}}
        assert spawner.wanted_gpus() == 1
        assert spawner.user_options == {"gpus": 1}


class TestContainers:
    def spawner(self, hub: Any, name: str = "alice") -> Any:
        spawner = hub.Containers()
        spawner.user, spawner.port, spawner.user_options = SimpleNamespace(name=name), 8888, {}
        return spawner

    def test_limits_and_rights(self, hub: Any) -> None:
        limits = self.spawner(hub).limits("alice", [])
        assert limits["port_bindings"] == {8888: ("127.0.0.1", 30001)}
        assert (limits["cap_drop"], limits["security_opt"]) == (["ALL"], ["no-new-privileges"])
        assert (limits["mem_limit"], limits["memswap_limit"], limits["cpu_quota"]) == ("2g", "2g", 150000)
        assert "runtime" not in limits
        assert limits["init"] is True, "rocker-org/ml#45: a Jupyter takes no orphan away, which stays as a zombie"
        assert self.spawner(hub).limits("alice", [CARD])["runtime"] == "nvidia"

    def test_a_server_without_a_card_sees_none_whatever_its_image_says(self, hub: Any) -> None:
        assert self.spawner(hub).variables([])["NVIDIA_VISIBLE_DEVICES"] == "void"
        assert self.spawner(hub).variables([CARD, OTHER])["NVIDIA_VISIBLE_DEVICES"] == f"{CARD},{OTHER}"

    @pytest.mark.parametrize("shared", [False, True])
    def test_who_shares_a_card_does_not_take_all_of_it(self, hub: Any, *, shared: bool) -> None:
        """tensorflow/serving#249: TensorFlow allocates all memory of a GPU at its start."""
        hub.SETTINGS["shared"] = shared
        assert ("TF_FORCE_GPU_ALLOW_GROWTH" in self.spawner(hub).variables([CARD])) is shared
        assert "TF_FORCE_GPU_ALLOW_GROWTH" not in self.spawner(hub).variables([])

    def test_a_full_disk_of_somebodys_keeps_no_server_from_starting(self, hub: Any) -> None:
        assert self.spawner(hub).variables([])["JUPYTER_RUNTIME_DIR"].startswith("/tmp/")  # noqa: S108 - of its container
        wanted = {"delete_to_trash=False", "always_delete_dir=True"}
        assert set(hub.c.Spawner.args) == {f"--FileContentsManager.{trait}" for trait in wanted}

    def test_somebody_who_left_starts_nothing(self, hub: Any) -> None:
        with pytest.raises(hub.Refused, match="eve may not use this host any more"):
            run(self.spawner(hub, "eve").start())

    def test_a_start_makes_a_new_container_of_what_is_said_now(self, hub: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        spawner, calls = self.spawner(hub), []

        async def docker(method: str, *words: Any, **options: Any) -> list[Any]:
            calls.append((method, *words))
            return []

        async def get_object() -> dict[str, str]:
            return {"Id": "1"}

        spawner.docker, spawner.get_object, spawner.object_name = docker, get_object, "hostwright-hub-alice"
        for name, value in (("prepare", lambda *_: ("/files", "/accounts")), ("ids", lambda _: (2001, 2001))):
            monkeypatch.setitem(hub.Containers.start.__globals__, name, value)
        assert run(spawner.start()) == ("127.0.0.1", 30001)
        assert calls == [("remove_container", "hostwright-hub-alice")]
        assert spawner.extra_create_kwargs["user"] == "2001:2001"
        assert spawner.volumes["/files"] == "/workspace"

    @pytest.mark.parametrize(
        ("error", "sentence"),
        [
            (ImageNotFound(), "The image of the servers is gone. Ask whoever runs this host to provision it."),
            (APIError(), "Docker does not start your server: port is already allocated. Tell whoever runs this host."),
        ],
    )
    def test_what_docker_refuses_is_said_on_the_page(
        self, hub: Any, monkeypatch: pytest.MonkeyPatch, error: APIError, sentence: str
    ) -> None:
        spawner = self.spawner(hub)

        async def nothing(*_words: Any, **_options: Any) -> None:
            return None

        async def start(_self: Any) -> None:
            raise error

        spawner.docker = spawner.get_object = nothing
        monkeypatch.setattr(Base, "start", start)
        for name, value in (("prepare", lambda *_: ("/files", "/accounts")), ("ids", lambda _: (2001, 2001))):
            monkeypatch.setitem(hub.Containers.start.__globals__, name, value)
        with pytest.raises(HTTPError) as refused:
            run(spawner.start())
        assert refused.value.jupyterhub_message == sentence  # type: ignore[attr-defined]


class TestFiles:
    def test_a_link_in_the_place_of_a_persons_directory_is_refused(self, hub: Any, tmp_path: Path) -> None:
        (tmp_path / "people" / "alice").symlink_to("/etc")
        with pytest.raises(hub.Refused, match="is a link"):
            hub.directory(str(tmp_path / "people" / "alice"), 0o700, 0, 0)
        assert (Path("/etc").stat().st_mode & 0o777) == 0o755

    def test_a_person_has_a_name_with_which_git_commits(
        self, hub: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """docker-stacks#552. The full name comes unchanged from the account; the user can set another."""
        known = {2001: SimpleNamespace(pw_gecos="J\udcfcrgen A,,,"), 2002: SimpleNamespace(pw_gecos="")}
        names = hub.prepare.__globals__
        monkeypatch.setitem(names, "pwd", SimpleNamespace(getpwuid=known.__getitem__))
        monkeypatch.setattr(os, "chown", lambda *_words, **_options: None)
        for name, uid, full_name in (("al", 2001, b"J\xfcrgen A"), ("bo", 2002, b"bo"), ("cy", 2003, b"cy")):
            _, accounts = hub.prepare(name, uid, uid)
            line = b"%b:x:%d:%d:%b:/workspace:/bin/bash" % (name.encode(), uid, uid, full_name)
            assert line in (Path(accounts) / "passwd").read_bytes().splitlines()
        spawner = hub.Containers()
        spawner.user = SimpleNamespace(name="alice")
        assert spawner.variables([])["EMAIL"] == "alice@jupyterhub"

    def test_ids_are_the_inventorys_or_the_accounts(self, hub: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        accounts = {"bob": SimpleNamespace(pw_name="bob", pw_uid=1005, pw_gid=100)}
        by_number = {1005: accounts["bob"], 2001: SimpleNamespace(pw_name="zoe")}
        names = hub.ids.__globals__
        monkeypatch.setitem(
            names, "pwd", SimpleNamespace(getpwnam=accounts.__getitem__, getpwuid=by_number.__getitem__)
        )
        assert hub.ids("bob") == (1005, 100)
        with pytest.raises(hub.Refused, match="2001 is zoe's"):
            hub.ids("alice")
        accounts["bob"].pw_uid = 33
        with pytest.raises(hub.Refused, match="no user id"):
            hub.ids("bob")

    @pytest.mark.parametrize("given", [(2**31, 100), (1885580785, 2**32 - 2)])
    def test_ids_with_which_no_container_runs(
        self, hub: Any, monkeypatch: pytest.MonkeyPatch, given: tuple[int, int]
    ) -> None:
        """moby#5419: IDs of a directory service; runc starts no container with an ID of 2**31 or more."""
        account = SimpleNamespace(pw_name="bob", pw_uid=given[0], pw_gid=given[1])
        pwd = SimpleNamespace(getpwnam=lambda _: account, getpwuid=lambda _: account)
        monkeypatch.setitem(hub.ids.__globals__, "pwd", pwd)
        with pytest.raises(hub.Refused, match="No container runs with your ids"):
            hub.ids("bob")

"""Keys in JSON files, apt sources, units and accounts: back to what they were, and what others wrote stays."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostwright.common.quoting import sh
from hostwright.plan.model import Answer, Change, Probe, Resource
from hostwright.resources.conditions import Answers
from hostwright.resources.files.files import File, JsonMerged, merge
from hostwright.resources.files.keys_gone import KeysGone, without
from hostwright.resources.files.paths_gone import Original
from hostwright.resources.originals import ORIGIN, changed, keep_original, keep_unit
from hostwright.resources.packages.repositories import AptSource, Keyring, SourcesDisabled
from hostwright.resources.packages.sources_gone import ListsGone, SourcesRead
from hostwright.resources.system.accounts import SystemUser
from hostwright.resources.system.services import Disturbing, RestartedAfter, Service
from hostwright.resources.system.services_gone import ServiceGone, UserGone
from tests.unit.resources.removal.test_removal_files import Place, tree
from tests.unit.support.facts import changes_of
from tests.unit.support.shell import ask, program, run

OURS = {"runtimes": {"nvidia": {"path": "nvidia-container-runtime", "args": []}}, "default-runtime": "nvidia"}
#: objects in which keys of ours may stand already, with our values or others
KEYS = st.sampled_from(["runtimes", "default-runtime", "nvidia", "path", "log"])
OBJECTS = st.dictionaries(
    KEYS,
    st.recursive(
        st.sampled_from(["nvidia", "nvidia-container-runtime", "runc", [], 1]),
        lambda inner: st.dictionaries(KEYS, inner, max_size=3),
        max_leaves=4,
    ),
    max_size=4,
)


@settings(max_examples=300, deadline=None)
@given(before=OBJECTS)
def test_what_was_merged_is_taken_back_whatever_was_there(before: dict[str, object]) -> None:
    assert without(merge(before, OURS), OURS, before) == before


@settings(max_examples=300, deadline=None)
@given(before=OBJECTS, added=OBJECTS)
def test_removal_keeps_keys_that_others_added(before: dict[str, object], added: dict[str, object]) -> None:
    theirs = {f"their-{key}": value for key, value in added.items()}
    assert without({**merge(before, OURS), **theirs}, OURS, before) == {**before, **theirs}


def test_a_value_that_somebody_changed_since_stays() -> None:
    assert without({"default-runtime": "runc"}, OURS, {}) == {"default-runtime": "runc"}


def merged(place: Place) -> JsonMerged:
    return JsonMerged(str(place.root / "docker/daemon.json"), json.dumps(OURS))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@settings(max_examples=15, deadline=None)
@given(before=st.none() | OBJECTS.map(lambda found: json.dumps(found, indent=1)))
def test_a_json_file_is_byte_for_byte_what_it_was(before: str | None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder))
        if before is not None:
            (place.root / "docker").mkdir()
            (place.root / "docker/daemon.json").write_text(before)
        was = tree(place.root)
        resource = merged(place)
        if place.plan(resource) is not None:
            place.apply(resource)
        place.take_away(resource)
        assert tree(place.root) == was


def test_keys_of_others_stay_when_ours_go(place: Place) -> None:
    resource = merged(place)
    place.apply(resource)
    path = place.root / "docker/daemon.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "debug": True}))
    (change,) = place.take_away(resource)
    assert json.loads(path.read_text()) == {"debug": True}
    assert change.want == "as before: without them"
    assert '-{"runtimes"' in change.diff
    assert place.take_away(resource) == []


def test_keys_that_somebody_took_out_are_no_longer_ours(place: Place) -> None:
    resource = merged(place)
    place.apply(resource)
    (place.root / "docker/daemon.json").write_text('{"debug": true}')
    place.take_away(resource)
    assert (place.root / "docker/daemon.json").read_text() == '{"debug": true}'
    assert place.take_away(resource) == []


def test_broken_json_is_replaced_by_the_original_file(place: Place) -> None:
    (place.root / "docker").mkdir()
    (place.root / "docker/daemon.json").write_text('{"debug": true}')
    was = tree(place.root)
    place.apply(merged(place))
    (place.root / "docker/daemon.json").write_text("{")
    (change,) = place.take_away(merged(place))
    assert change.want == "as before: the former file"
    assert tree(place.root) == was


@pytest.mark.parametrize(("text", "rest"), [(json.dumps({**OURS, "debug": 1}), {"debug": 1}), (json.dumps(OURS), None)])
def test_without_a_record_our_values_are_ours(tmp_path: Path, text: str, rest: object) -> None:
    place = Place(tmp_path, recorded=False)
    path = place.root / "docker/daemon.json"
    path.parent.mkdir()
    path.write_text(text)
    place.take_away(merged(place))
    assert (json.loads(path.read_text()) if path.exists() else None) == rest


@pytest.mark.parametrize("text", ["{", "[]", '{"debug": true}', "{}"])
def test_without_a_record_a_file_without_our_values_stays(tmp_path: Path, text: str) -> None:
    place = Place(tmp_path, recorded=False)
    (place.root / "docker").mkdir()
    (place.root / "docker/daemon.json").write_text(text)
    assert place.take_away(merged(place)) == []


def test_a_json_file_too_large_to_read_is_refused() -> None:
    (change,) = changes_of(KeysGone("/etc/a", "{}"), {"test -e": "", "cat -- /etc/a": Answer(0, "{}", truncated=True)})
    assert "inspect it and remove it" in change.sentence


NETWORK = "developer.download.nvidia.com/compute"
LINE = f"deb https://{NETWORK}/cuda /\n"


def in_place(resource: Resource, place: Place) -> tuple[Change, ...]:
    """The changes of a resource of apt's sources with ``/etc/apt`` below the place's root; their steps are run."""

    def reply(probe: Probe) -> Answer:
        return Answer(*ask(probe.script.replace("/etc/apt/", f"{place.root}/"), origin=place.origin))

    def moved(probe: Probe) -> Answer:
        return replace(reply(probe), text=reply(probe).text.replace(f"{place.root}/", "/etc/apt/"))

    changes = changes_of(resource, moved)
    for change in changes:
        for step in change.steps:
            done = run(step.script.replace("/etc/apt/", f"{place.root}/"), origin=place.origin)
            assert done.returncode == 0, done.stderr
    return changes


def test_sources_that_were_switched_off_are_read_again(place: Place) -> None:
    parts = place.root / "sources.list.d"
    parts.mkdir()
    (place.root / "sources.list").write_text(f"deb http://mirror.example/debian bookworm main\n{LINE}# {LINE}")
    (parts / "cuda.list").write_text(f"  {LINE}")
    (parts / "cuda.sources").write_text(f"Types: deb\nURIs: https://{NETWORK}/cuda\n")
    (parts / "theirs.sources.disabled").write_text(f"Types: deb\nURIs: https://{NETWORK}/cuda\n")
    before = {path: path.read_bytes() for path in place.root.rglob("*") if path.is_file()}
    disabled = SourcesDisabled((NETWORK,), "one source")
    assert in_place(disabled, place)
    assert in_place(disabled, place) == ()
    (back,) = disabled.removal()
    assert back == SourcesRead((NETWORK,))
    assert in_place(back, place)
    assert {path: path.read_bytes() for path in place.root.rglob("*") if path.is_file()} == before
    assert in_place(back, place) == ()


def lists(uri: str, names: str, sources: str = "") -> list[str]:
    replies = {
        "os-release": "ID=ubuntu\nVERSION_CODENAME=focal\n",
        "ls -1 /var/lib/apt/lists": names,
        "grep -hsE": sources,
    }
    changes = changes_of(ListsGone(uri, "/etc/apt/sources.list.d/ours.list"), replies)
    return changes[0].steps[0].script.splitlines() if changes else []


@pytest.mark.parametrize(
    ("uri", "name"),
    [
        ("file:///var/cuda-repo-ubuntu2004-11-2-local", "_var_cuda-repo-ubuntu2004-11-2-local_Packages"),
        ("file:/opt/a b_c/", "_opt_a b%5fc_InRelease"),
        (
            "https://download.docker.com/linux/{distribution}",
            "download.docker.com_linux_ubuntu_dists_focal_stable_binary-amd64_Packages",
        ),
        ("https://me:x@nvidia.github.io/stable/deb/$(ARCH)", "nvidia.github.io_stable_deb_amd64_InRelease"),
    ],
)
def test_apts_lists_of_our_repository_go(uri: str, name: str) -> None:
    others = "mirror.example_debian_dists_bookworm_InRelease\nlock\npartial\n"
    assert lists(uri, f"{others}{name}\n") == [sh("rm -f -- %s", f"/var/lib/apt/lists/{name}")]
    assert lists(uri, others) == []


def test_lists_that_another_source_wants_stay() -> None:
    name = "download.docker.com_linux_ubuntu_dists_focal_InRelease\n"
    source = "deb [arch=amd64] https://download.docker.com/linux/ubuntu focal stable\n"
    assert lists("https://download.docker.com/linux/{distribution}", name, source) == []


def shown(active: str, enabled: str, fragment: str = "/etc/systemd/system/a.service") -> str:
    return f"LoadState=loaded\nActiveState={active}\nUnitFileState={enabled}\nFragmentPath={fragment}\n"


def service(now: str, before: str | None, *, recorded: bool = True) -> Change | None:
    noted = Answer(1, "") if before is None else Answer(0, before)
    record = Answer(0 if recorded else 1, "")
    changes = changes_of(ServiceGone("a.service"), {"systemctl": now, "cat -- ": noted, "test -e": record})
    return changes[0] if changes else None


def test_a_unit_that_we_switched_on_is_off_again() -> None:
    change = service(shown("active", "enabled", "/lib/a"), "ActiveState=inactive\nUnitFileState=disabled\n")
    assert change is not None
    assert change.steps[0].script == "systemctl disable -- a.service\nsystemctl stop -- a.service"
    assert change.want == "as before: stopped, disabled"
    assert service(shown("inactive", "disabled"), "ActiveState=inactive\nUnitFileState=disabled\n") is None


def test_a_unit_that_was_on_stays_on() -> None:
    assert service(shown("active", "enabled"), "ActiveState=active\nUnitFileState=enabled\n") is None
    change = service(shown("active", "enabled"), "ActiveState=inactive\nUnitFileState=enabled\n")
    assert change is not None
    assert change.steps[0].script == "systemctl stop -- a.service"


def test_a_unit_that_we_never_switched_on_stays() -> None:
    assert service(shown("active", "enabled"), None) is None
    assert service(shown("active", "enabled", "/lib/systemd/system/a.service"), None, recorded=False) is None
    assert service(shown("active", "enabled"), None, recorded=False) is not None
    assert service("", "ActiveState=inactive\n") is None


def test_how_a_unit_was_is_written_down_once(tmp_path: Path) -> None:
    program(tmp_path / "bin", "systemctl", f"cat {tmp_path}/state")
    for state in ("ActiveState=inactive\n", "ActiveState=active\n"):
        (tmp_path / "state").write_text(state)
        assert run(keep_unit("a@b.service"), path=tmp_path / "bin", origin=tmp_path / "origin").returncode == 0
    assert (tmp_path / "origin/units/a@b.service").read_text() == "ActiveState=inactive\n"


def user(now: str, before: str | None) -> Change | None:
    answer = Answer(1, "") if before is None else Answer(0, before)
    changes = changes_of(UserGone("nvidia"), {"getent": now, "passwd && sed": answer})
    return changes[0] if changes else None


def test_an_account_that_was_not_there_goes_with_its_group() -> None:
    change = user("user\ngroup\n", "user root\ngroup root\n")
    assert change is not None
    assert change.have == "user and group"
    assert change.steps[0].script.startswith("userdel -- nvidia\nif getent group")
    only = user("user\ngroup\n", "user root\ngroup nvidia\n")
    assert only is not None
    assert "groupdel" not in only.steps[0].script


def test_accounts_from_before_or_unrecorded_stay() -> None:
    assert user("user\ngroup\n", "user nvidia\ngroup nvidia\n") is None
    assert user("user\ngroup\n", None) is None
    assert user("", "user root\n") is None


def test_every_such_resource_says_how_it_goes() -> None:
    file = File("/etc/a", "x", then=("ldconfig",))
    assert Service("a.service").removal() == (ServiceGone("a.service"),)
    assert Service("a.service", running=False).removal() == ()
    assert SystemUser("a").removal() == (UserGone("a"),)
    assert Keyring("/k", "/s").removal() == (Original("/k"),)
    source = AptSource("/l", "http://x", "/", "/k")
    assert source.removal() == (Original("/l"), ListsGone("http://x", "/l"))
    fresh = RestartedAfter("a.service", ("/etc/docker/daemon.json", "/var/lib/dpkg/info/x.list"), (file,))
    assert fresh.removal() == (RestartedAfter("a.service", (changed("/etc/docker/daemon.json"),), file.removal()),)
    when = Answers(Probe("true"))
    assert Disturbing(file, "restarts", when).removal() == (Disturbing(file.removal()[0], "restarts", when),)


def test_a_unit_that_goes_itself_is_not_started_anew():
    unit = File("/etc/systemd/system/a.service", "[Service]\n")
    assert RestartedAfter("a.service", (unit.path,), (unit,)).removal() == ()


def test_daemon_restarts_only_if_our_keys_were_removed(place: Place) -> None:
    """That the file is newer than the daemon is no reason: its own admin may have changed it."""
    resource = merged(place)
    (fresh,) = RestartedAfter("docker.service", (resource.path, "/var/lib/dpkg/info/x.list"), (resource,)).removal()
    assert fresh.probes()[0].root, "what Hostwright keeps is for root's eyes"
    mark = Path(changed(resource.path).replace(ORIGIN, str(place.origin)))
    path = Path(resource.path)

    path.parent.mkdir()
    path.write_text('{"debug": true}')
    assert place.take_away(resource) == []
    assert not mark.exists()

    for theirs in ('{"debug": true}', '{"debug": true, "log-level": "warn"}'):
        path.write_text(theirs)
        place.apply(resource)
        assert not mark.exists()
        path.write_text(json.dumps({**json.loads(path.read_text()), "more": 1}))
        place.take_away(resource)
        assert mark.stat().st_mtime_ns <= path.stat().st_mtime_ns, "first the mark: a cut between them loses no restart"
        mark.unlink()

    path.write_text('{"debug": true}')
    place.apply(resource)
    path.write_text('{"debug": true}')
    place.take_away(resource)
    assert not mark.exists(), "somebody else took ours out"


def test_two_editions_of_our_keys_go_in_one_plan(place: Place) -> None:
    former = replace(merged(place), wanted=json.dumps({**OURS, "exec-opts": ["x"]}))
    place.apply(former)
    path = Path(former.path)
    path.write_text(json.dumps({**json.loads(path.read_text()), "debug": True}))
    changes = [place.plan(state) for one in (former, merged(place)) for state in one.removal()]
    for change in changes:
        assert change is not None
        assert run(change.steps[0].script, origin=place.origin).returncode == 0
    assert json.loads(path.read_text()) == {"debug": True}


def test_what_writes_over_a_file_keeps_it_first() -> None:
    for resource in (Keyring("/k", "/s"), JsonMerged("/k", "{}"), File("/k", "x")):
        (change,) = changes_of(resource)
        assert keep_original("/k") in change.steps[0].script

"""What a run is refused for before any host is touched: secrets without TLS, workers that do not fit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

import hostwright
from hostwright import __version__
from hostwright.apply.executors.cluster import fitness
from hostwright.apply.executors.cluster.fitness import (
    Demands,
    Machine,
    code_digest,
    elsewhere,
    files_of,
    misfits,
    refuse_holding,
    refuse_secrets,
    this_machine,
)
from hostwright.apply.executors.cluster.sites import pack
from hostwright.common.errors import InputError
from hostwright.common.secret import Secret
from hostwright.stack.stack import Artifact
from tests.unit.support.clusters import fleet_of

OURS = Machine("1.0", "c0de", "3.11", "2026.1", "here")
TCP, TLS = "tcp://192.0.2.1:4000", "tls://192.0.2.1:4000"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({}, ""),
        ({"machine": "there"}, ""),
        ({"python": "3.12"}, "has Python 3.12, but this machine has 3.11; install the same version there"),
        ({"version": "0.9"}, "has Hostwright 0.9, but this machine has 1.0; install the same version there"),
        ({"dask": "2025.1"}, "has distributed 2025.1, but this machine has 2026.1; install the same version there"),
        ({"code": "0ther"}, "has Hostwright 1.0 with other code than this machine; install the same code there"),
        ({"missing": ("a.deb",)}, "lacks a.deb; run `invoke mirror` there, or set its HOSTWRIGHT_ARTIFACTS to a"),
        ({"missing": ("a", "b", "c", "d", "e")}, "lacks a, b, c and 2 more; run `invoke mirror` there"),
        ({"python": "3.12", "version": "0.9"}, "has Python 3.12, but"),  # what explains the rest comes first
    ],
)
def test_a_worker_that_does_not_fit_is_told_in_one_sentence(change, why):
    found = misfits(Demands(OURS), {TCP: replace(OURS, **change)}, {})
    assert list(found) == ([TCP] if why else [])
    assert found.get(TCP, "").startswith(why)
    assert "\n" not in found.get(TCP, "")


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (ModuleNotFoundError("No module named 'hostwright'"), "has no Hostwright, or another version; install"),
        (Exception("ModuleNotFoundError(\"No module named 'hostwright'\")"), "has no Hostwright, or another version"),
        (AttributeError("module has no attribute 'this_machine'"), "has no Hostwright, or another version"),
        (TimeoutError("no answer within 30 s"), "hangs (no answer within 30 s)"),
        (ValueError("unsupported pickle protocol: 5"), "did not report its versions (ValueError: unsupported pickle"),
    ],
)
def test_a_worker_that_cannot_say_what_it_is_does_not_fit(error, why):
    assert misfits(Demands(OURS), {}, {TCP: error})[TCP].startswith(why)


def test_all_that_do_not_fit_are_told_at_once():
    machines = {f"tcp://192.0.2.{number}:1": replace(OURS, python="3.12") for number in range(5)}
    assert len(misfits(Demands(OURS), machines, {TCP: TimeoutError("x")})) == 6


def test_where_secrets_are_sent_only_workers_with_tls_fit():
    found = misfits(Demands(OURS, tls=True), {TCP: OURS, TLS: OURS}, {})
    assert found == {TCP: "is not connected by TLS, and so cannot receive passwords; enable TLS for the worker"}
    assert misfits(Demands(OURS), {TCP: OURS, TLS: OURS}, {}) == {}


def test_a_machine_says_what_it_is_and_which_files_it_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOSTWRIGHT_ARTIFACTS", str(tmp_path))
    here = Artifact(name="here", file="here.deb", sha256="a" * 64, size=4)
    gone = Artifact(name="gone", file="gone.deb", sha256="b" * 64)
    (tmp_path / "aa" / ("a" * 64)).mkdir(parents=True)
    (tmp_path / "aa" / ("a" * 64) / "here.deb").write_bytes(b"1234")
    machine = this_machine((here, gone, Artifact(name="new", file="new.deb")))
    assert machine.version == __version__
    assert machine.missing == ("gone.deb", "new.deb")
    assert misfits(Demands(machine), {TCP: this_machine()}, {}) == {}


def test_the_digest_of_the_code_is_of_every_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    package = tmp_path / "hostwright"
    (package / "apply/__pycache__").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "apply/start.sh").write_text("true")
    monkeypatch.setattr(hostwright, "__file__", str(package / "__init__.py"))
    digest = code_digest.__wrapped__
    before = digest()
    (package / "apply/__pycache__/x.pyc").write_bytes(b"x")
    assert digest() == before
    (package / "apply/start.sh").write_text("false")
    assert digest() != before


def test_hosts_that_mean_another_machine_on_a_worker_are_refused(tmp_path: Path):
    hosts = {
        "gpu01": {"ansible_host": "192.0.2.1"},
        "gpu02": {"ansible_host": "127.0.0.1"},
        "gpu03": {"ansible_host": "::1"},
        "localhost": {},
        "gpu05": {"ansible_connection": "local"},
    }
    targets = fleet_of(tmp_path, hosts).targets("all")
    there = {TCP: replace(OURS, machine="there")}
    found = [str(mistake) for mistake in elsewhere(targets, OURS, there)]
    assert [sentence.partition(":")[0].partition(" is")[0] for sentence in found] == [
        "gpu02", "gpu03", "localhost", "gpu05",
    ]  # fmt: skip
    assert found[0].startswith(f"gpu02: the worker {TCP} would connect to itself, because it has the address 127.0.0.1")
    same = [str(mistake) for mistake in elsewhere(targets, OURS, {TCP: OURS})]
    assert len(same) == 1
    assert same[0].startswith("gpu05 is this machine (ansible_connection: local)")


def test_files_that_hosts_fetch_themselves_need_not_be_at_hand(tmp_path: Path):
    web = Artifact(name="web", file="web.deb", urls=("https://example.org/web.deb",), sha256="a" * 64)
    own = Artifact(name="own", file="own.deb", sha256="b" * 64)
    fleets = (fleet_of(tmp_path / "one"), fleet_of(tmp_path / "two", artifacts="direct"))
    pushed, direct = (SimpleNamespace(host=one.targets("all")[0].host, artifacts=(web, own)) for one in fleets)
    assert files_of([pushed, direct]) == (web, own)
    assert files_of([direct]) == (own,)


# ---------------------------------------------------------------- secrets


def test_secrets_are_refused_without_tls_and_the_cure_is_named(tmp_path: Path):
    targets = fleet_of(tmp_path, ansible_become_password="hunter22").targets("all")
    with pytest.raises(InputError) as refused:
        refuse_secrets("tcp://192.0.2.9:8786", targets, None)
    sentence = str(refused.value)
    assert sentence.startswith("--scheduler: gpu01 needs its password for sudo (ansible_become_password)")
    assert "tls://" in sentence
    assert "sudo without a password" in sentence
    assert "hunter22" not in sentence
    assert refused.value.exit_status == 2
    assert refuse_secrets("tls://192.0.2.9:8786", targets, None) is True


def test_a_typed_password_is_refused_too_and_no_secret_is_no_trouble(tmp_path: Path):
    targets = fleet_of(tmp_path, hostwright_bmc_password="not-for-this").targets("all")
    with pytest.raises(InputError, match="gpu01 needs the sudo password"):
        refuse_secrets("tcp://192.0.2.9:8786", targets, Secret("hunter22"))
    assert refuse_secrets("tcp://192.0.2.9:8786", targets, None) is False
    assert refuse_secrets("tls://192.0.2.9:8786", targets, None) is False


def test_a_command_is_not_run_to_find_out(tmp_path: Path):
    command = f"touch {tmp_path}/ran; echo x"
    targets = fleet_of(tmp_path / "site", ansible_become_password_command=command).targets("all")
    with pytest.raises(InputError, match="only over TLS"):
        refuse_secrets("tcp://192.0.2.9:8786", targets, None)
    assert not (tmp_path / "ran").exists()


def test_a_password_among_the_sites_files_is_refused_without_tls(tmp_path: Path):
    fleet = fleet_of(tmp_path, hostwright_bmc_password="hunter22", other_password="abc")
    (tmp_path / "templates/x.j2").write_text("abc\n")
    refuse_holding("tcp://192.0.2.9:8786", pack(fleet), fleet, fleet.targets("all"))  # three letters stand anywhere
    (tmp_path / "templates/y.j2").write_text("key = hunter22\n")
    with pytest.raises(InputError, match=r"templates/y.j2 contains a password of the inventory"):
        refuse_holding("tcp://192.0.2.9:8786", pack(fleet), fleet, fleet.targets("all"))
    refuse_holding("tls://192.0.2.9:8786", pack(fleet), fleet, fleet.targets("all"))


def test_the_package_knows_its_own_version_of_dask():
    assert fitness.this_machine().dask.count(".") >= 2

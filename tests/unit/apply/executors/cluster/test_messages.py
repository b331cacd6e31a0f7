"""What is sent of a host: all that its work takes, and of its secrets only those."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from hostwright.apply import events
from hostwright.apply.delivery.sources.settings import FileSettings, Ports
from hostwright.apply.executors.cluster.messages import (
    Claim,
    Go,
    Heartbeat,
    Message,
    Reported,
    fingerprint,
    named,
    needed,
    new_attempt,
    task_of,
    unsealed,
)
from hostwright.audit.judging.audited import audit_probes
from hostwright.common.errors import HostError
from hostwright.common.request import Request
from hostwright.common.secret import Secret
from hostwright.fleet import Fleet
from hostwright.plan.model import Answer, Facts, Plan
from tests.unit.support.clusters import brief_of, fleet_of

PASSWORDS = {
    "ansible_become_password": "sudo-secret",
    "ansible_password": "ssh-secret",
    "hello_token": "role-secret",
    "hostwright_bmc_password": "bmc-secret",
    "other_password": "another-secret",
}


def test_a_host_is_the_same_at_the_other_end_but_for_secrets_that_its_work_does_not_take(tmp_path: Path):
    target = fleet_of(tmp_path, **PASSWORDS).targets("gpu01")[0]
    sent, texts = task_of("session", target, None)
    assert set(texts) == {"sudo-secret", "ssh-secret", "role-secret"}
    whole = pickle.dumps(sent)
    assert not [text for text in PASSWORDS.values() if text.encode() in whole]
    host, password = unsealed(pickle.loads(whole), texts)  # noqa: S301 - our own
    assert password is None
    assert (host.become_password, host.password) == (Secret("sudo-secret"), Secret("ssh-secret"))
    assert host.get("hello_token") == Secret("role-secret")
    with pytest.raises(HostError, match="not sent"):
        host.get("hostwright_bmc_password").reveal()
    plain = {name: value.value for name, value in host.vars.items() if name not in PASSWORDS}
    assert plain == {name: value.value for name, value in target.host.vars.items() if name not in PASSWORDS}
    assert host.vars["stack"].origin == target.host.vars["stack"].origin


def test_what_is_wanted_of_a_host_is_known_without_the_secrets_that_were_not_sent(tmp_path: Path):
    bmc = {"hostwright_bmc": "https://192.0.2.9", "hostwright_bmc_user": "x", "hostwright_bmc_password": "bmc-secret"}
    fleet = fleet_of(tmp_path, **bmc)
    target = fleet.targets("gpu01")[0]
    sent, texts = task_of("session", target, None)
    host, _ = unsealed(sent, texts)
    assert texts == ()
    assert fingerprint(fleet.target(host, check=False)) == fingerprint(target) == sent.wanted


def test_a_password_that_was_typed_is_sent_in_the_place_of_the_inventorys(tmp_path: Path):
    target = fleet_of(tmp_path, ansible_become_password="sudo-secret").targets("gpu01")[0]
    sent, texts = task_of("session", target, Secret("typed"))
    assert texts == ("typed",)
    host, password = unsealed(sent, texts)
    assert password == Secret("typed")
    assert host.become_password is not None
    assert host.become_password != Secret("sudo-secret")


def test_what_a_host_answered_to_every_standard_probe_arrives_as_it_was(tmp_path: Path):
    """Probes with parts of passes, too, which hold functions."""
    (tmp_path / "hosts.yml").write_text("all: {hosts: {gpu01: {}}}\n")
    (target,) = Fleet.load(tmp_path).targets("all")
    probes = audit_probes(target)
    assert sum(probe.part is not None for probe in probes) > 20
    facts = Facts({probe: Answer(0, str(number)) for number, probe in enumerate(probes)})
    event = events.Observed("gpu01", Plan("gpu01", "tensorflow-2.9", ()), facts)
    said = Message("gpu01", new_attempt(), "tls://192.0.2.7:1", 1, "", Reported(event))
    told = Message.unpacked(said.packed()["body"])
    assert isinstance(told.body, Reported) and isinstance(told.body.event, events.Observed)
    assert told.body.event.facts == facts


def test_a_host_without_secrets_sends_none(tmp_path: Path):
    target = fleet_of(tmp_path, hostwright_bmc_password="bmc-secret").targets("gpu01")[0]
    sent, texts = task_of("session", target, None)
    assert texts == ()
    assert (needed(target, None), named(target, None)) == (frozenset(), "")
    assert unsealed(sent, ())[0].name == "gpu01"


@pytest.mark.parametrize(
    ("variables", "password", "name"),
    [
        ({"ansible_become_password": "x"}, None, "its password for sudo (ansible_become_password)"),
        ({"ansible_become_password_command": "echo x"}, None, "its password for sudo (ansible_become_password)"),
        ({"ansible_password": "x"}, None, "its password for ssh (ansible_password)"),
        ({"hello_token": "x"}, None, "hello_token"),
        ({}, Secret("x"), "the sudo password (--ask-become-pass)"),
        (
            {"hostwright_bmc_password": "hunter22", "motd": "it is hunter22"},
            None,
            "a variable that has a password in its text",
        ),
    ],
)
def test_the_secret_that_is_needed_is_named(tmp_path: Path, variables, password, name):
    assert named(fleet_of(tmp_path, **variables).targets("gpu01")[0], password) == name


def test_a_command_that_prints_no_password_is_the_hosts_error(tmp_path: Path):
    target = fleet_of(tmp_path, ansible_become_password_command="exit 1").targets("gpu01")[0]
    with pytest.raises(HostError, match="gpu01: the command of ansible_become_password"):
        task_of("session", target, None)


def test_the_fingerprint_is_of_what_is_wanted(tmp_path: Path):
    one = fingerprint(fleet_of(tmp_path / "one").targets("gpu01")[0])
    assert one == fingerprint(fleet_of(tmp_path / "two").targets("gpu01")[0])
    assert one != fingerprint(fleet_of(tmp_path / "three", hello_text="bye").targets("gpu01")[0])
    other = {"distributions": {"debian": ["11"]}}
    assert one != fingerprint(fleet_of(tmp_path / "four", stack=other).targets("gpu01")[0])


def test_briefs_and_tasks_can_be_sent_and_their_bytes_are_not_shown(tmp_path: Path):
    fleet = fleet_of(tmp_path)
    change = Request(drain=True, executor="dask", scheduler="tls://a:1")
    brief = brief_of(fleet, change)
    sent, _ = task_of(brief.session, fleet.targets("gpu01")[0], None)
    assert pickle.loads(pickle.dumps((brief, sent))) == (brief, sent)  # noqa: S301 - our own
    assert brief.session == f"hostwright-{brief.stamp.id}"
    assert "body" not in repr(brief)
    assert "body" not in repr(sent)
    assert "xyz" not in repr(Heartbeat(going={"a": Go(b"xyz")}))


def test_a_message_is_the_same_at_the_other_end():
    message = Message("gpu01", new_attempt(), "tls://a:1", 1, "2027-01-01T00:00:00+00:00", Claim("w1", b"key"))
    assert Message.unpacked(message.packed()["body"]) == message
    assert new_attempt() != new_attempt()


def test_what_is_no_message_is_not_taken_for_one():
    import zlib

    with pytest.raises(TypeError, match="not a message: dict"):
        Message.unpacked(zlib.compress(pickle.dumps({})))


def test_workers_know_which_hosts_fetch_their_files_and_not_from_where_on_this_machine(tmp_path: Path):
    hosts = {"gpu01": {"hostwright_peer_group": "rack7"}, "gpu02": {"artifacts": "push"}}
    brief = brief_of(fleet_of(tmp_path, hosts, hostwright_files_address="192.0.2.1", hostwright_files_port="8470-8479"))
    assert brief.files == {"gpu01": FileSettings(ports=Ports(8470, 8479), group="rack7")}

"""Every verb on hosts with a past: what is wrong is named, the stack comes on, and what was the user's stays."""

from __future__ import annotations

from tests.lab.conftest import on
from tests.lab.strangers import DEAD_PROXY, PROXY
from tests.lab.trees import Tree
from tests.past.conftest import Story

OURS = r"/var/lib/hostwright(/.*)?"


def words(text: str) -> str:
    """Text without the line breaks of a terminal."""
    return " ".join(text.split())


def rules(host: object) -> set[str]:
    assert isinstance(host, dict)
    return {finding["rule"] for finding in host["findings"]}


def none(lines: list[str]) -> None:
    """No line, or all of them in the failure's message."""
    assert not lines, "\n".join(lines)


def test_audit_reads_every_layer(story: Story) -> None:
    host = story.host("audit")
    assert host["sentence"] == ""
    skipped = {one["layer"] for one in host["not_checked"]}
    assert skipped <= {"gpu", "driver", "container"}  # no driver, no kernel log
    unread = {layer["name"] for layer in host["layers"] if layer["status"] == "unread"}
    assert unread == (set() if story.past.driver else {"gpu"})  # who tells of the cards, without a driver?
    assert story.once("audit", "--json").returncode == 3


def test_doctor_finds_what_is_wrong_and_nothing_else(story: Story) -> None:
    assert rules(story.host("doctor")) == story.past.finds


def test_plan_names_what_it_must(story: Story) -> None:
    done = story.once("plan")
    assert done.returncode == 3, done.stderr
    assert [text for text in story.past.says if text not in words(done.stdout + done.stderr)] == []


def test_looking_changes_nothing(story: Story) -> None:
    for verb in ("audit", "doctor"):
        story.once(verb, "--json")
    story.once("plan")
    none(story.before.differences(Tree.of(story.machine), but=OURS))


def test_a_dead_proxy_is_named_and_touches_nothing_of_the_users(story: Story) -> None:
    on(story.machine, DEAD_PROXY)
    done = story.run("provision", "--yes")
    on(story.machine, f"rm {PROXY}")
    text = words(done.stdout + done.stderr)
    assert done.returncode == 1, text
    assert "the proxy 127.0.0.1 does not answer" in text
    assert "hunter2" not in text
    none(users(story))


def test_provision_brings_it_to_the_stack(story: Story) -> None:
    done = story.once("provision", "--yes")
    assert done.returncode == 0
    none(users(story))


def test_verify_passes(story: Story) -> None:
    assert story.once("verify").returncode == 0


def test_a_second_run_finds_nothing_to_do(story: Story) -> None:
    assert not story.host("provision")["changed"]


def test_what_doctor_finds_then_is_the_users(story: Story) -> None:
    done = story.run("doctor")
    assert {rule for rule in story.past.finds if rule in done.stdout} == story.past.keeps
    assert ("no known problem" in done.stdout) == (not story.past.keeps)


def test_after_removal_what_was_the_users_is_as_before(story: Story) -> None:
    assert story.once("remove", "--yes").returncode == 0
    lines = story.before.differences(Tree.of(story.machine))
    none([line for line in lines if not story.taken.has(line, story.past)])
    if story.past.back:
        none([line for line in lines if line.startswith(("gone: ", "come: "))])
    none(users(story))


def users(story: Story) -> list[str]:
    """What is not as it was in the places of people, whatever else the stack took the place of."""
    lines = story.before.differences(Tree.of(story.machine))
    return [line for line in lines if line.startswith(("/home/", "/srv/", "/root/"))]

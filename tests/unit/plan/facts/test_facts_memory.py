"""Tests that a result for one host is reused only for hosts with the same answers to the same reads, within limits."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostwright.common.errors import NotAnswered
from hostwright.plan.facts import memory as memories
from hostwright.plan.facts.memory import Memory
from hostwright.plan.model import Answer, Facts, Probe

PROBES = tuple(Probe(name) for name in "abcd")
A, B, C, D = PROBES


def host(**texts: str) -> Facts:
    """Answers to some of the probes."""
    return Facts({Probe(name): Answer(0, text) for name, text in texts.items()})


class Counted:
    """Work that counts its runs."""

    def __init__(self, work: Callable[[Facts], Any]):
        self.calls, self._work = 0, work

    def __call__(self, facts: Facts) -> Any:
        self.calls += 1
        return self._work(facts)


def entries(text: str) -> Mapping[str, str]:
    return dict(line.partition("=")[::2] for line in text.splitlines())


@pytest.mark.parametrize(
    ("read", "same"),
    [
        (lambda table: table.get("x"), True),
        (lambda table: "x" in table, True),
        (lambda table: table.get("none"), True),
        (lambda table: "z" in table, False),
        (lambda table: table.get("y"), False),
        (sorted, False),
        (len, False),
    ],
)
def test_of_a_table_only_what_is_asked_for_is_read(read: Callable[[Mapping[str, str]], Any], same: bool) -> None:
    work, memory = Counted(lambda facts: read(facts.table(A, entries))), Memory()
    for text in ("x=1\ny=2", "x=1\ny=3\nz=4"):
        assert memory.judged("work", host(a=text), work) == read(entries(text))
    assert work.calls == (1 if same else 2)


@pytest.mark.parametrize(
    ("facts", "error"), [(host(b="x"), KeyError), (Facts({A: Answer(137, "", late_s=30)}), NotAnswered)]
)
def test_a_table_in_an_answer_that_is_not_there_is_no_empty_table(facts: Facts, error: type[Exception]) -> None:
    def reads(facts: Facts) -> str | None:
        return facts.table(A, entries).get("x")

    memory = Memory()
    for _ in range(2):
        with pytest.raises(error):
            memory.judged("reads", facts, reads)
    assert memory.judged("reads", host(a="x=1"), reads) == "1"


def test_who_asks_whether_a_probe_was_answered_does_not_read_the_answer() -> None:
    work, memory = Counted(lambda facts: (A in facts, A in facts.late)), Memory()
    assert [memory.judged("work", host(a=text), work) for text in "xy"] == [(True, False)] * 2
    assert work.calls == 1
    late = Facts({A: Answer(137, "", late_s=30)})
    assert [memory.judged("work", facts, work) for facts in (host(b="x"), late)] == [(False, False), (False, True)]
    assert work.calls == 3


def first(facts: Facts) -> str:
    return facts[A].text


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Answer(0, "x"), Answer(1, "x")),
        (Answer(0, "x"), Answer(0, "y")),
        (Answer(0, "x"), Answer(0, "x", truncated=True)),
        (Answer(0, "x"), Answer(137, "", late_s=30)),
        (Answer(137, "", late_s=30), Answer(137, "", late_s=60)),
        (Answer(0, "x" * 1000), Answer(0, "x" * 999 + "y")),
        (Answer(0, "\ud800" * 100), Answer(0, "?" * 100)),
        (Answer(0, ""), None),
    ],
)
def test_whoever_answers_otherwise_is_judged_for_itself(one: Answer | None, other: Answer | None) -> None:
    def known(facts: Facts) -> object:
        return facts.late.get(A) or facts.get(A)

    work, memory = Counted(known), Memory()
    for answer in (one, other, one, other):
        facts = Facts({A: answer} if answer else {})
        assert memory.judged("known", facts, work) == known(facts)
    assert work.calls == 2


def test_what_nobody_read_makes_no_difference() -> None:
    work, memory = Counted(lambda facts: facts[B].text if facts[A].text == "read on" else "enough"), Memory()
    assert memory.judged("j", host(a="stop", b="1"), work) == "enough"
    assert memory.judged("j", host(a="stop", b="2"), work) == "enough"
    assert memory.judged("j", host(a="read on", b="1"), work) == "1"
    assert memory.judged("j", host(a="read on", b="2"), work) == "2"
    assert work.calls == 3


@pytest.mark.parametrize("reads_all", [dict, len, list, lambda facts: dict(facts.items()), lambda facts: facts == {}])
def test_who_reads_all_facts_is_asked_again_for_any_other(reads_all: Callable[[Facts], object]) -> None:
    work, memory = Counted(reads_all), Memory()
    for facts in (host(a="1"), host(a="1"), host(a="1", b="2"), host(a="2")):
        assert memory.judged("all", facts, work) == reads_all(facts)
    assert work.calls == 3


def test_who_looks_for_hung_probes_reads_all() -> None:
    hung = Facts({A: Answer(0, "x"), B: Answer(137, "", late_s=30)})
    work, memory = Counted(lambda facts: [probe.script for probe in facts.late]), Memory()
    assert [memory.judged("late", facts, work) for facts in (hung, host(a="x"), hung)] == [["b"], [], ["b"]]
    assert work.calls == 2


def test_what_a_judgement_raises_is_its_result_where_that_is_said() -> None:
    hung = Facts({A: Answer(137, "", late_s=30)})
    work, memory = Counted(first), Memory()
    for _ in range(2):
        with pytest.raises(NotAnswered):
            memory.judged("first", hung, work)
    assert work.calls == 1
    for _ in range(2):  # not probed: an error in the program, which is not stored
        with pytest.raises(KeyError):
            memory.judged("first", host(b=""), work)
    assert work.calls == 3


def test_a_judgement_reads_what_the_judgements_in_it_read() -> None:
    memory = Memory()
    inner, alone = Counted(first), Counted(lambda facts: facts[B].text)
    outer = Counted(lambda facts: memory.judged("inner", facts, inner) + memory.judged("alone", facts, alone))
    said = [memory.judged("outer", host(a=a, b=b), outer) for a, b in ("11", "21", "12", "22", "11", "22")]
    assert said == ["11", "21", "12", "22", "11", "22"]
    assert (outer.calls, inner.calls, alone.calls) == (4, 2, 2)


Tree = tuple[int, Mapping[str, Any]] | str
TREES: st.SearchStrategy[Any] = st.recursive(
    st.text("xyz", max_size=2),
    lambda below: st.tuples(st.integers(0, 3), st.dictionaries(st.sampled_from(["", "1", "2"]), below)),
    max_leaves=12,
)
SAID = st.sampled_from([Answer(0, "1"), Answer(0, "2"), Answer(9, "", late_s=1)])
HOSTS = st.lists(st.dictionaries(st.sampled_from(PROBES), SAID), min_size=1, max_size=12)


def follow(tree: Any, facts: Facts) -> str:
    """A judgement that selects each next read by the previous answer: a path through ``tree``."""
    said = ""
    while isinstance(tree, tuple):
        number, below = tree
        probe = PROBES[number]
        text = "" if probe not in facts else facts[probe].text
        said, tree = said + text, below.get(text, "nothing")
    return said + str(tree)


@given(TREES, TREES, HOSTS, st.integers(1, 4), st.integers(1, 3))
def test_remembered_or_not_the_result_is_the_same(
    outer: Any, inner: Any, hosts: list[dict[Probe, Answer]], most_results: int, most_judgements: int
) -> None:
    memory = Memory(most_results, most_judgements)

    def both(facts: Facts) -> tuple[str, str]:
        return follow(outer, facts), memory.judged("inner", facts, lambda known: follow(inner, known))

    for answers in hosts * 2:
        facts = Facts(answers)
        expected = (follow(outer, facts), follow(inner, facts))
        assert memory.judged("outer", facts, both) == expected


def nodes(known: memories._Judgement) -> int:
    """The number of questions and results stored for a judgement."""
    waiting, found = [known.begin], 0
    while waiting:
        node = waiting.pop()
        found += node is not None
        if isinstance(node, memories._Asked):
            waiting += node.then.values()
    return found


def test_what_is_remembered_is_bounded() -> None:
    memory, most = Memory(most_results=4, most_judgements=3), 0
    for number in range(200):
        facts = host(a=str(number), b=str(number % 7))
        for name in "pqrst":
            assert memory.judged(name, facts, lambda facts: (first(facts), facts[B].text))[0] == str(number)
        assert memory.kept("name", number, lambda number=number: number) == number
        most = max(most, *(nodes(known) for known in memory._judgements.values()))
        assert len(memory._judgements) <= 3
        assert len(memory._kept["name"]) <= 4
    assert most <= 4 * 3  # a question, an answer that leads to the next question, a result


def test_a_judgement_that_never_comes_out_the_same_costs_less_and_less() -> None:
    memory, noted = Memory(most_results=4), 0
    for number in range(400):
        work = Counted(first)
        memory.judged("j", host(a=str(number)), work)
        assert work.calls == 1
        noted += not memory._judgements["j"].resting
    assert noted < 50


def test_a_judgement_that_is_dear_to_note_rests_after_a_few_tries_of_no_use() -> None:
    memory, noted = Memory(), 0
    for number in range(60):
        memory.judged("j", host(a=str(number)), first, tries=4)
        noted += not memory._judgements["j"].resting
    assert noted == 4


def test_a_judgement_that_was_of_use_is_remembered_for_more_than_a_few() -> None:
    memory, work = Memory(), Counted(first)
    for number in range(60):
        for _ in range(2):
            assert memory.judged("j", host(a=str(number)), work, tries=4) == str(number)
    assert work.calls == 60


def test_after_hosts_that_all_differ_equal_ones_are_judged_once_again() -> None:
    memory, work = Memory(most_results=4), Counted(first)
    for number in range(20):
        memory.judged("j", host(a=str(number)), work)
    before = work.calls
    for _ in range(1000):
        memory.judged("j", host(a="same"), work)
    assert work.calls - before < 40


def test_threads_judge_once() -> None:
    memory, work = Memory(), Counted(first)
    ready = threading.Barrier(8)

    def judge() -> None:
        ready.wait(60)
        for number in range(50):
            assert memory.judged("j", host(a=str(number)), work) == str(number)

    threads = [threading.Thread(target=judge) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert work.calls == 50


def test_a_copy_begins_empty() -> None:
    memory, work = Memory(), Counted(first)
    memory.judged("j", host(a="1"), work)
    copy.deepcopy(memory).judged("j", host(a="1"), work)
    assert work.calls == 2

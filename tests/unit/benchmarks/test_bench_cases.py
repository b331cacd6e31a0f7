"""What cases decide: the files that they make up, and what a peer's work is missing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from benchmarks.__main__ import all_s, shown
from benchmarks.cases import clientfiles, hung, provision, pytorch
from benchmarks.cases.all import CASES
from benchmarks.cases.case import Case, Cost, Wanted, costed, estimate_s
from benchmarks.cases.ours import AUDIT, PLAN, all_green, probe_script
from benchmarks.figures import record as recorded
from benchmarks.figures.sample import Sample
from benchmarks.figures.statistics import Figures
from benchmarks.measuring.command import PROJECT, Command
from benchmarks.measuring.machine import quiet, too_loaded
from benchmarks.page import tables
from benchmarks.page.document import FIGURES
from benchmarks.places.places import Places
from lab import cgroups


def test_files_of_an_operator_have_the_lines_that_they_should() -> None:
    assert len(clientfiles.others(10_000)) == 10_000
    assert len({line.split()[2] for line in clientfiles.others(500)}) == 500
    assert "".join(clientfiles.stanzas(1_000)).count("Host node") == 1_000


def test_the_last_end_counts() -> None:
    assert hung.last("12.5\n14.25\n13\n") == 14.25


GREEN = "gpu[01-24] (24 hosts)  as desired: nothing to do\n24 hosts: as desired, nothing to do\n"


@pytest.mark.parametrize(
    ("contender", "size", "status", "printed", "good"),
    [
        (PLAN, 24, 0, GREEN, True),
        (PLAN, 4, 0, GREEN, False),
        (PLAN, 24, 3, GREEN, False),
        (PLAN, 1, 0, "1 host: as desired, nothing to do\n", True),
        (PLAN, 24, 0, "24 hosts: 2 to change", False),
        (AUDIT, 24, 0, "24 hosts against lab, 9.7 s: 24 as desired\n", True),
        (AUDIT, 24, 0, "24 hosts against lab, 9.7 s: 23 as desired, 1 drifted\n", False),
    ],
)
def test_a_look_counts_only_if_every_host_is_green(
    contender: str, size: int, status: int, printed: str, good: bool
) -> None:
    assert (all_green(contender, size, status, printed) == "") is good


def test_the_probe_program_alone_is_what_was_sent(tmp_path: Path) -> None:
    script = probe_script([(b"/bin/sh -c 'a b'", b"program")], tmp_path)
    assert (tmp_path / "sent-0").read_bytes() == b"program"
    assert script == f"""ssh -F "$1" "$2" '/bin/sh -c '"'"'a b'"'"'' <{tmp_path}/sent-0 >/dev/null 2>&1 || exit"""


def document(*changes: tuple[str, str, str], errors: Sequence[str] = ()) -> str:
    roles = [{"role": role, "changes": [{"what": what, "have": have}]} for role, what, have in changes]
    return json.dumps({"plans": [{"host": "bare01", "roles": roles}], "errors": list(errors)})


def test_what_others_left_out_is_named() -> None:
    own = (
        ("driver", "NVIDIA driver", "files not recorded"),
        ("cudnn", "files of cudnn 8.1.0.77", "no record of its files"),
        ("tensorflow", "venv /opt/tensorflow-2.9", "a directory"),
    )
    assert provision.remaining(document(), {}) == ""
    assert provision.remaining(document(*own), provision.SCENARIO.records) == ""
    assert provision.remaining(document(own[0]), {}) == "bare01: driver: NVIDIA driver: files not recorded"
    missing = ("driver", "NVIDIA kernel module", "nvidia-uvm not loaded")
    assert "nvidia-uvm not loaded" in provision.remaining(document(*own, missing), provision.SCENARIO.records)
    assert provision.remaining(document(errors=["bare01: refuses"]), {}) == "bare01: refuses"


def test_what_a_role_without_records_wants_to_change_is_missing() -> None:
    text = document(("base", "packages dkms", "dkms absent"))
    assert provision.remaining(text, provision.SCENARIO.records) == "bare01: base: packages dkms: dkms absent"


@pytest.mark.parametrize("scenario", [provision.SCENARIO, pytorch.SCENARIO], ids=lambda scenario: scenario.script)
def test_only_own_records_may_be_missing(scenario: provision.Scenario) -> None:
    own = tuple((role, "what it records", have) for role, have in scenario.records.items())
    assert provision.remaining(document(*own), scenario.records) == ""
    absent = [(role, "what it installs", "absent") for role in scenario.records]
    for role, what, have in absent:
        text = provision.remaining(document(*own, (role, what, have)), scenario.records)
        assert text == f"bare01: {role}: {what}: absent"


def test_hosts_with_pytorch_have_names_and_a_stack_of_their_own() -> None:
    kinds = [case.SCENARIO.files.kind for case in (provision, pytorch)]
    assert [kind.stack for kind in kinds] == ["lab", "lab-pytorch-2.14"]
    assert [kind.names("bare", 2) for kind in kinds] == [("bare01", "bare02"), ("today-bare01", "today-bare02")]
    assert len({name for kind in kinds for name in (kind.first, kind.snapshot)}) == 4


def test_the_fastest_tool_on_four_hosts_is_what_counts() -> None:
    walls = {"hostwright provision": 60.0, "pyinfra": 150.0, "Ansible, pipelining": 300.0}
    found = Figures(tuple(Sample(name, 4, "", 0, wall_s, 1.0) for name, wall_s in walls.items()))
    assert provision.to_fastest(found) == pytest.approx(0.4)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.NAME)
def test_every_case_has_goals_that_nothing_reaches_without_samples(case: Case) -> None:
    assert case.goals()
    assert {one.verdict for one in tables.verdicts(case, Figures(()))} == {"not measured"}
    assert case.TITLE and case.ABOUT.strip().endswith(".")


def test_what_went_wrong_is_shown_without_places_of_this_machine(tmp_path: Path) -> None:
    why = f"{tmp_path}/site is no site:\n  {PROJECT}/tasks.py {Path.home()}/.ssh " + "x" * 500
    with ExitStack() as stack:
        found = shown(why, Places(tmp_path, stack, print))
    assert found.startswith("WORK/site is no site: ./tasks.py ~/.ssh xxx")
    assert found.endswith("xxx") and len(found) <= 303


def test_all_of_it_takes_45_minutes() -> None:
    assert all_s(CASES, Wanted()) <= 45 * 60


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.NAME)
def test_an_estimate_is_of_walls_that_were_recorded(case: Case) -> None:
    """Of what was recorded and is still measured; a file that is smaller now may count less."""
    if case.NAME not in (records := recorded.read(FIGURES)):
        pytest.skip("not recorded yet")
    walls: dict[tuple[str, int], float] = {}
    figures = records[case.NAME].figures
    for one in figures.series():
        key = (one.contender, one.size)
        walls[key] = walls.get(key, 0) + figures.median(*key, "wall_s", one.variant)
    both = [(cost.wall_s, walls[key]) for cost in case.COSTS if (key := (cost.contender, cost.size)) in walls]
    estimated_s, measured_s = (sum(column) for column in zip(*both, strict=True))
    assert measured_s / 3 < estimated_s < measured_s * 2


def test_at_a_cases_own_sizes_what_has_a_cost_is_measured_and_at_others_all() -> None:
    costs = (Cost("plan", 1, 2), Cost("plan", 24, 6), Cost("Ansible", 1, 60, rounds=1))
    commands = [Command(name, size, ()) for size in (1, 10, 24) for name in ("plan", "Ansible", "pyinfra")]
    assert [(one.contender, one.size, one.rounds) for one in costed(costs, commands)] == [
        ("plan", 1, 0), ("Ansible", 1, 1), ("plan", 10, 0), ("Ansible", 10, 1), ("pyinfra", 10, 1), ("plan", 24, 0),
    ]  # fmt: skip


def test_an_estimate_counts_the_rounds_and_the_hosts_that_were_asked_for() -> None:
    usual = estimate_s(hung, Wanted())
    assert usual == hung.REST_S + sum(cost.wall_s for cost in hung.COSTS)
    assert estimate_s(hung, Wanted(rounds=9)) == usual
    assert estimate_s(hung, Wanted(sizes=(50,))) == usual / 2


def test_a_loaded_machine_is_refused() -> None:
    assert quiet(0.5, 2) and not quiet(0.51, 2)
    assert too_loaded(0.1, 2) == ""
    assert too_loaded(7.5, 2).startswith(
        "the load of this machine is 7.50, and figures mean little above 0.50 (2 cores)"
    )


def test_processor_time_is_read_from_both_kinds_of_control_groups() -> None:
    assert cgroups.number("123456789\n", None) == 123456789
    assert cgroups.number("usage_usec 5000\nuser_usec 4000\n", "usage_usec") == 5000
    assert cgroups.number("nr_periods 0\n", "usage_usec") is None

"""The passes of resources tell what each probe tells by itself: units with their files, apt's sources, artifacts."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest

from hostwright.plan.model import Answer, Facts, Probe
from hostwright.plan.probing import new_nonce, parse, programs
from hostwright.resources.files.archives import Delivered
from hostwright.resources.packages.packages import DebsAbsent
from hostwright.resources.packages.repositories import SourcesDisabled
from hostwright.resources.system.services import RestartedAfter
from hostwright.resources.system.units import UNITS, show_probe
from hostwright.stack.stack import Artifact
from tests.unit.plan.test_passes import as_one_user
from tests.unit.support.shell import program, run

STARTED_S = 1_700_000_000  #: when the units began, as seconds since 1970


def look(probes: list[Probe], path: Path | None = None, *, alone: bool = False, **places: str) -> Facts:
    """The answers of these probes, by the machine's own shell, as one user and with stand-ins of tools in ``path``."""
    mine = as_one_user(probes)
    nonce = new_nonce()
    text, _ = programs(mine, nonce, alone=alone)
    for place, here in places.items():
        text = text.replace(place.replace("_", "/"), here)
    answers = parse(mine, nonce, run(f"set +eu\n{text}", path=path).stdout, "gpu01", alone=alone)
    return Facts({probe: answers[own] for probe, own in zip(probes, mine, strict=True) if own in answers})


def shown(began_s: int | None, active: str = "active", enabled: str = "enabled") -> str:
    """A unit as ``systemctl show`` prints it; ``None`` does not run."""
    began = "" if began_s is None else datetime.fromtimestamp(began_s, UTC).strftime("%a %Y-%m-%d %H:%M:%S UTC")
    lines = (f"MainPID={0 if began_s is None else 87}", f"ExecMainStartTimestamp={began}", "LoadState=loaded")
    return "\n".join((*lines, f"ActiveState={active}", f"UnitFileState={enabled}"))


def systemd(folder: Path, *units: str) -> Path:
    """Stand-ins of systemd's tools: what they show of all units, and what busctl says of any."""
    (folder / "shown").write_text("\n\n".join(units) + "\n")
    program(folder / "bin", "systemctl", f'[ "$TZ" = UTC ] || exit 1; cat {folder}/shown')
    program(folder / "bin", "busctl", f'echo >>{folder}/asked; printf "u 87\\nt {STARTED_S}500000\\n"')
    return folder / "bin"


@pytest.mark.parametrize(
    ("changed_s", "asked", "newer"),
    [
        (STARTED_S - 1, False, False),
        (STARTED_S - 3600, False, False),
        (STARTED_S, True, False),
        (STARTED_S + 0.4, True, False),
        (STARTED_S + 0.6, True, True),
        (STARTED_S + 1, True, True),
        (4_000_000_000, True, False),
    ],
)
def test_whether_a_file_is_newer_is_asked_alone_only_within_the_second(
    tmp_path: Path, changed_s: float, asked: bool, newer: bool
) -> None:
    """A day, an hour and a minute are compared too: the time as it is printed grows with each."""
    file, other = tmp_path / "conf", tmp_path / "other"
    for path, time_s in ((file, changed_s), (other, 0.0)):
        path.touch()
        os.utime(path, ns=(round(time_s * 10**9),) * 2)
    tools = systemd(tmp_path, shown(STARTED_S), shown(STARTED_S - 7), shown(None))
    states = [
        RestartedAfter("a.service", (str(other), str(file))),
        RestartedAfter("b.service", (str(other), f"{file}.gone")),
        RestartedAfter("c.service", (str(file),)),
    ]
    facts = look([state.probes()[0] for state in states], tools)
    assert facts[states[0].probes()[0]].text == (f"{file}\n" if newer else "")
    assert [facts[state.probes()[0]].text for state in states[1:]] == ["", ""]
    assert (tmp_path / "asked").exists() == asked


def test_units_are_shown_by_one_call_as_each_by_itself(tmp_path: Path) -> None:
    units = (shown(STARTED_S), shown(None, "failed", "disabled"), shown(None, "inactive", ""))
    tools = systemd(tmp_path, *units)
    file = tmp_path / "conf"
    file.touch()
    os.utime(file, (0, 0))
    restarted = RestartedAfter("a.service", (str(file),)).probes()[0]
    shows = [show_probe(f"{name}.service") for name in "abc"]
    for probes in (shows, [restarted, *shows], [*shows, restarted]):
        facts = look(probes, tools)
        assert [facts[probe].text for probe in shows] == [
            "LoadState=loaded\nActiveState=active\nUnitFileState=enabled\n",
            "LoadState=loaded\nActiveState=failed\nUnitFileState=disabled\n",
            "LoadState=loaded\nActiveState=inactive\nUnitFileState=\n",
        ]
        assert facts.get(restarted, Answer(0, "")) == Answer(0, "")


@pytest.mark.parametrize(
    "text", ["", "LoadState=loaded\n", "LoadState=loaded\nActiveState=active\nUnitFileState=x\n", "\n\n\n\n", "old a\n"]
)
def test_what_systemd_does_not_show_as_known_says_nothing(text: str) -> None:
    with pytest.raises(ValueError, match="systemctl show printed unexpected output"):
        UNITS.found(("a.service", "b.service"), text)


def test_without_systemd_each_unit_is_asked_by_itself(tmp_path: Path) -> None:
    program(tmp_path / "bin", "systemctl", "echo 'System has not been booted with systemd' >&2; exit 1")
    shows = [show_probe(f"{name}.service") for name in "ab"]
    facts = look(shows, tmp_path / "bin")
    assert [facts[probe] for probe in shows] == [Answer(1, ""), Answer(1, "")]


@pytest.fixture
def apt(tmp_path: Path) -> Path:
    """apt's sources."""
    apt = tmp_path / "apt"
    (apt / "sources.list.d").mkdir(parents=True)
    (apt / "sources.list").write_text("deb https://one.example/x ./\n# deb https://two.example ./\n")
    (apt / "sources.list.d/b.list").write_text("deb https://two.example/two.example ./\ndeb https://four.example ./\n")
    (apt / "sources.list.d/b.list.save").write_text("deb https://two.example ./\n")
    (apt / "sources.list.d/c.list").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").write_text("deb https://one.example ./\n")
    (apt / "sources.list.d/dangling.list").symlink_to("nowhere")
    (apt / "sources.list.d/folder.list").mkdir()
    os.mkfifo(apt / "sources.list.d/pipe.list")
    return apt


STATES = [
    SourcesDisabled(texts, "one is enough")
    for texts in (("one.example", "two.example"), ("two.example",), ("four.example",))
]


def sources(apt: Path, *, alone: bool = False) -> list[Answer]:
    facts = look([state.probes()[0] for state in STATES], alone=alone, **{"_etc_apt": str(apt)})
    return [facts[state.probes()[0]] for state in STATES]


def test_sources_are_read_once_for_all_who_ask(apt: Path) -> None:
    first, second, third = sources(apt)
    assert [first, second, third] == sources(apt, alone=True)
    assert [line.rpartition("/apt/")[2] for line in first.text.splitlines()] == [
        "sources.list:deb https://one.example/x ./",
        "sources.list:# deb https://two.example ./",
        "sources.list.d/b.list:deb https://two.example/two.example ./",
        "sources.list.d/c.list:deb https://one.example ./",
    ]
    assert second.text.count("\n") == 2


@pytest.mark.parametrize("enabled", ["", "Enabled: no\n"])
def test_a_source_in_stanzas_is_read_as_apt_reads_it(apt: Path, enabled: str) -> None:
    (apt / "sources.list.d/d.sources").write_text(f"Types: deb\nURIs: https://two.example\nSuites: ./\n{enabled}")
    found = sources(apt)
    assert found == sources(apt, alone=True)
    assert ("d.sources" in found[0].text, "d.sources" in found[2].text) == (not enabled, False)


def test_a_host_without_lists_has_none(tmp_path: Path) -> None:
    assert sources(tmp_path / "nothing") == [Answer(0, "")] * 3


def test_a_file_that_is_an_artifact_is_known_by_its_sum(tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("tool\n")
    digest = sha256(b"tool\n").hexdigest()
    states = [
        Delivered(str(tmp_path / name), Artifact(name="tool", file="tool", sha256=digest)) for name in ("tool", "gone")
    ]
    probes = [probe for state in states for probe in state.probes()]
    assert look(probes) == look(probes, alone=True)
    assert look(probes)[probes[1]] == Answer(0, f"{digest}  -\n")
    unpinned = Delivered("/x", Artifact(name="tool", file="tool"))
    assert [probe.part is None for probe in unpinned.probes()] == [False, True]


def test_packages_are_asked_about_again_where_some_are_there(tmp_path: Path) -> None:
    status = tmp_path / "status"
    status.write_text("Package: odd-one\nStatus: install ok installed\n\nPackage: libeven-kept\n\nPackage: odder\n")
    path = program(tmp_path / "bin", "dpkg-query", "echo installed odd-one").parent
    program(path, "apt-get", "echo Purg odd-one; echo Purg other")
    odd, even = DebsAbsent(("odd-*",), "why"), DebsAbsent(("even?", "libeven-*"), "why", keep=("libeven-k*",))
    probes = [state.probes()[1] for state in (odd, even)]
    assert look(probes, path, _var_lib_dpkg_status=str(status)) == {probes[1]: Answer(0, "")}
    alone = look(probes, path, alone=True, _var_lib_dpkg_status=str(status))
    assert [alone[probe] for probe in probes] == [Answer(0, "along other\n"), Answer(0, "")]

"""Tests of installed software: reading, grouping, and the table. No host is contacted."""

from __future__ import annotations

import io
import subprocess
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from hostwright.audit.auditing import fleet_audit
from hostwright.audit.fleetaudit import HostAudit, NotChecked, Reading, ReleaseRecord
from hostwright.audit.found.groups import by_hand, found_groups
from hostwright.audit.found.reading import CHECK, DEPTH, MOST, SEARCH_S, cut_short, finders_of, found_packages
from hostwright.audit.reports.table import next_hosts, show_audit
from hostwright.common.command import Command
from hostwright.plan.model import Answer, Facts
from hostwright.plan.roles.role import discover
from hostwright.resources.packages.packages import DPKG
from tests.unit.support.found import AT, FINDERS, HAND_MADE, facts_of

READ = {(one.layer, one.name): one.have for one in FINDERS.readings(facts_of())}
SITE = "lib/python3.11/site-packages"


def host(name: str, *readings: Reading, **values: object) -> HostAudit:
    found = readings or FINDERS.readings(facts_of())
    return replace(HostAudit(name, "lab", AT, "new", readings=found), **values)


def with_driver(version: str) -> tuple[Reading, ...]:
    return FINDERS.readings(facts_of(HAND_MADE.replace("550.54.15", version)))


def text_of(*hosts: HostAudit, columns: int = 100) -> str:
    console = Console(width=columns, record=True, file=io.StringIO())
    console.print(show_audit(fleet_audit(hosts, inventory="x", began=datetime.fromisoformat(AT)), {}, columns=columns))
    return console.export_text()


def words(text: str) -> str:
    return " ".join(text.split())


def test_every_layer_of_a_hand_made_host_is_found():
    assert READ == {
        ("driver", "version"): "550.54.15",
        ("driver", "source"): "runfile",
        ("driver", "module"): "open",
        ("cuda", "/usr/local/cuda-12.4"): "12.4.1, of no package",
        ("cuda", "/usr/local/cuda-11.8"): "11.8.89, of no package",
        ("cudnn", "/usr/local/cuda-12.4/targets/x86_64-linux/lib"): "8.9.7",
        ("cudnn", "/opt/torch"): "8.9.2.26 (nvidia-cudnn-cu12)",
        ("nccl", "/usr/lib/x86_64-linux-gnu"): "2.21.5",
        ("container", "docker-ce"): "5:26.1.4-1~ubuntu.22.04~jammy",
        ("container", "nvidia-container-toolkit"): "1.15.0-1",
        ("pytorch", "/opt/torch"): "torch 2.3.0+cu121, Python 3.11",
        ("pytorch", "/opt/conda/envs/train"): "pytorch 2.2.0, conda",
        ("tensorflow", "/home/ann/.venv"): "tensorflow 2.15.0, Python 3.10",
    }
    assert all(one.found and one.want is None for one in FINDERS.readings(facts_of()))


@pytest.mark.parametrize(
    ("text", "packages", "expected"),
    [
        ("driver\tloaded\t535.183.01\n", {"nvidia-driver-535": "535.183.01-0ubuntu1"}, ("535.183.01", "packages")),
        ("driver\tlibrary\t550.54.15\n", {}, ("550.54.15", None)),
        ("driver\tloaded\tgarbage\n", {}, (None, None)),
        ("driver\tloaded\t550.54.15\ndriver\tlibrary\t550.90.07\n", {}, ("550.90.07", None)),
        ("driver\tinstaller\t/usr/bin/nvidia-installer\n", {}, (None, None)),
    ],
)
def test_the_source_of_a_driver_is_told_by_its_traces(
    text: str, packages: dict[str, str], expected: tuple[str | None, str | None]
):
    read = {one.name: one.have for one in FINDERS.readings(facts_of(text, packages)) if one.layer == "driver"}
    assert (read.get("version"), read.get("source")) == expected


def test_a_library_without_its_module_in_the_kernel_says_what_is_loaded():
    read = {one.name: one.have for one in FINDERS.readings(facts_of("driver\tlibrary\t550.90.07\n", {}))}
    assert read["loaded"] == "none"


def test_a_host_that_was_not_asked_has_no_found_values():
    assert FINDERS.readings(Facts({DPKG: Answer(0, "")})) == ()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (f"/opt/a/{SITE}/torch-2.3.0+cu121.dist-info", ("/opt/a", "torch", "2.3.0+cu121", "3.11")),
        ("/usr/lib/python3/dist-packages/torch-1.13.1.egg-info", ("/usr", "torch", "1.13.1", "3")),
        ("/e/lib/python3.8/site-packages/jax-0.4.1-py3.8.egg-info", ("/e", "jax", "0.4.1", "3.8")),
        (f"/e/{SITE}/nvidia_nccl_cu12-2.21.5.dist-info", ("/e", "nvidia-nccl-cu12", "2.21.5", "3.11")),
        (
            "/e/lib64/python3.9/site-packages/tensorflow_gpu-2.9.0rc1.dist-info",
            ("/e", "tensorflow-gpu", "2.9.0rc1", "3.9"),
        ),
        ("/c/conda-meta/pytorch-2.2.0-py3.11_cuda12.1_cudnn8.9.2_0.json", ("/c", "pytorch", "2.2.0", "")),
        ("/c/conda-meta/tensorflow-base-2.15.0-gpu_py311_0.json", ("/c", "tensorflow-base", "2.15.0", "")),
    ],
)
def test_names_of_metadata_are_read(line: str, expected: tuple[str, str, str, str]):
    (one,) = found_packages(f"{line}\n")
    assert (one.environment, one.name, one.version, one.python) == expected


@pytest.mark.parametrize(
    "line",
    [
        "", "/", "torch-2.3.0.dist-info", f"/opt/a/{SITE}/torch.dist-info", f"/opt/a/{SITE}/torch-x.dist-info",
        "/c/conda-meta/history", "/c/conda-meta/pytorch-2.2.0.json", f"relative/{SITE}/torch-1.dist-info",
        f"/a/{SITE}/torch-1.0/METADATA", f"/a/{SITE}/torch-{'9' * 99}.dist-info",
    ],
)  # fmt: skip
def test_other_names_are_not(line: str):
    assert not list(found_packages(f"{line}\n"))


def test_a_last_line_that_was_cut_is_left_out():
    assert not list(found_packages(f"/opt/a/{SITE}/torch-2.3.0.dist-info"))


@given(st.text())
def test_no_text_of_a_host_breaks_the_reading(text: str):
    for one in found_packages(text):
        assert one.environment.startswith("/")
        assert one.version[0].isdigit()
    for reading in FINDERS.readings(facts_of(text)):
        assert reading.have


@given(
    st.from_regex(r"[A-Za-z][A-Za-z0-9_.]{0,30}", fullmatch=True),
    st.from_regex(r"[0-9][0-9.]{0,10}[0-9](\+cu[0-9]{2,3})?", fullmatch=True),
    st.from_regex(r"(/[A-Za-z0-9 ._-]{1,20}){1,4}", fullmatch=True),
)
def test_whatever_package_pip_installs_where_is_read_back(name: str, version: str, place: str):
    (one,) = found_packages(f"{place}/{SITE}/{name}-{version}.dist-info\n")
    assert (one.environment, one.version) == (place, version)
    assert one.name == name.lower().replace("_", "-")


def test_the_search_runs_nothing_descends_into_no_package_and_skips_copies(tmp_path: Path):
    """Runs the real ``find`` below a test directory instead of the usual ones."""
    for name in (
        f"venv/{SITE}/torch-2.3.0.dist-info",
        f"venv/{SITE}/torch/{SITE}/torch-9.9.dist-info",
        f"venv/{SITE}/numpy-2.0.0.dist-info",
        f".cache/{SITE}/torch-8.8.dist-info",
        f"conda/pkgs/x/{SITE}/torch-7.7.dist-info",
        f"a/b/c/d/e/f/g/h/{SITE}/torch-6.6.dist-info",
    ):
        (tmp_path / name).mkdir(parents=True)
    conda = tmp_path / "conda/envs/x/conda-meta"
    conda.mkdir(parents=True)
    (conda / "pytorch-2.2.0-py3.11_0.json").write_text("{}")
    script = FINDERS.probe.script.replace(
        "set -- /opt /srv /root /usr/local /usr/lib/python3\n", f"set -- {tmp_path}\n"
    )
    script = script.replace("/home/*", "/nowhere/*")
    done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=True)
    found = {(one.name, one.version) for one in found_packages(done.stdout) if str(tmp_path) in one.environment}
    assert found == {("torch", "2.3.0"), ("pytorch", "2.2.0")}
    assert DEPTH == 9


def test_a_host_with_a_release_record_is_not_searched(tmp_path: Path):
    record = tmp_path / "release.json"
    record.write_text("{}")
    (tmp_path / f"venv/{SITE}/torch-2.3.0.dist-info").mkdir(parents=True)
    script = FINDERS.probe.script.replace("/var/lib/hostwright/release.json", str(record))
    script = script.replace("set -- /opt ", f"set -- {tmp_path} /opt ")
    done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=True)
    assert "dist-info" not in done.stdout


def test_a_search_that_was_cut_short_says_so():
    slow = facts_of(HAND_MADE + "\tbound\ttime\n")
    assert [one.reason for one in cut_short(FINDERS, slow, "release")] == [
        f"the search stopped after {SEARCH_S:.0f} s and may be incomplete"
    ]
    many = facts_of("".join(f"/opt/{number}/{SITE}/torch-2.3.0.dist-info\n" for number in range(MOST)))
    assert [one.check for one in cut_short(FINDERS, many, "release")] == [CHECK]
    assert not list(cut_short(FINDERS, facts_of(), "release"))


def test_every_role_of_a_layer_that_people_install_has_a_finder():
    layers = finders_of(discover()).by_layer
    assert set(layers) == {"driver", "cuda", "cudnn", "nccl", "tensorrt", "container", "jax", "pytorch", "tensorflow"}


def test_hosts_that_are_alike_are_one_group_and_others_show_what_differs():
    fleet = [host(f"gpu{number:02}") for number in range(1, 6)] + [host("gpu06", *with_driver("535.183.01"))]
    largest, other = found_groups(by_hand(fleet))
    assert len(largest.hosts) == 5
    assert other.differs == ("driver",)
    text = text_of(*fleet)
    assert "gpu[01-05] (5 hosts) set up by hand driver version 550.54.15" in words(text)
    assert "gpu06 set up by hand, same as gpu[01-05] (5 hosts) except for driver version 535.183.01" in words(text)
    assert text.count("12.4.1, of no package, in /usr/local/cuda-12.4") == 1
    assert "+ new" not in text


def test_what_people_have_in_their_homes_makes_no_outlier():
    ann = Reading("pytorch", "/home/ann/e", "torch 2.3.0, Python 3.11", found=True)
    fleet = [host("gpu01"), host("gpu02", *FINDERS.readings(facts_of()), ann)]
    (group,) = found_groups(by_hand(fleet))
    assert group.homes["gpu02"][-1] == ann
    assert "tensorflow 2.15.0, Python 3.10 ×2" in text_of(*fleet)


def test_a_layer_that_only_others_have_is_none():
    bare = [one for one in FINDERS.readings(facts_of()) if one.layer != "nccl"]
    text = words(text_of(host("gpu01"), host("gpu02"), host("gpu03", *bare)))
    assert "same as gpu[01-02] (2 hosts) except for nccl none" in text


def test_provisioned_hosts_and_hosts_without_any_layer_stay_in_the_matrix():
    record = ReleaseRecord("lab", AT, "run-1", "ann")
    provisioned, bare = host("gpu01", record=record), HostAudit("gpu02", "lab", AT, "new")
    assert by_hand([provisioned, bare, host("gpu03", sentence="no route")]) == ()
    audit = fleet_audit([host("gpu04"), bare], inventory="x", began=datetime.fromisoformat(AT))
    assert next_hosts(audit) == {Command("adopt"): ["gpu04"], Command("plan"): ["gpu02"]}


def test_the_table_names_a_search_that_was_cut_short():
    cut = host("gpu01", not_checked=(NotChecked("release", CHECK, "the search took longer than 10 s"),))
    assert "the search took longer than 10 s: gpu01" in text_of(cut)


@pytest.mark.parametrize("columns", [80, 120])
def test_the_table_fits_its_terminal(columns: int):
    assert max(map(len, text_of(host("gpu01"), columns=columns).splitlines())) <= columns

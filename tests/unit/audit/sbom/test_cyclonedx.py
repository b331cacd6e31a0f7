"""Tests of a host's SBOM: valid CycloneDX, installed software with its real version, and its origin."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.model.bom import Bom
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from hypothesis import given, settings
from hypothesis import strategies as st
from packageurl import PackageURL

from hostwright.audit.sbom.cyclonedx import render_cyclonedx
from hostwright.plan.host.hostfacts import OS_RELEASE, UNAME
from hostwright.plan.host.release import RELEASE
from hostwright.plan.model import Probe
from hostwright.resources.packages.dpkg import DPKG
from hostwright.resources.python.python import Venv
from hostwright.standard.roles.driver.states.runfile import NvidiaRunfile
from tests.unit.support.sboms import (
    AT,
    KERNEL,
    RECORDED,
    answers,
    debs,
    dists,
    recipe,
    record,
    sbom,
    states,
    target,
    with_artifacts,
)

HOST = target()
VALIDATOR = JsonStrictValidator(SchemaVersion.V1_6)
WHEELS = Path(__file__).parents[4] / "roles" / "tensorflow" / "wheels.txt"
VENV = states(HOST, Venv)[0].probes()[1]
DRIVER = states(HOST, NvidiaRunfile)[0].state_probe


def document(differs: dict[Probe, str | None] | None = None, **more: Any) -> dict[str, Any]:
    text = render_cyclonedx(sbom(differs=differs, **more))
    assert VALIDATOR.validate_str(text) is None
    return json.loads(text)


def components(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {component["name"]: component for component in found["components"]}


def properties(part: dict[str, Any]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in part.get("properties", ()):
        found.setdefault(row["name"].removeprefix("hostwright:"), []).append(row["value"])
    return found


def hashes(component: dict[str, Any]) -> list[str]:
    return [row["content"] for row in component.get("hashes", ())]


def needs(found: dict[str, Any]) -> dict[str, set[str]]:
    """Name → names of its dependencies."""
    names = {component["bom-ref"]: component["name"] for component in found["components"]}
    names["host"] = HOST.name
    rows = found["dependencies"]
    return {names[row["ref"]]: {names[ref] for ref in row.get("dependsOn", ())} for row in rows}


def test_the_librarys_own_reader_reads_it_back_as_the_same_document():
    text = render_cyclonedx(sbom())
    again = Bom.from_json(json.loads(text))
    assert JsonV1Dot6(again).output_as_string(indent=2) + "\n" == text


def test_what_is_there_is_named_by_its_version_with_purl_hash_and_supplier():
    found = components(document())
    artifacts = HOST.stack.artifacts
    assert {name: found[name]["version"] for name in ("nvidia-driver", "cudnn", "tensorflow", "cuda-nvcc-11-2")} == {
        "nvidia-driver": "470.182.03",
        "cudnn": "8.1.0.77",
        "tensorflow": "2.9.0",
        "cuda-nvcc-11-2": "11.2.152-1",
    }
    driver = PackageURL.from_string(found["nvidia-driver"]["purl"])
    assert (driver.type, driver.name, driver.version) == ("generic", "nvidia-driver", "470.182.03")
    assert driver.qualifiers == {
        "checksum": f"sha256:{artifacts['driver'].sha256}",
        "download_url": artifacts["driver"].urls[0],
    }
    assert hashes(found["cudnn"]) == [artifacts["cudnn"].sha256]
    assert found["gnupg"]["purl"] == "pkg:deb/debian/gnupg@1.0?arch=all&distro=debian-11&upstream=gnupg2"
    assert found["cuda-nvcc-11-2"]["purl"] == "pkg:deb/nvidia/cuda-nvcc-11-2@11.2.152-1?arch=amd64", "not Debian's"
    suppliers = {name: found[name]["supplier"]["name"] for name in ("curl", "docker.io", "cudnn", "cuda-nvcc-11-2")}
    debian = "Debian GNU/Linux"
    assert suppliers == {"curl": debian, "docker.io": debian, "cudnn": "NVIDIA", "cuda-nvcc-11-2": "NVIDIA"}
    assert {component["type"] for component in found.values() if component["name"] == "debian"} == {"operating-system"}
    assert found["linux"]["version"] == KERNEL


def test_each_wheel_has_the_hash_that_the_index_published_and_pip_was_held_to():
    found = components(document())
    known = dict(reversed(line.split("  ")) for line in WHEELS.read_text().splitlines() if "  " in line)
    files = {digest: name for name, digest in known.items()}
    pins = recipe(HOST).pins
    assert {f"pkg:pypi/{name}@{version}" for name, version in pins.items()} <= {
        component["purl"] for component in found.values() if "purl" in component
    }
    several = set()
    for name, version in pins.items():
        told = hashes(found[name]) or properties(found[name])["sha256-one-of"]
        assert all(files[digest].lower().startswith(f"{name.replace('-', '_')}-{version}-") for digest in told), name
        several |= {name} if len(told) > 1 else set()
    assert len(several) < len(pins) / 5, "of most only one wheel can be meant"
    assert hashes(found["tensorflow"]) == [
        known["tensorflow-2.9.0-cp39-cp39-manylinux_2_17_x86_64.manylinux2014_x86_64.whl"]
    ]


def test_everything_of_the_layers_artifacts_and_exact_packages_is_there():
    found = components(document())
    wanted = {word.partition("=")[0] for role in HOST.desired.roles for word in _exact(role.resources)}
    assert len(wanted) > 10
    assert wanted <= set(found)
    files = {file for component in found.values() for file in properties(component).get("file", ())}
    keys = {"nvidia-container-toolkit.asc", "docker.asc"}  # in keyrings; no software
    unused = {"nvidia-fabricmanager-470_470.182.03-1_amd64.deb"}  # this host has no NVSwitch
    unpinned = {"cuda-ubuntu2004.pin"}  # the installed file has no hash to compare with
    assert files == {artifact.file for artifact in HOST.artifacts} - keys - unused - unpinned


def _exact(resources: tuple[Any, ...]) -> list[str]:
    inner = [getattr(state, "resource", state) for state in resources]
    return [word for state in inner for word in getattr(state, "packages", ()) if "=" in str(word)]


def test_layers_depend_on_those_below_and_the_host_on_everything():
    found = document()
    told = needs(found)
    assert told[HOST.name] == {component["name"] for component in found["components"]}
    assert set(told) == {HOST.name, *told[HOST.name]}
    assert "cuda-toolkit-11-2" in told["cudnn"]
    assert {"nvidia-driver", "cuda-toolkit-11-2", "cudnn", "numpy", "keras"} <= told["tensorflow"]
    assert "nvidia-driver" in told["nvidia-container-toolkit"]


def test_the_record_gives_its_time_and_the_reading_its_own():
    head = document()["metadata"]
    assert head["timestamp"] == RECORDED
    told = properties(head)
    assert (told["read"], told["record:run"]) == ([AT.isoformat()], ["20261120t090000-5a60"])
    assert told["record:digest"] == [HOST.stack.digest()]
    assert (head["component"]["name"], head["tools"]["components"][0]["name"]) == (HOST.name, "hostwright")
    assert document({RELEASE: ""})["metadata"]["timestamp"] == AT.isoformat(), "a host without a record"


def test_the_same_host_gives_the_same_document_and_a_later_look_the_same_serial_number():
    first = render_cyclonedx(sbom())
    assert render_cyclonedx(sbom()) == first
    later = document(at=AT + timedelta(hours=1))
    serial = json.loads(first)["serialNumber"]
    assert later["serialNumber"] == serial
    assert later["metadata"]["timestamp"] == RECORDED
    changed = [
        document({VENV: dists(HOST, numpy="1.24.0")}),
        document({DPKG: debs(HOST, curl="")}),
        document({RELEASE: record(HOST).replace("5a60", "77aa")}),
    ]
    assert len({serial, *(other["serialNumber"] for other in changed)}) == 4


def test_what_differs_from_the_stack_is_what_the_host_has_and_says_so():
    text = dists(HOST, numpy="1.24.0", requests="", ours_inc="3.0")
    text += "damage\tkeras-2.9.0.dist-info\tkeras/__init__.py\n"
    found = document({VENV: text, DPKG: debs(HOST, cuda_nvcc_11_2="11.2.67-1", dkms="")})
    there = components(found)
    assert there["numpy"]["purl"] == "pkg:pypi/numpy@1.24.0"
    assert (hashes(there["numpy"]), properties(there["numpy"])["wanted"]) == ([], ["1.26.4"])
    assert properties(there["keras"])["differs"] == ["(keras/__init__.py missing or changed)"]
    assert hashes(there["keras"]) == [], "its files are no longer those of the wheel"
    assert there["keras"]["supplier"]["name"] == "Python Package Index"
    assert properties(there["ours-inc"])["differs"] == ["not of the stack"]
    assert properties(there["cuda-nvcc-11-2"])["wanted"] == ["11.2.152-1"]
    assert {"requests", "dkms"} & set(there) == set()
    assert properties(found["metadata"])["missing"] == [
        "base: dkms",
        f"tensorflow: requests {recipe(HOST).pins['requests']}",
    ]


def test_what_a_pinned_setuptools_replaced_of_debian_11s_own_venv_does_not_differ():
    text = dists(HOST, pkg_resources="0.0.0")
    text += "damage\tpkg_resources-0.0.0.dist-info\tpkg_resources/__init__.py\n"
    there = components(document({VENV: text}))
    assert properties(there["pkg-resources"]).get("differs") is None


def test_a_driver_of_others_or_damaged_is_no_file_of_the_stack():
    right = answers(HOST)[DRIVER].text
    theirs = components(document({DRIVER: right + "theirs=yes\n"}))["nvidia-driver"]
    assert (theirs["version"], hashes(theirs), theirs["purl"]) == (
        "470.182.03", [], "pkg:generic/nvidia-driver@470.182.03",
    )  # fmt: skip
    other = components(document({DRIVER: right.replace("470.182.03", "470.57.02")}))["nvidia-driver"]
    assert (other["version"], hashes(other), properties(other)["wanted"]) == ("470.57.02", [], ["470.182.03"])
    lost = components(document({DRIVER: right + "lost=/usr/bin/nvidia-smi\n"}))["nvidia-driver"]
    assert "nvidia-smi" in properties(lost)["differs"][0]
    assert hashes(lost) == []


def test_an_archive_that_was_replaced_by_another_of_the_same_version_has_no_hash_of_ours():
    given = answers(HOST)
    (probe,) = (probe for probe, answer in given.items() if answer.text.startswith("8.1.0.77 "))
    other = components(document({probe: "8.1.0.77 /var/cache/hostwright/artifacts/other/cudnn.tgz\n"}))["cudnn"]
    assert (other["version"], hashes(other)) == ("8.1.0.77", [])
    assert properties(other)["differs"] == ["8.1.0.77 of another archive"]


def test_what_was_not_read_is_said():
    found = document({DRIVER: None})
    assert "nvidia-driver" not in components(found)
    assert properties(found["metadata"])["not-read"] == ["driver: NvidiaRunfile"]


def test_stand_ins_are_labelled_and_have_no_address():
    found = components(document(of=with_artifacts(HOST, stand_in=True)))
    labelled = {name for name, component in found.items() if "stand-in" in properties(component)}
    assert {"nvidia-driver", "cudnn", "cuda-nvcc-11-2", "nvidia-container-toolkit"} <= labelled
    assert {"tensorflow", "curl", "docker.io", "debian"} & labelled == set(), "these are real"
    assert "download_url" not in json.dumps(list(found.values()))
    assert not any("stand-in" in properties(component) for component in components(document()).values())
    said = components(document(of=with_artifacts(HOST, stand_in="of another branch")))["nvidia-driver"]
    assert properties(said)["stand-in"] == ["not the vendor's own: of another branch"]


def test_no_address_of_the_host_nor_a_secret_is_in_it():
    secret = with_artifacts(
        HOST, urls=("file:///srv/files/x", "https://bob:hunter2@mirror.example.org/d/x?token=abc#y")
    )
    text = json.dumps(document(of=secret))
    assert "https://mirror.example.org/d/x" in text or "https%3A//mirror.example.org/d/x" in text
    assert not [word for word in ("hunter2", "bob", "token", "/srv/files", "ada@desk") if word in text]


def test_a_host_without_facts_has_a_bill_all_the_same():
    found = document(dict.fromkeys(answers(HOST)))
    assert found.get("components", []) == []
    assert len(properties(found["metadata"])["not-read"]) > 5


def test_scanners_find_one_system_without_a_purl_and_whose_package_each_is():
    """As required by Dependency-Track (#7333), Trivy (#6482) and the purl specification."""
    found = document(of=with_artifacts(HOST, urls=()))["components"]
    systems = [component for component in found if component["type"] == "operating-system"]
    assert [(system["name"], system["version"], "purl" in system) for system in systems] == [("debian", "11", False)]
    purls = [PackageURL.from_string(component["purl"]) for component in found if component not in systems]
    assert {purl.namespace for purl in purls if purl.type == "deb"} == {"debian", "nvidia"}
    debian = [purl for purl in purls if purl.namespace == "debian"]
    assert {purl.qualifiers.get("distro") for purl in debian} == {"debian-11"}
    assert {purl.qualifiers.get("arch") for purl in debian} == {"amd64", "all"}
    assert len({component["bom-ref"] for component in found}) == len(found)


def test_another_series_of_the_stack_has_its_own_names():
    other = target("tensorflow-2.12")
    found = components(document(of=other))
    assert found["tensorflow"]["version"] == other.stack.versions()["tensorflow"]
    assert found["cudnn"]["version"] == other.stack.versions()["cudnn"]


HOSTILE = "\x1b[2J\u202e</script>\x00\ufffe\ud83d"


@pytest.mark.parametrize("text", ["", HOSTILE, "1" * 5000, "-", "%", "@1?a=b#c", " ", "../..", "ÄÖ"])
def test_a_host_that_lies_gets_a_valid_document(text: str):
    word = text.replace("\t", "").replace("\n", "")
    found = document(
        {
            DPKG: f"curl\t{word}\tii \t{word}\t{word}\n{word}\t1\tii \tamd64\tx\nlinux-image-{word}\t{word}\tii \t\t\n",
            VENV: f"link\t{recipe(HOST).home}\nhome\t{recipe(HOST).home}\ndist\t{word}-{word}.dist-info\trecorded\n"
            f"dist\t{word}.dist-info\tbare\ndist\tnumpy-{word}.dist-info\trecorded\n",
            OS_RELEASE: f"ID={word}\nVERSION_ID={word}\nNAME={word}\n",
            UNAME: word,
            RELEASE: json.dumps({"schema": 2, "roles": {}, "at": word, "stack": [word], "run": {"a": word}}),
        }
    )
    assert all(len(component["version"]) <= 160 for component in found["components"])


@settings(max_examples=20, deadline=None)
@given(st.dictionaries(st.sampled_from([DPKG, VENV, DRIVER, OS_RELEASE, UNAME, RELEASE]), st.text(max_size=300)))
def test_whatever_a_host_answers_the_document_is_valid_and_the_same_again(differs: dict[Probe, str | None]):
    assert document(differs) == document(differs)

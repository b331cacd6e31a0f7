"""What the peers print, and the files that they are given."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.cases import pytorch
from benchmarks.peers.files import PYTORCH, TENSORFLOW
from benchmarks.peers.results import Result, of_ansible, of_pyinfra, wrong
from benchmarks.peers.tools import HERE
from benchmarks.peers.venvs import NAMED, PINS, versions
from hostwright.standard.roles.base import Base
from hostwright.standard.roles.container.section import ContainerSection
from hostwright.standard.roles.driver.states.steps import FLAGS
from hostwright.standard.roles.pytorch.section import PytorchSection
from tests.unit.support.stacks import load_stack

RECAP = """\
TASK [Docker runs] *************************************************************
ok: [gpu01]

PLAY RECAP *********************************************************************
gpu01                      : ok=56   changed=0    unreachable=0    failed=0    skipped=2    rescued=0    ignored=0
gpu02                      : ok=30   changed=43   unreachable=0    failed=1    skipped=9    rescued=0    ignored=0
gpu03                      : ok=0    changed=0    unreachable=1    failed=0    skipped=0    rescued=0    ignored=0
"""
RESULTS = """\
--> Connecting to hosts...
    [gpu01] Connected
    [gpu02] Connected

--> Results:
    Operation                                                  Hosts   Success   Error   No Change
    build tools                                                2       1         -       1
    Grand total                                                41      1         -       40
"""


def test_a_play_is_read_host_by_host() -> None:
    assert of_ansible(RECAP) == Result(frozenset({"gpu01", "gpu02", "gpu03"}), 43, 2)


def test_a_play_without_a_recap_is_no_result() -> None:
    with pytest.raises(ValueError, match="no recap"):
        of_ansible("ERROR! the playbook could not be found\n")


def test_results_of_pyinfra_are_its_grand_total() -> None:
    assert of_pyinfra(RESULTS) == Result(frozenset({"gpu01", "gpu02"}), 1, 0)


def test_a_deploy_that_ended_early_is_no_result() -> None:
    with pytest.raises(ValueError, match="no results"):
        of_pyinfra("--> Connecting to hosts...\n    [gpu01] Connected\n")


@pytest.mark.parametrize(
    ("result", "changes", "sentence"),
    [
        (Result(frozenset({"a", "b"}), 0, 0), False, ""),
        (Result(frozenset({"a", "b"}), 3, 0), True, ""),
        (Result(frozenset({"a", "b"}), 3, 0), False, "3 of its tasks changed something on hosts that are as desired"),
        (Result(frozenset({"a", "b"}), 0, 2), True, "2 of its tasks failed"),
        (Result(frozenset({"a"}), 0, 0), True, "it did nothing on b"),
    ],
)
def test_what_does_not_count_has_a_sentence(result: Result, changes: bool, sentence: str) -> None:
    assert wrong(result, frozenset({"a", "b"}), changes=changes) == sentence


def test_every_peer_is_pinned_with_hashes() -> None:
    assert versions().keys() == {package for packages in NAMED.values() for package in packages}
    for file in PINS.glob("*.txt"):
        lines = file.read_text().splitlines()
        packages = [line for line in lines if "==" in line and not line.startswith(" ")]
        assert packages and all(line.endswith("\\") for line in packages), file.name
        assert not [line for line in lines if "://" in line]


def test_every_tool_brings_the_same_texts() -> None:
    """Each text of the stack stands in the playbook, in the deploy and in the script."""
    sources = [HERE / name for name in ("ansible/site.yml", "pyinfra/deploy.py", "script/provision.sh")]
    for source in sources:
        text = source.read_text()
        assert [path for path in TENSORFLOW.texts if Path(path).name not in text] == [], source.name


def test_every_tool_installs_the_same_versions() -> None:
    def words(name: str) -> set[str]:
        text = (HERE / name).read_text()
        words = text.replace('"', " ").replace("'", " ").replace(",", " ").split()
        return {word for word in words if re.fullmatch(r"(cuda|lib)\S+-11-2=\S+", word)}

    assert len(words("ansible/site.yml")) == 8
    assert words("ansible/site.yml") == words("pyinfra/deploy.py") == words("script/provision.sh")


def test_the_script_for_pytorch_brings_the_texts_and_versions_of_its_stack() -> None:
    text = (HERE / "script" / pytorch.SCENARIO.script).read_text()
    assert [path for path in PYTORCH.texts if Path(path).name not in text] == []
    stack = load_stack(PYTORCH.kind.published)
    section, toolkit = stack.section(PytorchSection), stack.section(ContainerSection).toolkit
    assert stack.artifact("driver").file in text
    assert f"venv={section.home()}\n" in text and f" {section.requirement} " in text
    assert f"'%s={toolkit.version} '" in text and f"toolkit='{' '.join(toolkit.packages)}'" in text
    assert [flag for flag in FLAGS if flag not in text.replace("\\\n", " ")] == []
    assert f" {' '.join(Base().packages)} " in text


def test_host_keys_are_checked() -> None:
    settings = (HERE / "ansible/ansible.cfg").read_text()
    assert "host_key_checking = true" in settings and "pipelining = true" in settings

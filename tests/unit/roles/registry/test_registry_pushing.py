"""Images through a registry: the pushing host, and the stages that follow from its Docker's output."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hostwright.common.errors import InputError
from hostwright.common.request import Request
from hostwright.plan.model import Answer, Facts
from hostwright.plan.targets import Targets
from hostwright.standard.roles.container.images import pushing
from hostwright.standard.roles.container.images.throughregistry import ImagesPulled, PushedImage
from tests.unit.roles.container.images.test_throughregistry import AT, ID, NAME, PUSHED, REFERENCE, look

INVENTORY = """\
all:
  vars: {hostwright_roles: [registry], registry_at: 'reg01:5000'}
  hosts: {gpu01: , gpu02: , reg01: {registry_serve: true}}
"""


def targets(folder: Path, text: str) -> Targets:
    from hostwright.fleet import Fleet

    (folder / "hosts.yml").write_text(text)
    return Fleet.load(folder).targets("all")


def test_the_registry_of_hosts_is_the_one_that_all_of_them_name(tmp_path: Path) -> None:
    assert pushing.registry_of(targets(tmp_path, INVENTORY)) == AT
    other = INVENTORY.replace("gpu02: ", "gpu02: {registry_at: 'reg02:5000'}")
    with pytest.raises(InputError, match="several registries"):
        pushing.registry_of(targets(tmp_path, other))
    without = INVENTORY.replace("gpu02: ", "gpu02: {hostwright_roles: [base]}")
    with pytest.raises(InputError, match=r"gpu02 has no registry; add the role registry"):
        pushing.registry_of(targets(tmp_path, without))


def test_the_archive_goes_to_the_registrys_own_host_where_that_has_docker(tmp_path: Path) -> None:
    many = targets(tmp_path, INVENTORY)
    assert pushing.pusher_of(many).name == "gpu01"
    container = next(role for role in many.by_name["reg01"].roles)
    named = replace(container, name="container")
    with_docker = [
        replace(target, of_host=(*target.of_host, named)) if target.name == "reg01" else target for target in many
    ]
    assert pushing.pusher_of(replace(many, chosen=tuple(with_docker))).name == "reg01"


def test_each_stage_through_a_registry_is_known_from_what_docker_reported_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One host loads the archive and pushes the images that its Docker reported; the others pull them."""
    (tmp_path / "hosts.yml").write_text(INVENTORY)
    archive = tmp_path / "tool.tar"
    archive.write_bytes(b"an archive")
    reached: list[tuple[list[str], Any, str]] = []
    ends = [0, 0, 0]

    def change(_verb: str, _fleet: Any, chosen: Any, request: Request, _run: Any, *, goal: Any, **_: Any) -> int:
        (state,) = goal.states
        reached.append(([target.name for target in chosen], state, request.own["registry"]))
        print(f"document {len(reached)}")
        return ends[len(reached) - 1]

    def answers(_one: Any, _target: Any, probes: tuple[Any, ...]) -> Facts:
        texts = [look((ID, NAME)), f"{ID} {NAME}\n" if "cat --" in probes[1].script else f"{ID} {NAME} {REFERENCE}\n"]
        return Facts({probe: Answer(0, text) for probe, text in zip(probes, texts, strict=True)})

    monkeypatch.setattr(pushing, "change", change)
    monkeypatch.setattr(pushing._Push, "facts", answers)
    given = Request("all", inventory=(str(tmp_path / "hosts.yml"),))
    assert pushing.push(replace(given, json=True), str(archive), registry=True) == 0
    assert capsys.readouterr().out == "document 3\n"
    assert [hosts for hosts, _, _ in reached] == [["gpu01"], ["gpu01"], ["gpu02", "reg01"]]
    assert [state for _, state, _ in reached[1:]] == [PUSHED, ImagesPulled(AT, (PushedImage(ID, NAME, REFERENCE),), 5)]
    assert {at for _, _, at in reached} == {AT}
    reached.clear()
    ends[0] = 3  # a check of a host without the archive: later stages are unknown
    assert pushing.push(replace(given, check=True), str(archive), registry=True) == 3
    assert len(reached) == 1
    told = "these hosts would pull the images that they lack from the registry reg01:5000: gpu02, reg01"
    assert told in capsys.readouterr().err

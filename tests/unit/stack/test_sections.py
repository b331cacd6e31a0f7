"""Roles' sections of a stack: found by marks, read with all errors at once, omitted if empty."""

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent
from typing import Annotated

import pytest

from hostwright.common.errors import InputError, InputErrors
from hostwright.plan.roles.role import discover
from hostwright.stack import stackfile
from hostwright.stack.stack import AptRepository, Section, Stack
from hostwright.stack.stackdata import plain
from hostwright.stack.stackvalues import ArtifactName, ExactVersion, StackPart, TextFile, WithoutNulls
from hostwright.standard.roles.cuda.section import CudaSection
from tests.unit.support.stacks import KINDS, STACKS, load_stack

HOUSE = load_stack("tensorflow-2.9")


class Mirror(StackPart):
    key: Annotated[str, ArtifactName] | None = None


class NcclSection(Section):
    """A layer unknown to the engine, with artifact names at every depth."""

    version: ExactVersion
    archive: Annotated[str, ArtifactName]
    settings: Annotated[str, TextFile] = ""
    patches: tuple[Annotated[str, ArtifactName], ...] = ()
    spares: Annotated[Mapping[str, Annotated[str, ArtifactName]], WithoutNulls] = {}
    mirror: Mirror | None = None
    repository: AptRepository | None = None

    @property
    def spare(self) -> tuple[str, ...]:
        return ("spares",)

    def versions(self) -> Mapping[str, str]:
        return {"nccl": self.version}


class ChronySection(Section):
    """An optional section."""

    servers: tuple[str, ...] = ()


MORE = {**KINDS, "nccl": NcclSection, "chrony": ChronySection}


def stack_of(tmp_path: Path, text: str) -> Stack:
    (tmp_path / "mine.yml").write_text(dedent(text))
    return stackfile.load_stack("mine", (tmp_path, STACKS), MORE)


NCCL = """
    extends: tensorflow-2.9
    roles: [base, driver, cuda, nccl]
    nccl:
      version: 2.8.4
      archive: nccl
      settings: nccl.conf
      patches: [cudnn, driver]
      spares: {old: cuda-pin, none: null}
      mirror: {key: docker-key}
      repository: {name: nccl, uri: https://example.org, key: container-toolkit-key}
    artifacts: {nccl: {file: nccl.txz}}
"""


def test_artifacts_and_texts_are_found_by_their_marks(tmp_path: Path) -> None:
    (tmp_path / "nccl.conf").write_text("NCCL_DEBUG=WARN\n")
    stack = stack_of(tmp_path, NCCL)
    section = stack.section(NcclSection)
    assert section.settings == "NCCL_DEBUG=WARN\n"
    assert section.artifact_uses() == (
        (("archive",), "nccl"),
        (("patches", 0), "cudnn"),
        (("patches", 1), "driver"),
        (("spares", "old"), "cuda-pin"),
        (("mirror", "key"), "docker-key"),
        (("repository", "key"), "container-toolkit-key"),
    )
    assert {name for _, name in section.artifact_uses()} - {one.name for one in stack.used_by(["nccl"])} == {"cuda-pin"}
    assert stack.versions()["nccl"] == "2.8.4"


def test_a_host_needs_the_artifacts_of_its_own_roles_alone() -> None:
    """A host without containers, or with the distribution's Docker, does not need Docker's key."""
    assert [one.name for one in HOUSE.used_by(["base", "cudnn"])] == ["cudnn"]
    assert "container-toolkit-key" in {one.name for one in HOUSE.used_by(HOUSE.roles)}
    assert "docker-key" not in {one.name for one in HOUSE.used_by(HOUSE.roles)}
    docker_ce = load_stack("tensorflow-2.9").sections["container"].model_copy(update={"docker": "docker-ce"})
    stack = HOUSE.model_copy(update={"sections": {**HOUSE.sections, "container": docker_ce}})
    assert "docker-key" in {one.name for one in stack.used_by(["container"])}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("nccl: {version: 2.8.4, archive: ncl}", r"mine.yml:3:\d+: nccl.archive: unknown artifact 'ncl'"),
        ("nccl: {version: 2.8.4, archve: nccl}", "nccl.archve: 'archve' is unknown here; did you mean 'archive'"),
        ("ncl: {version: 2.8.4}", "ncl: 'ncl' is unknown here; did you mean 'nccl'"),
        ("nccl: {version: 2.8.4, archive: cudnn, settings: none.conf}", "nccl.settings: .*none.conf.*cannot be read"),
        ("nccl: {version: 2.8.4, archive: cudnn, patches: [cudnn, x]}", "nccl.patches.1: unknown artifact 'x'"),
        ("roles: [base, nccl]", "nccl: is missing"),
        ("roles: [base, ncc]", "mine.yml:3:15: roles.1: unknown role 'ncc'; did you mean 'nccl'"),
        ("roles: null", "mine.yml:3:1: roles: is missing; list the roles of its hosts"),
    ],
)
def test_mistakes_in_a_section_name_the_place_and_the_nearest(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(InputErrors, match=sentence):
        stack_of(tmp_path, f"\nextends: tensorflow-2.9\n{text}\n")


def test_section_of_an_optional_role_may_be_omitted(tmp_path: Path) -> None:
    stack = stack_of(tmp_path, "extends: tensorflow-2.9\nroles: [base, chrony]\n")
    assert stack.section(ChronySection).servers == ()
    assert stack.find(NcclSection) is None
    with pytest.raises(InputError, match="the stack mine has no NcclSection"):
        stack.section(NcclSection)


def test_omitted_section_is_not_in_the_stacks_data(tmp_path: Path) -> None:
    """Otherwise a new role would change the digest of every stack."""
    stack = stack_of(tmp_path, "extends: tensorflow-2.9\n")
    assert "chrony" in stack.sections
    assert "chrony" not in plain(stack)
    assert stack.model_copy(update={"name": HOUSE.name}).digest() == HOUSE.digest()


def test_which_roles_a_stack_names_is_no_part_of_its_digest(tmp_path: Path) -> None:
    """A host may have other roles: its record has them."""
    fewer = stack_of(tmp_path, "extends: tensorflow-2.9\nroles: [base, cuda]\n")
    assert fewer.roles == ("base", "cuda")
    assert fewer.model_copy(update={"name": HOUSE.name}).digest() == HOUSE.digest()


def test_the_sections_of_the_standard_roles_are_found_beside_them() -> None:
    of_the_stack = {"driver", "cuda", "cudnn", "tensorflow", "container"}
    assert {name for name, kind in KINDS.items() if kind} == {*of_the_stack, "jax", "nccl", "pytorch", "tensorrt"}
    assert set(HOUSE.sections) >= of_the_stack
    assert not {"nccl", "tensorrt"} & set(HOUSE.sections)
    assert next(one for one in discover() if one.name == "cuda").section is CudaSection
    assert next(one for one in discover() if one.name == "base").section is None
    assert list(HOUSE.versions()) == ["driver", "cuda", "nvcc", "cudnn", "tensorflow", "container-toolkit"]

import json
from collections.abc import Sequence
from pathlib import Path
from textwrap import dedent

import pytest

from hostwright.common.errors import InputError, InputErrors
from hostwright.stack.stack import Artifact, Stack
from hostwright.stack.stackdata import digest_of, plain
from hostwright.stack.stackfile import stack_names
from hostwright.standard.roles.cuda.section import CudaSection
from hostwright.standard.roles.cudnn.section import CudnnSection
from hostwright.standard.roles.driver.section import DriverSection
from hostwright.standard.roles.tensorflow.section import TensorflowSection
from tests.unit.support.stacks import load_stack, read_stack

STACKS = Path(__file__).parents[3] / "inventory" / "stacks"
FIXTURES = Path(__file__).parents[2] / "fixtures"


def stack_of(tmp_path: Path, text: str, name: str = "mine") -> Stack:
    (tmp_path / f"{name}.yml").write_text(dedent(text))
    return load_stack(name, (tmp_path, STACKS))


@pytest.fixture(scope="module")
def house() -> Stack:
    return load_stack("tensorflow-2.9", (STACKS,))


def test_the_stack_that_this_is_for(house: Stack) -> None:
    assert (
        house.section(DriverSection).version,
        house.section(DriverSection).branch,
        house.section(DriverSection).kernels,
    ) == ("470.182.03", "470", "<6.3")
    assert (
        house.section(CudaSection).version,
        house.section(CudaSection).series,
        house.section(CudaSection).prefix,
    ) == ("11.2.2", "11.2", "/usr/local/cuda-11.2")
    assert (
        house.section(CudnnSection).version,
        house.section(CudnnSection).number,
        house.section(CudnnSection).library_version,
    ) == ("8.1.0.77", 8100, "8.1.0")
    assert house.section(TensorflowSection).version == "2.9.0"
    assert len(house.section(TensorflowSection).libraries) == 9
    assert not [artifact.name for artifact in house.artifacts.values() if artifact.stand_in]


def test_the_metapackage_that_brings_another_driver_is_named_nowhere(house: Stack) -> None:
    assert house.section(CudaSection).package == "cuda-toolkit-11-2"
    assert '"cuda-11-2"' not in house.model_dump_json()
    assert "cuda-drivers" not in house.model_dump_json()


def test_the_local_repository_that_exists_and_not_the_one_of_the_articles(house: Stack) -> None:
    assert house.artifact("cuda-repository").file.endswith("_11.2.2-460.32.03-1_amd64.deb")
    assert "460.27.04" not in house.model_dump_json()


def test_the_drivers_mirrors_are_tried_tesla_first(house: Stack) -> None:
    first, second = house.artifact("driver").urls
    assert "/tesla/470.182.03/" in first
    assert "/XFree86/" in second


def test_fabric_manager_is_exactly_the_drivers_version(house: Stack) -> None:
    assert house.section(DriverSection).fabric_manager is not None
    assert house.section(DriverSection).fabric_manager.version == f"{house.section(DriverSection).version}-1"


def test_constraints_come_as_text(house: Stack) -> None:
    assert set(house.section(TensorflowSection).constraints) == set(house.section(TensorflowSection).pythons)
    assert "\nprotobuf==3.19.6\n" in house.section(TensorflowSection).constraints["3.9"]


def test_every_stack_of_the_project_is_valid() -> None:
    assert "tensorflow-2.9-ubuntu18.04" in stack_names([STACKS])
    bionic = load_stack("tensorflow-2.9-ubuntu18.04", (STACKS,))
    assert "ubuntu1804" in bionic.artifact("cuda-repository").file
    assert bionic.section(CudaSection).repository.key_file == "/var/cuda-repo-ubuntu1804-11-2-local/7fa2af80.pub"


def test_a_point_upgrade_is_a_few_lines(tmp_path: Path, house: Stack) -> None:
    upgraded = stack_of(
        tmp_path,
        """
        extends: tensorflow-2.9
        driver: {version: 470.239.06, kernels: "<6.9", fabric_manager: {version: 470.239.06-1}}
        artifacts:
          driver: {file: NVIDIA-Linux-x86_64-470.239.06.run, urls: [https://example.org/x.run], sha256: null}
        """,
    )
    assert upgraded.name == "mine"
    assert upgraded.artifact("driver") == Artifact(
        name="driver", file="NVIDIA-Linux-x86_64-470.239.06.run", urls=("https://example.org/x.run",)
    )
    assert upgraded.section(DriverSection).fabric_manager is not None
    assert upgraded.section(DriverSection).fabric_manager_package == "nvidia-fabricmanager-470"
    assert upgraded.section(CudaSection) == house.section(CudaSection)
    assert upgraded.digest() != house.digest()


def test_a_stack_includes_parts_that_several_share(tmp_path: Path, house: Stack) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts/a.yml").write_text("description: a\nrequirements: {memory_bytes: 1, free_bytes: 1}\n")
    (tmp_path / "parts/b.yml").write_text("description: b\nrequirements: {memory_bytes: 2}\ncuda: {version: 9}\n")
    included = "extends: tensorflow-2.9\ninclude: [parts/a.yml, parts/b.yml]\ndescription: mine\n"
    own = stack_of(tmp_path, f"{included}cuda: {{version: '{house.section(CudaSection).version}'}}\n")
    assert (own.description, own.requirements.memory_bytes, own.requirements.free_bytes) == ("mine", 2, 1)
    assert stack_names([tmp_path]) == ["mine"]
    with pytest.raises(InputErrors, match=r"parts/b\.yml:3:8: cuda\.version"):
        stack_of(tmp_path, included)


@pytest.mark.parametrize(
    ("include", "sentence"),
    [
        ("parts/a.yml", r"mine\.yml:2:1: include: expected a list of files"),
        ("[parts/c.yml]", r"mine\.yml:2:11: include: file 'parts/c\.yml' does not exist"),
        ("[parts/a.yml]", r"parts/a\.yml:1:1: extends: not allowed in an included file"),
        ("[parts/b.yml]", r"parts/b\.yml.*expected a stack as a mapping"),
    ],
)
def test_what_cannot_be_included_is_named_with_its_place(tmp_path: Path, include: str, sentence: str) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts/a.yml").write_text("extends: tensorflow-2.9\n")
    (tmp_path / "parts/b.yml").write_text("- a\n")
    with pytest.raises(InputError, match=sentence):
        stack_of(tmp_path, f"extends: tensorflow-2.9\ninclude: {include}\n")


def test_stand_ins_are_told(tmp_path: Path) -> None:
    stack = stack_of(tmp_path, "extends: tensorflow-2.9\nartifacts: {driver: {stand_in: true}}")
    assert [artifact.name for artifact in stack.used_by(stack.roles) if artifact.stand_in] == ["driver"]


def test_relative_constraints_belong_to_the_file_that_names_them(tmp_path: Path) -> None:
    (tmp_path / "c.txt").write_text("numpy==1.26.4\n")
    text = 'extends: tensorflow-2.9\ntensorflow: {constraints: {"3.9": c.txt, "3.7": null}}'
    constraints = stack_of(tmp_path, text).section(TensorflowSection).constraints
    assert constraints["3.9"] == "numpy==1.26.4\n"
    assert "tensorflow==2.9.0" in constraints["3.10"]
    assert "3.7" not in constraints


def test_the_digest_is_of_what_is_said_not_of_how(tmp_path: Path) -> None:
    one = stack_of(tmp_path, "extends: tensorflow-2.9\ndescription: x\nrequirements: {memory_bytes: 1}")
    other = stack_of(tmp_path, "# y\nrequirements:\n  memory_bytes: 1\ndescription: 'x'\nextends: tensorflow-2.9\n")
    assert one.digest() == other.digest()


def test_the_digest_of_a_stack_is_the_same_in_every_version() -> None:
    """Hosts' records contain digests, so equal files must have equal digests, however the models change."""
    stack = read_stack(json.loads((FIXTURES / "stack-schema-1.json").read_bytes()))
    assert stack.digest() == "f3f75771dc4d5286353f88cc1aea152944cd6c6ab71d5fb7766ce2fc9887526a"


def test_the_digest_is_no_matter_of_order_of_addresses_or_of_descriptions(house: Stack) -> None:
    data = plain(house)
    turned = dict(reversed([(key, one) for key, one in data.items() if key != "description"]))
    turned["artifacts"] = {name: {**one, "urls": []} for name, one in reversed(data["artifacts"].items())}
    assert digest_of(turned) == digest_of(data) == house.digest()


@pytest.mark.parametrize(
    "text",
    [
        "artifacts: {driver: {sha256: " + "a" * 64 + "}}",
        "artifacts: {driver: {stand_in: true}}",
        "tensorflow: {pythons: ['3.9', '3.8', '3.10', '3.7']}",
        "container: {toolkit: {repository: {uri: 'https://mirror.example.org/toolkit'}}}",
    ],
)
def test_whatever_else_a_stack_says_is_part_of_its_digest(tmp_path: Path, house: Stack, text: str) -> None:
    """A repository's address is part of the desired state, because the host has it in a file."""
    same, other = (stack_of(tmp_path, f"extends: tensorflow-2.9\n{more}") for more in ("", text))
    assert digest_of({**plain(same), "name": house.name}) == house.digest()
    assert digest_of({**plain(other), "name": house.name}) != house.digest()


def test_a_stack_as_plain_data_is_read_as_the_same_stack(house: Stack) -> None:
    assert read_stack(plain(house)) == house


NETWORK = "cuda: {repository: null, network: {name: cuda, uri: 'https://x/', key: docker-key}}"


def test_a_toolkit_from_the_network_takes_the_place_of_the_local_repository(tmp_path: Path) -> None:
    section = stack_of(tmp_path, f"extends: tensorflow-2.9\n{NETWORK}\n").section(CudaSection)
    assert (section.source.list_file, section.directory) == ("/etc/apt/sources.list.d/cuda.list", "")


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (
            [NETWORK.replace("repository: null, ", "")],
            r"cuda: both repository \(a .deb\) and network are set; set one to null",
        ),
        (
            ["cuda: {repository: null}"],
            r"cuda: no source of the CUDA packages is set; set `repository` \(a .deb\), or `network` with",
        ),
        (
            [NETWORK.replace("key: docker-key", "kee: docker-key")],
            r"mine.yml:2:\d+: cuda.network.kee: 'kee' is unknown here; did you mean 'key'",
        ),
        (
            [NETWORK.replace("name: cuda", "name: docker")],
            r"tensorflow-2.9.yml:\d+:1: container: its repository docker \(https://download.docker.com\S*\) conflicts "
            r"with the repository docker \(https://x/\) of cuda; write the same",
        ),
        (["drivr: {}"], "mine.yml:2:1: drivr: 'drivr' is unknown here; did you mean 'driver'"),
        (["driver: {artefact: x}"], "mine.yml:2:10: driver.artefact: 'artefact' is unknown.*did you mean 'artifact'"),
        (["cuda: {version: 11.2}"], "mine.yml:2:8: cuda.version: found number 11.2, expected text; put it in quotes"),
        (["driver: {version: newest}"], "'newest' is not a version"),
        (["driver: {kernels: old}"], "'old' is not a kernel condition; expected one like <6.3"),
        (
            ["cudnn: {artifact: cudn}"],
            "mine.yml:2:9: cudnn.artifact: unknown artifact 'cudn'; did you mean 'cudnn'",
        ),
        (["container: {docker: podman}"], "container.docker: found 'podman', expected 'docker.io' or 'docker-ce'"),
        (["artifacts: {driver: {sha256: abc}}"], r"artifacts.driver.sha256: found 'abc'"),
        (["artifacts: {driver: {file: ../../etc/passwd}}"], r"artifacts.driver.file: found '../../etc/passwd'"),
        (["artifacts: {driver: {urls: [gopher://x]}}"], r"artifacts.driver.urls.0: found 'gopher://x'"),
        (["artifacts: {driver: {size: 0}}"], "artifacts.driver.size: found number 0, expected greater than 0"),
        (["tensorflow: {pythons: []}"], "tensorflow.pythons: found a list, expected"),
        (
            ["tensorflow: {constraints: {'3.9': none.txt}}"],
            "mine.yml:2:28: tensorflow.constraints.3.9: .*cannot be read",
        ),
        (["tensorflow: {wheelhouses: {'3.9': wheels}}"], "tensorflow.wheelhouses.3.9: unknown artifact 'wheels'"),
        (["driver: null"], "mine.yml:2:1: driver: found nothing, expected a mapping"),
    ],
)
def test_mistakes_name_the_place_and_the_nearest(tmp_path: Path, lines: Sequence[str], sentence: str) -> None:
    with pytest.raises(InputErrors, match=sentence):
        stack_of(tmp_path, "\n".join(["extends: tensorflow-2.9", *lines]))


def test_all_mistakes_at_once_each_in_its_own_file(tmp_path: Path) -> None:
    stack_text = "extends: tensorflow-2.9\ndriver: {version: 1.5}\ncuda: {x: 1}\n"
    (tmp_path / "base.yml").write_text(stack_text)
    with pytest.raises(InputErrors) as error:
        stack_of(tmp_path, "extends: base\ncudnn: {version: 8}\ntensorflow: {constraints: {'3.9': none}}")
    places = sorted(str(one).partition(" ")[0].rpartition("/")[2] for one in error.value.errors)
    assert places == ["base.yml:2:10:", "base.yml:3:8:", "mine.yml:2:9:", "mine.yml:3:28:"]


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputErrors, match="cuda: is missing"):
        stack_of(tmp_path, "roles: [driver, cuda]\ndriver: {version: 470.182.03}")


def test_stacks_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"unknown stack 'tensorflow-2.8' in .*; did you mean 'tensorflow-2.9'"):
        load_stack("tensorflow-2.8", (STACKS,))
    with pytest.raises(InputError, match=r"unknown stack '../stacks/tensorflow-2\.9'"):
        load_stack("../stacks/tensorflow-2.9", (STACKS,))
    with pytest.raises(InputError, match="unknown stack 'nowhere'"):
        stack_of(tmp_path, "extends: nowhere")
    with pytest.raises(InputError, match="in a loop: mine → mine"):
        stack_of(tmp_path, "extends: mine")
    with pytest.raises(InputError, match="expected a stack as a mapping"):
        stack_of(tmp_path, "- a list")


def test_an_artifact_that_is_not_there(house: Stack) -> None:
    with pytest.raises(InputError, match="has no artifact 'cudn'; did you mean 'cudnn'"):
        house.artifact("cudn")


def test_a_stack_does_not_change(house: Stack) -> None:
    with pytest.raises(ValueError, match="frozen"):
        house.section(DriverSection).version = "1"  # type: ignore[misc]

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hostwright.common.errors import InputErrors
from hostwright.common.secret import Secret
from hostwright.inventory import Binder, Host, bind, binding, definitions, load


@dataclass(frozen=True, slots=True)
class Mirror:
    url: str = "http://localhost"


@dataclass(frozen=True, slots=True)
class Cuda:
    version: str = "11.2"
    prefix: str = "/usr/local"
    jobs: int = 4
    keep: bool = False
    extras: tuple[str, ...] = ()
    mirror: Mirror = Mirror()
    token: Secret | None = None

    def __post_init__(self) -> None:
        if self.jobs < 1:
            raise ValueError("jobs must be at least 1")


ROLES: Mapping[str, type] = {"cuda": Cuda}


def host_of(tmp_path: Path, text: str, **extra: str) -> Host:
    (tmp_path / "hosts.yml").write_text(text)
    return load(tmp_path, extra=extra).hosts["gpu01"]


def bound(tmp_path: Path, text: str, **extra: str) -> Cuda:
    return bind(Cuda, "cuda", host_of(tmp_path, text, **extra))


def test_without_variables_all_is_default(tmp_path: Path) -> None:
    assert bound(tmp_path, "gpu: {hosts: {gpu01: }}") == Cuda()
    assert bound(tmp_path, "gpu: {vars: {cuda: }, hosts: {gpu01: }}") == Cuda()


def test_mapping_and_flat_are_merged_field_by_field(tmp_path: Path) -> None:
    text = """
all: {vars: {cuda: {prefix: /opt, jobs: 8}}}
gpu:
  vars: {cuda_keep: yes, cuda: {extras: [a, b], mirror: {url: http://m}}}
  hosts: {gpu01: {cuda_jobs: 2, cuda_token: s}}
"""
    assert bound(tmp_path, text, cuda_version="11.10") == Cuda(
        "11.10", "/opt", 2, True, ("a", "b"), Mirror("http://m"), Secret("s")
    )


def test_text_of_the_command_line_becomes_what_the_field_wants(tmp_path: Path) -> None:
    text = "gpu: {hosts: {gpu01: }}"
    given = bound(tmp_path, text, cuda_jobs="3", cuda_keep="true", cuda_extras="[x]", cuda_version="11.2")
    assert given == Cuda("11.2", jobs=3, keep=True, extras=("x",))


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ("cuda: {prefx: /opt}", "hosts.yml:1:21: cuda.prefx: 'prefx' is unknown here; did you mean 'prefix'?"),
        ("cuda: {jobs: 1, colour: red}", "'colour' is unknown here; valid: version, prefix, jobs"),
        ("cuda: {version: 11.2}", "hosts.yml:1:21: cuda.version: found number 11.2, expected text; put it in quotes"),
        ("cuda_jobs: many", "cuda.jobs: found 'many', expected a whole number"),
        ("cuda_keep: perhaps", "cuda.keep: found 'perhaps', expected true or false"),
        ("cuda_extras: a", "cuda.extras: found 'a', expected a list"),
        ("cuda: {extras: [a, 7]}", "hosts.yml:1:33: cuda.extras.1: found number 7, expected text"),
        ("cuda: {mirror: {urk: x}}", "hosts.yml:1:30: cuda.mirror.urk: 'urk' is unknown here; did you mean 'url'"),
        ("cuda: {mirror: here}", "cuda.mirror: found 'here', expected a mapping"),
        ("cuda: {jobs: 1}, cuda_jobs: 2", "hosts.yml:1:31: cuda.jobs is given twice: first at"),
        ("cuda_version: !vault x", "cuda.version: is encrypted with Ansible Vault"),
        ("cuda_jobs: 0", "jobs must be at least 1"),
    ],
)
def test_mistakes_name_the_place_and_the_nearest(tmp_path: Path, variables: str, sentence: str) -> None:
    with pytest.raises(InputErrors) as error:
        bound(tmp_path, f"gpu: {{vars: {{{variables}}}, hosts: {{gpu01: }}}}")
    assert sentence in str(error.value)
    assert error.value.exit_status == 2


def test_all_mistakes_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputErrors) as error:
        bound(tmp_path, "gpu: {vars: {cuda: {a: 1, jobs: x, mirror: {b: 1}}, cuda_version: 9}, hosts: {gpu01: }}")
    assert len(error.value.errors) == 4


def test_a_wrong_secret_is_not_shown(tmp_path: Path) -> None:
    with pytest.raises(InputErrors) as error:
        bound(tmp_path, "gpu: {vars: {cuda: {token: [hunter2]}}, hosts: {gpu01: }}")
    assert "hunter2" not in str(error.value)


def test_variables_of_the_users_own(tmp_path: Path) -> None:
    text = "gpu: {vars: {ntp: x, motd: y, cuda_home: z, hostwright_own_variables: [cuda_home]}, hosts: {gpu01: }}"
    host = host_of(tmp_path, text)
    assert bind(Cuda, "cuda", host) == Cuda()
    assert Binder(ROLES).strangers(host) == []


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ("cuda_prefx: /opt", "'cuda_prefx' is not read: it is not a variable of any role; did you mean 'cuda_prefix'?"),
        ("cuda_colour: red", "'cuda_colour' is not read: it is not a variable of the role cuda; valid: cuda_version"),
        ("cuda: production", "cuda is not read: found text, expected a mapping of variables of the role cuda"),
        ("cuda: {http_proxy: x}", "cuda is not read: no key in it is a variable of the role cuda (version, prefix"),
        ("cuda: [a]", "cuda is not read: found a list"),
    ],
)
def test_other_peoples_variables_are_not_read_and_said(tmp_path: Path, variables: str, sentence: str) -> None:
    host = host_of(tmp_path, f"gpu: {{vars: {{{variables}}}, hosts: {{gpu01: }}}}")
    assert bind(Cuda, "cuda", host) == Cuda()
    (stranger,) = Binder(ROLES).strangers(host)
    assert sentence in str(stranger)
    assert "hosts.yml:1:14" in str(stranger)
    assert "production" not in str(stranger)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("cuda_prefx", "did you mean 'prefix'?"), ("cuda", "expected the variables of the role cuda")],
)
def test_what_the_command_line_gives_is_meant_for_a_role(tmp_path: Path, name: str, sentence: str) -> None:
    with pytest.raises(InputErrors) as error:
        bound(tmp_path, "gpu: {hosts: {gpu01: }}", **{name: "x"})
    assert sentence in str(error.value)


@pytest.mark.parametrize(
    ("variables", "meant"),
    [("cdua_prefix: x", "cuda_prefix"), ("cudaversion: x", "cuda_version"), ("cudas: {jobs: 1}", "cuda")],
)
def test_slips_in_a_roles_name(tmp_path: Path, variables: str, meant: str) -> None:
    host = host_of(tmp_path, f"gpu: {{vars: {{{variables}}}, hosts: {{gpu01: }}}}")
    (slip,) = Binder(ROLES).strangers(host)
    assert f"did you mean {meant!r}?" in str(slip)
    assert "hosts.yml:1:14" in str(slip)


@pytest.mark.parametrize("variables", ["cudas: {other: 1}", "cudas: 7", "barracuda_prefix: x", "prefix: /x"])
def test_names_that_are_no_slips(tmp_path: Path, variables: str) -> None:
    assert Binder(ROLES).strangers(host_of(tmp_path, f"gpu: {{vars: {{{variables}}}, hosts: {{gpu01: }}}}")) == []


def test_explain_names_every_definition_and_the_winner(tmp_path: Path) -> None:
    text = "all: {vars: {cuda: {jobs: 8}}}\ngpu:\n  vars: {cuda_jobs: 6}\n  hosts: {gpu01: {cuda: {prefix: /o}}}\n"
    host = host_of(tmp_path, text, cuda_jobs="2")
    lines = definitions(host, "cuda", "jobs", Cuda)
    rows: list[tuple[Any, ...]] = [(one.value, one.level, one.origin.line, one.wins) for one in lines]
    default = next(n for n, line in enumerate(Path(__file__).read_text().splitlines(), 1) if "jobs: int = 4" in line)
    assert rows == [
        (4, "role default", default, False),
        (8, "group all", 1, False),
        (6, "group gpu", 3, False),
        ("2", "command line", 0, True),
    ]
    assert lines[0].origin.file.endswith("test_inventory_binding.py")
    assert str(lines[2]).endswith(f"6  group gpu  {tmp_path}/hosts.yml:3")
    assert [one.wins for one in definitions(host, "cuda", "keep", Cuda)] == [True]


def test_the_variables_of_no_role_are_those_that_the_engine_reads() -> None:
    """Misspellings are found by a list of names, which must be complete."""
    engine = Path(binding.__file__).parents[1]
    told = {"reports", "reference", "gpucolumns.py"}  # only mentions them
    sources = "".join(file.read_text("utf-8") for file in engine.rglob("*.py") if not told & {*file.parts})
    read = set(re.findall(r'"hostwright_([a-z_]+)"', sources))
    parts = {"host_key", "plan", "site_", "tasks_of_"}  # common prefixes, and modules
    assert set(binding.KNOWN) == read - parts


def test_the_commands_that_print_secrets_are_variables_too(tmp_path: Path) -> None:
    text = "{hostwright_become_password_command: pass x, hostwright_pasword_command: pass y}"
    (slip,) = Binder(ROLES).strangers(host_of(tmp_path, f"gpu: {{vars: {text}, hosts: {{gpu01: }}}}"))
    assert "'hostwright_pasword_command' is not read; did you mean 'hostwright_password_command'?" in str(slip)


@pytest.mark.parametrize("text", ["cuda_token_command: C", "cuda: {token_command: C}"])
def test_a_command_stands_in_the_place_of_a_roles_secret(tmp_path: Path, text: str) -> None:
    host = host_of(tmp_path, f"gpu: {{vars: {{{text.replace('C', 'echo of $HOSTWRIGHT_HOST')}}}, hosts: {{gpu01: }}}}")
    token = bind(Cuda, "cuda", host).token
    assert token is not None
    assert token.reveal() == "of gpu01"
    assert Binder(ROLES).strangers(host) == []


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ("cuda_token: x, cuda_token_command: y", "cuda.token_command: is set together with cuda.token"),
        ("cuda: {token_command: 7}", "cuda.token_command: found number 7, expected a command for /bin/sh"),
        ("cuda: {prefix: /x, prefix_command: y}", "cuda.prefix_command: "),
    ],
)
def test_a_command_for_a_secret_that_cannot_be_used(tmp_path: Path, variables: str, sentence: str) -> None:
    with pytest.raises(InputErrors) as error:
        bound(tmp_path, f"gpu: {{vars: {{{variables}}}, hosts: {{gpu01: }}}}")
    assert sentence in str(error.value)
    assert "hosts.yml:1:" in str(error.value)

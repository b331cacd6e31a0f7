"""Variables that select another CUDA are found on a host, and none on a sound host."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from hostwright.audit.judging.context import Unread
from hostwright.plan.host.hostfacts import PCI
from hostwright.plan.model import Answer
from hostwright.standard.roles.cuda.failures.toolkits import TOOLKITS
from hostwright.standard.roles.environment.failures.variables import VARIABLES, VARIABLES_RULES, assignments
from hostwright.standard.roles.environment.winning import LOGIN, setter, settings
from tests.unit.support.library_contexts import LINK, OWN, Differs, asked, look_at, seen, toolkit, write

RULES = {rule.name: rule for rule in VARIABLES_RULES}


def found(name: str, differs: Differs | None = None) -> list[str]:
    return seen(RULES[name], look_at(differs))


def fired(differs: Differs) -> list[str]:
    """Return the names of all rules with findings."""
    ctx = look_at(differs)
    return [rule.name for rule in VARIABLES_RULES if seen(rule, ctx)]


def line(text: str, file: str = "/home/ann/.bashrc", number: int = 118) -> Differs:
    there = LINK + OWN + toolkit("/usr/local/cuda-11.4") + toolkit("/usr/local/cuda-10.1", has="")
    return {VARIABLES: f"{file}:{number}:{text}\n", TOOLKITS: there}


@pytest.mark.parametrize(
    "text",
    [
        "export LD_LIBRARY_PATH=/usr/local/cuda-11.4/lib64${LD_LIBRARY_PATH:+:${LD_LIBRARY_PATH}}",
        'PATH="/usr/local/cuda-11.4/bin:$PATH"',
        "  export CUDA_HOME=/usr/local/cuda-11.4",
        "export LD_LIBRARY_PATH=$LD_LIBRARY_PATH:/opt/cuda-12.1/lib64",
        "export LD_LIBRARY_PATH=/usr/local/cuda-11.2/compat",
        "export LD_LIBRARY_PATH=/usr/local/cuda/compat:$LD_LIBRARY_PATH",
    ],
)
def test_a_variable_that_names_another_cuda_is_told_with_file_and_line(text: str) -> None:
    (told,) = found("variable-of-another-cuda", line(text))
    assert told.startswith("/home/ann/.bashrc:118: ")
    assert text.partition("=")[0].split()[-1] in told


@pytest.mark.parametrize(
    "text",
    [
        "export CUDA_HOME=/usr/local/cuda",
        "export LD_LIBRARY_PATH=/usr/local/cuda-10.1/lib64",
        "export LD_LIBRARY_PATH=/usr/local/cuda-9.0/lib64",
        "TOKEN=x",
        "",
    ],
)
def test_own_and_missing_paths_in_variables_are_not_reported(text: str) -> None:
    assert fired(line(text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "export PATH=/usr/local/cuda-11.2/bin${PATH:+:${PATH}}",
        "export PATH=/usr/local/cuda/bin:$PATH # was PATH=/usr/local/cuda-11.4/bin",
        "export PATH=/usr/local/cuda-11/bin:$PATH",
        "LD_LIBRARY_PATH=/usr/local/cuda/lib64",
    ],
)
def test_our_own_toolkit_on_a_path_is_told_for_what_it_is(text: str) -> None:
    assert fired(line(text)) == ["path-in-start-file"]


def test_what_else_stands_in_the_line_is_not_shown() -> None:
    (told,) = found("variable-of-another-cuda", line("TOKEN=secret PATH=/usr/local/cuda-11.4/bin:$PATH; KEY=secret"))
    assert "secret" not in told


def test_lib_where_lib64_is_meant_is_told() -> None:
    text = "export LD_LIBRARY_PATH=/usr/local/cuda/lib:$LD_LIBRARY_PATH"
    told = found("path-lib-not-lib64", line(text, "/etc/profile.d/cuda-vars.sh", 3))
    assert told == ["/etc/profile.d/cuda-vars.sh:3: LD_LIBRARY_PATH=/usr/local/cuda/lib:$LD_LIBRARY_PATH"]
    assert fired(line(text)) == ["path-lib-not-lib64"]
    assert fired(line(text.replace("/lib:", "/lib64:"))) == ["path-in-start-file"]


def test_a_backslash_of_a_copied_line_is_told() -> None:
    text = r"export LD_LIBRARY_PATH=/usr/local/cuda-11.2/lib64\${LD_LIBRARY_PATH:+:${LD_LIBRARY_PATH}}"
    assert fired(line(text)) == ["path-misquoted"]


def test_the_roles_own_profile_is_left_to_the_plan() -> None:
    assert fired(line("PATH=/usr/local/cuda-11.4/bin:$PATH", "/etc/profile.d/cuda.sh")) == []


@pytest.mark.parametrize("status", [124, 137])
def test_homes_that_do_not_answer_are_no_failure_of_the_host(status: int) -> None:
    with pytest.raises(Unread, match="within"):
        found(
            "variable-of-another-cuda", {VARIABLES: Answer(status, "/home/a/.bashrc:1:PATH=/usr/local/cuda-11.4/b\n")}
        )


@pytest.mark.parametrize(
    ("text", "setting"),
    [
        ("NCCL_P2P_DISABLE=1", "NCCL_P2P_DISABLE=1"),
        ("export NCCL_IB_DISABLE=1; TOKEN=secret", "NCCL_IB_DISABLE=1"),
        ("NCCL_NET = Socket", "NCCL_NET = Socket"),
        ("NCCL_SHM_DISABLE  DEFAULT=1", "NCCL_SHM_DISABLE  DEFAULT=1"),
        ("NCCL_ALGO=Ring", "NCCL_ALGO=Ring"),
        ("NCCL_P2P_DISABLE=0", ""),
        ("NCCL_NET=IB", ""),
        ("NCCL_P2P_LEVEL=NVL", ""),
        ("NCCL_SOCKET_IFNAME=ens3", ""),
        ("# NCCL_P2P_DISABLE=1", ""),
    ],
)
def test_a_setting_that_slows_nccl_for_everybody_is_told(text: str, setting: str) -> None:
    told = [f"/etc/nccl.conf:3: {setting}"] if setting else []
    assert found("nccl-hindered", line(text, "/etc/nccl.conf", 3)) == told


TWO_CARDS = "0x10de 0x030200 0x1eb8\n" * 2


@pytest.mark.parametrize(
    ("file", "text", "seen"),
    [
        ("/etc/profile.d/zz.sh", "export CUDA_VISIBLE_DEVICES=-1", 0),
        ("/etc/profile.d/zz.sh", 'export CUDA_VISIBLE_DEVICES=""', 0),
        ("/etc/environment", "CUDA_VISIBLE_DEVICES=", 0),
        ("/etc/environment", "CUDA_VISIBLE_DEVICES=0", 1),
        ("/etc/security/pam_env.conf", "CUDA_VISIBLE_DEVICES  DEFAULT=NoDevFiles", 0),
        ("/home/ann/.bashrc", "CUDA_VISIBLE_DEVICES='9'; export CUDA_VISIBLE_DEVICES  # old", 0),
        ("/home/ann/.bashrc", "export CUDA_VISIBLE_DEVICES=-1,0,1", 0),
    ],
)
def test_a_choice_of_gpus_that_hides_cards_is_told_with_file_and_line(file: str, text: str, seen: int) -> None:
    (told,) = found("gpus-hidden", {VARIABLES: f"{file}:7:{text}\n", PCI: TWO_CARDS})
    assert told.startswith(f"{file}:7: CUDA_VISIBLE_DEVICES=") and told.endswith(f"programs can use {seen} of 2 GPUs")
    assert found("gpus-hidden", {VARIABLES: f"{file}:7:{text}\n", PCI: ""}) == []


@pytest.mark.parametrize(
    "text",
    [
        "export CUDA_VISIBLE_DEVICES=0",  # a user's own choice
        "export CUDA_VISIBLE_DEVICES=0,1",
        "export CUDA_VISIBLE_DEVICES=GPU-8932f937-d72c-4106-c12f-20bd9faed9f6",
        "export CUDA_VISIBLE_DEVICES=$(free-gpu)",
        'export CUDA_VISIBLE_DEVICES="${SLURM_GPUS}"',
        "CUDA_VISIBLE_DEVICES= jupyter lab",
        "alias cpu='CUDA_VISIBLE_DEVICES=-1 python'",
        "    export CUDA_VISIBLE_DEVICES=-1",  # in a function or a condition
    ],
)
def test_a_choice_of_gpus_of_ones_own_or_for_one_command_is_not_told(text: str) -> None:
    assert found("gpus-hidden", {VARIABLES: f"/home/ann/.bashrc:7:{text}\n", PCI: TWO_CARDS}) == []


CONDA = "/opt/miniconda3/lib"
HAS = f"has {CONDA}/libcudart.so.11.0\nhas {CONDA}/libcudnn.so.8\n"
OURS = "+hostwright /etc/profile.d/cuda.sh:5: PATH=/usr/local/cuda-11.2/bin:/bin\n"


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("/home/ann/.bashrc", f"export LD_LIBRARY_PATH={CONDA}:$LD_LIBRARY_PATH"),
        ("/home/ann/.zshenv", f'LD_LIBRARY_PATH="{CONDA}/"'),
        ("/etc/environment", f"LD_LIBRARY_PATH={CONDA}"),
        ("/home/ann/.profile", f"LD_LIBRARY_PATH=/opt/envs/cuda11/lib:{CONDA}"),
        ("/etc/security/pam_env.conf", f"LD_LIBRARY_PATH  DEFAULT={CONDA}"),
        ("/opt/.profile", "LD_LIBRARY_PATH=$HOME/miniconda3/lib"),
    ],
)
def test_a_library_path_that_holds_other_copies_is_told_with_file_and_copies(file: str, text: str) -> None:
    (told,) = found("library-path-first", {VARIABLES: f"{file}:7:{text}\n{HAS}"})
    assert told.startswith(f"{file}:7: LD_LIBRARY_PATH=")
    assert told.endswith(f"{CONDA} has libcudart.so.11.0, libcudnn.so.8")


def test_a_library_path_without_such_libraries_is_nobodys_business() -> None:
    text = "/home/ann/.bashrc:7:export LD_LIBRARY_PATH=/opt/oracle/lib:$LD_LIBRARY_PATH\n"
    assert found("library-path-first", {VARIABLES: text + HAS}) == []


def test_stubs_of_the_stacks_own_toolkit_are_another_copy_and_told_once() -> None:
    stubs = "/usr/local/cuda-11.2/lib64/stubs"
    has = f"has {stubs}/libcuda.so.1\n"
    line = f"/etc/environment:1:LD_LIBRARY_PATH={stubs}\n{has}"
    login = f"+hostwright /etc/profile.d/zz.sh:1: export LD_LIBRARY_PATH={stubs}:/usr/local/cuda-11.2/lib64\n{has}"
    profile = f"/etc/profile.d/zz.sh:1:export LD_LIBRARY_PATH={stubs}:$LD_LIBRARY_PATH\n"
    assert found("library-path-first", {VARIABLES: line, LOGIN: login}) == [
        f"/etc/profile.d/zz.sh:1: LD_LIBRARY_PATH: {stubs} has libcuda.so.1",
        f"/etc/environment:1: LD_LIBRARY_PATH={stubs}: {stubs} has libcuda.so.1",
    ]
    assert found("path-in-start-file", {VARIABLES: profile + line, LOGIN: login}) == []


def test_of_profiles_counts_what_a_login_shell_has_in_the_end() -> None:
    """conda-cuda.sh is read before cuda.sh, which puts the stack's directory first."""
    text = f"/etc/profile.d/conda-cuda.sh:1:export LD_LIBRARY_PATH={CONDA}\n{HAS}"
    first = f"+hostwright /etc/profile.d/conda-cuda.sh:1: export LD_LIBRARY_PATH={CONDA}\n"
    ours = f"+hostwright /etc/profile.d/cuda.sh:11: LD_LIBRARY_PATH=/usr/local/cuda-11.2/lib64:{CONDA}\n"
    later = f"++hostwright /etc/profile.d/zz.sh:3: export LD_LIBRARY_PATH={CONDA}:/usr/local/cuda-11.2/lib64\n"
    assert found("library-path-first", {VARIABLES: text, LOGIN: f"{first}{ours}{HAS}"}) == []
    assert found("library-path-first", {VARIABLES: text, LOGIN: f"{first}{ours}{later}{HAS}"}) == [
        f"/etc/profile.d/zz.sh:3: LD_LIBRARY_PATH: {CONDA} has libcudart.so.11.0, libcudnn.so.8"
    ]


def test_the_file_that_sets_path_after_the_stacks_is_told() -> None:
    late = "+hostwright /etc/profile.d/zz-local.sh:1: export PATH=/usr/bin:/bin\n"
    more = "+hostwright /home/ops/.profile:9: PATH=/home/ops/bin:/usr/bin:/bin\n"
    assert found("path-replaced", {LOGIN: f"{OURS}{late}nvcc /usr/bin\n"}) == [
        "/etc/profile.d/zz-local.sh:1: PATH=/usr/bin:/bin: nvcc is /usr/bin/nvcc"
    ]
    # a line that only extends the path is not reported
    assert found("path-replaced", {LOGIN: f"{OURS}{late}{more}nvcc /usr/bin\n"})[0].startswith("/home/ops/.profile:9")


def test_another_compiler_before_the_stacks_is_told() -> None:
    late = "+hostwright /home/ops/.profile:28: PATH=/opt/conda/bin:/usr/local/cuda-11.2/bin:/bin\n"
    assert found("path-replaced", {LOGIN: f"{OURS}{late}nvcc /opt/conda/bin\n"})[0].startswith("/home/ops/.profile:28")
    assert found("path-replaced", {LOGIN: f"{OURS}nvcc /usr/local/cuda-11.2/bin\n"}) == []
    assert found("path-replaced", {LOGIN: ""}) == []  # start files that end the shell produce no output


# the probe's script, run by this machine's sh


def test_bash_tells_where_a_path_is_set_whatever_else_start_files_do(tmp_path: Path) -> None:
    libraries = tmp_path / "lib"
    write(libraries / "libcudart.so.11.0", "x")
    write(tmp_path / "bin/nvcc", "#!/bin/sh\n").chmod(0o755)
    lines = [
        "printf '\\033[1m'",
        "set -u",
        "C=$HOME",
        "if true; then . ~/other; fi",
        "export PATH=$C/bin:$PATH",
        "exit 3",
    ]
    write(tmp_path / ".profile", "\n".join([*lines, ""]))
    write(tmp_path / "other", "LD_LIBRARY_PATH=$C/lib\n")
    done = subprocess.run(
        ["sh", "-c", LOGIN.script],
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
        capture_output=True,
        check=True,
    )
    text = done.stdout.decode()
    assert settings(text, "LD_LIBRARY_PATH")[-1].place == f"{tmp_path}/other:1"
    assert setter(text, "PATH", f"{tmp_path}/bin", "/nowhere").place == f"{tmp_path}/.profile:5"
    assert f"nvcc {tmp_path}/bin\n" in text
    assert f"has {libraries}/libcudart.so.11.0\n" in text


def test_the_files_of_all_accounts_with_a_login_shell_are_read(tmp_path: Path) -> None:
    export = "export PATH=/usr/local/cuda-11.4/bin:$PATH\n"
    homes = {"ann": "/bin/bash", "bob": "/usr/sbin/nologin", "cy": "/usr/bin/zsh"}
    rows = [f"{name}:x:1000:1000::{tmp_path}/homes/{name}:{shell}" for name, shell in homes.items()]
    write(tmp_path / "etc/passwd", "\n".join([f"root:x:0:0:root:{tmp_path}/root:/bin/bash", *rows, ""]))
    for name in homes:
        write(tmp_path / f"homes/{name}/.bashrc", f"# PATH=/usr/local/cuda-11.4\nalias x=y\n{export}")
    write(tmp_path / "home/with space/.profile", export)
    write(tmp_path / "root/.zshrc", export)
    write(tmp_path / "etc/profile.d/cuda-vars.sh", export)
    write(tmp_path / "etc/environment", f"PATH=/usr/bin\nLD_LIBRARY_PATH={tmp_path}/etc/lib:/opt/nothing\n")
    write(tmp_path / "etc/lib/libcudnn.so.8", "x")
    answer = asked(VARIABLES, tmp_path, "/etc/", "/home/")
    assert [(one.file, one.line) for one in assignments(look_at({VARIABLES: answer}))] == [
        ("/etc/profile.d/cuda-vars.sh", 1), ("/home/with space/.profile", 1), ("/homes/ann/.bashrc", 3),
        ("/homes/cy/.bashrc", 3), ("/root/.zshrc", 1),
    ]  # fmt: skip
    assert "has /etc/lib/libcudnn.so.8\n" in answer.text


def test_a_pipe_in_a_home_keeps_nobody_waiting(tmp_path: Path) -> None:
    (tmp_path / "home/ann").mkdir(parents=True)
    os.mkfifo(tmp_path / "home/ann/.bashrc")
    assert asked(VARIABLES, tmp_path, "/etc/", "/home/") == Answer(0, "")


def test_a_choice_of_gpus_is_read_from_profiles_pam_env_and_homes(tmp_path: Path) -> None:
    files = ("etc/profile.d/zz.sh", "etc/environment", "etc/security/pam_env.conf", "home/ann/.bashrc")
    for name in files:
        blank = "  DEFAULT" if name.endswith("conf") else ""
        write(tmp_path / name, f"# x\nCUDA_VISIBLE_DEVICES{blank}=-1\nCUDA_VISIBLE=1\n")
    answer = asked(VARIABLES, tmp_path, "/etc/", "/home/")
    told = found("gpus-hidden", {VARIABLES: answer, PCI: TWO_CARDS})
    assert {line.partition(": ")[0] for line in told} == {f"/{name}:2" for name in files}


def test_who_reads_etc_environment_is_said_rightly() -> None:
    """pam_env reads it for logins, ssh, cron and sudo (linux-pam#898, sudo#401); systemd units do not."""
    for name in ("path-in-start-file", "variable-of-another-cuda"):
        cause = RULES[name].cause
        assert "pam_env" in cause and "logins, ssh, cron and sudo" in cause
        assert not re.search(r"(cron|sudo|over ssh)\b[^.;)]* never", cause)


@pytest.mark.parametrize(
    ("file", "text", "found_there"),
    [
        ("/etc/environment", 'PATH="/usr/share/archcraft/scripts"', True),
        ("/etc/environment", "PATH=$PATH:/opt/tools/bin", True),
        ("/etc/environment", 'PATH="/usr/local/bin:/usr/bin/:/bin"', False),
        ("/etc/environment", "NODE_PATH=/opt/modules", False),
        ("/etc/security/pam_env.conf", "PATH DEFAULT=/opt/tools/bin", True),
        ("/etc/security/pam_env.conf", "PATH DEFAULT=${PATH}:/opt/tools/bin", False),
        ("/home/ann/.bashrc", "PATH=/opt/tools/bin", False),
    ],
)
def test_a_path_of_sessions_without_the_systems_programs_is_told(file: str, text: str, found_there: bool) -> None:
    assert bool(found("path-without-system", line(text, file, 1))) is found_there
    if found_there:
        assert found("path-without-system", line(text, file, 1))[0].startswith(f"{file}:1: PATH=")


def test_the_question_for_variables_reads_the_path_of_sessions(tmp_path: Path) -> None:
    write(tmp_path / "etc/environment", 'PATH="/usr/share/archcraft/scripts"\n')
    answer = asked(VARIABLES, tmp_path, "/etc/", "/home/")
    assert answer.text == '/etc/environment:1:PATH="/usr/share/archcraft/scripts"\n'

"""The role environment: profile, loader and tools, as texts and in a real shell."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hostwright.common.templates import render
from hostwright.plan.model import Answer, Change
from hostwright.plan.roles.role import RoleContext
from hostwright.plan.targets import TargetHost
from hostwright.resources.files.files import File, Link
from hostwright.resources.system.loader import LoaderCache
from hostwright.standard.roles.cuda.section import CudaSection
from hostwright.standard.roles.cudnn.section import CudnnSection
from hostwright.standard.roles.environment import COMMAND, Environment, environment
from hostwright.standard.roles.tensorflow.section import TensorflowSection
from tests.unit.support.auditvalues import role_context
from tests.unit.support.facts import changes_of
from tests.unit.support.shell import program
from tests.unit.support.stacks import load_stack
from tests.unit.support.standard import targets

STACK = load_stack("tensorflow-2.9")
RESOURCES = environment.resources(Environment(), RoleContext(STACK))
FILES = {one.path: one for one in RESOURCES if isinstance(one, File)}
#: hosts of stacks whose TensorFlow loads a toolkit's libraries
WITH_TOOLKIT = [target for target in targets() if target.stack.find(CudnnSection)]
HOME = "/usr/local/cuda-11.2"
PROFILE = FILES["/etc/profile.d/cuda.sh"].content
OPENED = [name for name, layer in STACK.section(TensorflowSection).libraries.items() if layer != "driver"]
GREEN: dict[str, str | Answer] = {
    "ldconfig": "".join(f"{name} {HOME}/targets/x86_64-linux/lib/{name}\n" for name in OPENED),
    "readlink": f"{COMMAND}\n",
    **{f"stat -c '%F|%a|%U:%G' -- {path}": f"regular file|{one.mode}|root:root\n" for path, one in FILES.items()},
    **{f"cat -- {path}": one.content for path, one in FILES.items()},
}


def changed(key: str, value: str | Answer) -> Change:
    changes = changes_of(RESOURCES, {**GREEN, key: value})
    assert len(changes) == 1, [change.what for change in changes]
    return changes[0]


def shell(script: str, *, kind: str = "sh", **variables: str) -> list[str]:
    done = subprocess.run([kind, "-euc", script], env=variables, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_a_provisioned_host_plans_nothing() -> None:
    assert changes_of(RESOURCES, GREEN) == ()


def test_a_bare_host_gets_everything() -> None:
    whats = [change.what for change in changes_of(RESOURCES)]
    assert whats[:4] == [f"file {path}" if path else "loader cache" for path in
                         ("/etc/ld.so.conf.d/cuda-11-2.conf", "", "/etc/profile.d/cuda.sh", COMMAND)]  # fmt: skip
    assert "link /usr/bin/nvcc" in whats


def test_every_library_that_tensorflow_opens_is_asked_for_but_the_drivers() -> None:
    assert len(OPENED) == 8
    change = changed("ldconfig", "")
    assert change.have.split(", ") == [f"{name} absent" for name in OPENED]


CUDNN, RUNTIME = STACK.section(CudnnSection).library, STACK.section(CudaSection).runtime


@pytest.mark.parametrize(
    ("roles", "names"),
    [
        (("base", "cuda", "environment"), (RUNTIME,)),
        (("base", "cuda", "cudnn", "environment"), (RUNTIME, CUDNN)),
        (("base", "cuda", "cudnn", "environment", "tensorflow"), tuple(OPENED)),
        (("base", "cuda", "environment", "tensorflow"), tuple(name for name in OPENED if name != CUDNN)),
    ],
)
def test_libraries_of_absent_layers_are_not_checked(roles: tuple[str, ...], names: tuple[str, ...]) -> None:
    host = role_context(STACK, *roles)
    (cache,) = (one for one in environment.resources(Environment(), host) if isinstance(one, LoaderCache))
    assert cache.libraries == names
    values = [value.name for value in host.audit_values if value.layer == "environment"]
    assert values == [*(name for name in (RUNTIME, CUDNN) if name in names), "profile", "ptxas"]


@pytest.mark.parametrize("target", WITH_TOOLKIT, ids=lambda target: target.name)
def test_library_names_are_those_that_tensorflow_opens(target: TargetHost) -> None:
    libraries = target.stack.section(TensorflowSection).libraries
    assert libraries[target.stack.section(CudaSection).runtime] == "cuda"
    assert libraries[target.stack.section(CudnnSection).library] == "cudnn"


def test_missing_loader_path_returns_before_ldconfig_runs() -> None:
    conf = "/etc/ld.so.conf.d/cuda-11-2.conf"
    gone = {f"cat -- {conf}": Answer(1, ""), f"stat -c '%F|%a|%U:%G' -- {conf}": Answer(1, ""), "ldconfig": ""}
    assert [change.what for change in changes_of(RESOURCES, {**GREEN, **gone})] == [f"file {conf}", "loader cache"]


def test_a_file_that_lost_the_profilers_directory_is_written_and_read() -> None:
    conf = "/etc/ld.so.conf.d/cuda-11-2.conf"
    change = changed(f"cat -- {conf}", f"{HOME}/targets/x86_64-linux/lib\n")
    assert change.what == f"file {conf}"
    assert change.steps[0].script.splitlines()[-1] == "/sbin/ldconfig"


def test_a_stale_cache_alone_is_made_again() -> None:
    assert changed("ldconfig", "").steps[0].script.startswith("/sbin/ldconfig\n")


def test_the_loader_is_told_the_directories_and_the_profilers() -> None:
    text = FILES["/etc/ld.so.conf.d/cuda-11-2.conf"].content
    assert text == f"{HOME}/targets/x86_64-linux/lib\n{HOME}/extras/CUPTI/lib64\n"


@pytest.mark.parametrize("kind", ["sh", "bash"])
def test_the_profile_puts_the_toolkit_first(kind: str) -> None:
    script = f'{PROFILE}\necho "$PATH"; echo "$LD_LIBRARY_PATH"'
    assert shell(script, kind=kind, PATH="/usr/bin:/bin") == [
        f"{HOME}/bin:/usr/bin:/bin",
        f"{HOME}/lib64:{HOME}/extras/CUPTI/lib64",
    ]


def test_the_profile_keeps_what_is_there_and_leaves_no_empty_entry() -> None:
    script = f'{PROFILE}\necho "$PATH"; echo "$LD_LIBRARY_PATH"'
    path, libraries = shell(script, PATH="/usr/bin", LD_LIBRARY_PATH="/opt/my libs")
    assert libraries == f"{HOME}/lib64:{HOME}/extras/CUPTI/lib64:/opt/my libs"
    assert "" not in path.split(":")


def test_reading_the_profile_twice_adds_nothing() -> None:
    once = shell(f'{PROFILE}\necho "$PATH $LD_LIBRARY_PATH"', PATH="/usr/bin")
    assert shell(f'{PROFILE}\n{PROFILE}\necho "$PATH $LD_LIBRARY_PATH"', PATH="/usr/bin") == once


def test_the_profile_works_with_nothing_set_and_leaves_no_variable_behind() -> None:
    (found,) = shell(f'unset PATH LD_LIBRARY_PATH\n{PROFILE}\necho "${{directory-none}} $PATH"', PATH="/usr/bin")
    assert found == f"none {HOME}/bin"


def test_the_profile_names_lib64_only() -> None:
    assert f"{HOME}/lib64" in PROFILE
    assert f"{HOME}/lib:" not in PROFILE
    assert f"{HOME}/lib " not in PROFILE


def test_tools_run_by_their_own_path_for_nvcc(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    program(tmp_path / "bin", "nvcc", 'echo "$0" "$#" "$2"')
    starter = program(tmp_path, "cuda-command", "")
    values = {"prefix": str(tmp_path), "series": "11.2", "compiler": ""}
    starter.write_text(render("environment/cuda-command.j2", **values))
    (tmp_path / "usr").mkdir()
    (tmp_path / "usr/nvcc").symlink_to(starter)
    done = subprocess.run([tmp_path / "usr/nvcc", "-o", "a b"], capture_output=True, text=True, check=True)
    assert done.stdout == f"{tmp_path}/bin/nvcc 2 a b\n"


@pytest.mark.parametrize("template", ["environment/cuda-command.j2", "environment/cuda.sh.j2"])
def test_nvcc_gets_the_compiler_of_the_stack_unless_the_user_says_otherwise(tmp_path: Path, template: str) -> None:
    """In a user's login shell and from cron, and also with both wrappers before nvcc."""
    program(tmp_path / "bin", "nvcc", 'echo "$NVCC_PREPEND_FLAGS"')
    values = {"prefix": str(tmp_path), "series": "11.2", "libraries": ()}
    texts = {compiler: render(template, compiler=compiler, **values) for compiler in ("", "/usr/bin/g++-10")}
    assert "NVCC" not in texts[""]
    starter = program(tmp_path, "nvcc", "")
    starter.write_text(f"{texts['/usr/bin/g++-10']}\nnvcc")  # the command ends with its tool, the profile does not
    for given, got in (({}, "-ccbin /usr/bin/g++-10"), ({"NVCC_PREPEND_FLAGS": "-O3"}, "-O3")):
        done = subprocess.run(
            ["sh", starter], env={"PATH": "/usr/bin", **given}, capture_output=True, text=True, check=False
        )
        assert done.stdout == f"{got}\n", done.stderr


def test_tools_lie_in_the_one_directory_that_is_on_crons_path() -> None:
    links = [one for one in RESOURCES if isinstance(one, Link)]
    assert {"/usr/bin/nvcc", "/usr/bin/ptxas"} <= {one.path for one in links}
    assert {one.target for one in links} == {COMMAND}


def test_a_turned_tool_is_mended_alone() -> None:
    probe = next(one for one in RESOURCES if isinstance(one, Link) and one.path.endswith("ptxas")).probes()[0]
    assert changed(probe.script, "/elsewhere/ptxas\n").what == "link /usr/bin/ptxas"


def test_nobodys_own_files_are_touched() -> None:
    everything = "\n".join(step.script for change in changes_of(RESOURCES) for step in change.steps)
    assert "bashrc" not in everything
    assert "/home" not in everything


def test_whatever_writes_the_loaders_cache_holds_dpkgs_lock():
    """dpkg's triggers also write it while other roles install packages: two concurrent writers fail."""
    steps = [
        step for change in changes_of(RESOURCES) for step in change.steps if "/sbin/ldconfig\n" in f"{step.script}\n"
    ]
    assert steps
    assert {step.lock for step in steps} == {"dpkg"}

"""Other copies of libraries in an environment's wheels are found with the line that puts them first."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from hostwright.audit.judging.context import AuditContext, Unread
from hostwright.plan.desired import Desired, DesiredRole
from hostwright.plan.host.hostfacts import HOST_PROBES
from hostwright.plan.model import Answer, Facts, Probe
from hostwright.plan.roles.role import RoleContext, discover
from hostwright.resources.python.python import Venv
from hostwright.standard.roles.driver.failures.loader_cache import CONF
from hostwright.standard.roles.environment.failures.shadowed import LIBRARIES, environment_rules
from hostwright.standard.roles.environment.failures.variables import VARIABLES
from hostwright.standard.roles.environment.winning import LOGIN
from tests.unit.support.library_contexts import NOW, seen
from tests.unit.support.shell import program, run
from tests.unit.support.stacks import load_stack

ROLES = {role.name: role for role in discover()}
STACKS = {"pytorch": "pytorch-2.14", "jax": "jax-0.12", "tensorflow": "tensorflow-2.21"}
#: rules for which test_failures_planted has plants here
PLANTED = {rule.name for layer in STACKS for rule in environment_rules(layer, "", "")}
BLAS = "nvidia/cu13/lib/libcublas.so.13"


def look(layer: str, answers: dict[Probe, str], *more: str) -> tuple[AuditContext, str]:
    """Return a host whose environment is as desired except for further packages, and the environment's link."""
    stack, role = load_stack(STACKS[layer]), ROLES[layer]
    resources = role.resources(role.variables(), RoleContext(stack))
    venv = next(one for one in resources if isinstance(one, Venv))
    made = venv.recipes[0]
    dists = [f"dist\t{name.replace('-', '_')}-{version}.dist-info\trecorded" for name, version in made.pins.items()]
    digest = hashlib.sha256(made.plain.encode()).hexdigest()
    audit = "\n".join([f"link\t{made.home}", f"home\t{made.home}", f"constraints\t{digest}", *dists, *more]) + "\n"
    empty = dict.fromkeys((*HOST_PROBES, LIBRARIES, VARIABLES, LOGIN, CONF), "")
    texts = {**empty, venv.probes()[1]: audit}
    facts = Facts({probe: Answer(0, text) for probe, text in {**texts, **answers}.items()})
    desired = Desired("gpu01", stack, (DesiredRole(layer, ("base",), resources),))
    return AuditContext(desired, {}, facts, {layer: ()}, NOW), venv.path


def found(layer: str, rule: str, answers: dict[Probe, str], *more: str) -> list[str]:
    rules = {each.name: each for each in environment_rules(layer, layer, "")}
    ctx, _ = look(layer, answers, *more)
    return seen(rules[f"{layer}-{rule}"], ctx)


def listed(layer: str, *cached: str) -> str:
    """Return the probe's output about the wheels' libraries, with further lines about the loader's cache."""
    path = look(layer, {})[1]
    return f"library\t{path}/lib/python3.12/site-packages/{BLAS}\n" + "".join(f"{line}\n" for line in cached)


@pytest.mark.parametrize("layer", STACKS)
def test_a_line_that_puts_another_copy_first_is_named_with_both(layer: str) -> None:
    line = "/etc/environment:3:LD_LIBRARY_PATH=/usr/local/cuda-13.2/lib64\n"
    (evidence,) = found(
        layer,
        "library-shadowed",
        {LIBRARIES: listed(layer), VARIABLES: f"{line}has /usr/local/cuda-13.2/lib64/libcublas.so.13\n"},
    )
    assert evidence.startswith("/etc/environment:3: /usr/local/cuda-13.2/lib64/libcublas.so.13 is loaded before /opt/")
    assert evidence.endswith(BLAS)


def test_what_a_login_shell_has_in_the_end_counts() -> None:
    login = "+hostwright /etc/profile.d/zz.sh:1: LD_LIBRARY_PATH=/opt/cuda/lib64\nhas /opt/cuda/lib64/libcublas.so.13\n"
    (evidence,) = found("pytorch", "library-shadowed", {LIBRARIES: listed("pytorch"), LOGIN: login})
    assert evidence.startswith("/etc/profile.d/zz.sh:1: /opt/cuda/lib64/libcublas.so.13 is loaded before ")


def test_libraries_of_another_release_shadow_nothing() -> None:
    """The loader searches a wheel's exact soname: CUDA 11.2's libcublas.so.11 is another name."""
    line = "/home/ann/.bashrc:3:LD_LIBRARY_PATH=/usr/local/cuda-11.2/lib64\n"
    answers = {LIBRARIES: listed("pytorch"), VARIABLES: f"{line}has /usr/local/cuda-11.2/lib64/libcublas.so.11\n"}
    assert found("pytorch", "library-shadowed", answers) == []


@pytest.mark.parametrize("layer", STACKS)
def test_another_copy_in_the_loaders_cache_is_named_with_the_file_that_puts_it_there(layer: str) -> None:
    (evidence,) = found(
        layer,
        "library-beside",
        {
            LIBRARIES: listed(layer, "cached\tlibcublas.so.13\t/usr/local/cuda-13.2/lib64/libcublas.so.13"),
            CONF: "/etc/ld.so.conf.d/cuda-13-2.conf:/usr/local/cuda-13.2/lib64\n",
        },
    )
    assert (
        "libcublas.so.13 => /usr/local/cuda-13.2/lib64/libcublas.so.13, which /etc/ld.so.conf.d/cuda-13-2" in evidence
    )


@pytest.mark.parametrize("layer", STACKS)
def test_wheels_of_two_releases_in_one_environment(layer: str) -> None:
    assert found(layer, "cuda-wheels-mixed", {}) == []
    other = "11" if layer == "tensorflow" else "12"
    evidence = found(layer, "cuda-wheels-mixed", {}, f"dist\tnvidia_cudnn_cu{other}-9.10.2.21.dist-info\trecorded")
    assert [line.rpartition("(")[2] for line in evidence] == (
        ["CUDA 11)", "CUDA 12)"] if layer == "tensorflow" else ["CUDA 12)", "CUDA 13)"]
    )


def test_an_unreadable_cache_is_not_an_empty_one() -> None:
    ctx, _ = look("pytorch", {})
    facts = Facts({**ctx.facts, LIBRARIES: Answer(1, "")})
    unread = AuditContext(ctx.desired, {}, facts, {"pytorch": ()}, NOW)
    (*_, beside) = environment_rules("pytorch", "PyTorch", "")
    with pytest.raises(Unread, match="could not be listed"):
        seen(beside, unread)


def test_the_host_lists_wheels_libraries_and_what_the_cache_has_of_their_names(tmp_path: Path) -> None:
    library = tmp_path / "opt/pytorch-2.14/lib/python3.12/site-packages/nvidia/cu13/lib/libcublas.so.13"
    library.parent.mkdir(parents=True)
    library.write_bytes(b"")
    cache = (
        "\tlibcublas.so.13 (libc6,x86-64) => /usr/local/cuda-13.2/lib64/libcublas.so.13\n"
        "\tlibcublas.so.13 (libc6,AArch64) => /usr/aarch64/libcublas.so.13\n"
        "\tlibc.so.6 (libc6,x86-64, OS ABI: Linux 3.2.0) => /lib/x86_64-linux-gnu/libc.so.6\n"
    )
    program(tmp_path / "bin", "ldconfig", f"printf %s '{cache}'")
    script = LIBRARIES.script.replace("/opt/*", f"{tmp_path}/opt/*").replace("/sbin/ldconfig", "ldconfig")
    assert run(script, path=tmp_path / "bin").stdout.decode().splitlines() == [
        f"library\t{library}",
        "cached\tlibcublas.so.13\t/usr/local/cuda-13.2/lib64/libcublas.so.13",
    ]

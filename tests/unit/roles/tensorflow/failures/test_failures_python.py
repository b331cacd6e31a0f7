"""Rules for TensorFlow's environment find their failures on a host, and none on a sound host."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostwright.audit.failures.rule import FailureRule
from hostwright.audit.judging.context import AuditContext, Unread
from hostwright.plan.desired import Desired, DesiredRole
from hostwright.plan.host.hostfacts import AVX, PYTHONS
from hostwright.plan.model import Answer
from hostwright.resources.python.python import Recipe, Venv
from hostwright.standard.roles.tensorflow.failures.python import PYTHON, WHEELS
from hostwright.standard.roles.tensorflow.failures.state import OUTSIDE, VENVS, outside, used
from hostwright.standard.roles.tensorflow.section import TensorflowSection
from tests.unit.roles.test_role_tensorflow import LINK, recipe
from tests.unit.roles.test_role_tensorflow import found as audited
from tests.unit.support.known import with_message
from tests.unit.support.library_contexts import DESIRED, STACK, VENV, Differs, asked, look_at, resource, seen
from tests.unit.support.stacks import with_values

RULES = [*PYTHON, *with_message("tensorflow")]
HOME = recipe().home


def found(name: str, differs: Differs | None = None) -> list[str]:
    return seen(next(rule for rule in RULES if rule.name == name), look_at(differs))


def fired(differs: Differs) -> list[str]:
    """Return the names of all rules with findings."""
    ctx = look_at(differs)
    return [rule.name for rule in RULES if seen(rule, ctx)]


def added(*dists: str) -> str:
    """Return the audit of a complete environment with further packages."""
    return audited(more="".join(f"dist\t{dist}.dist-info\trecorded\n" for dist in dists))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_nothing_is_seen_on_a_host_that_is_as_desired(rule: FailureRule) -> None:
    assert seen(rule, look_at()) == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_nothing_is_said_of_a_host_that_was_not_asked(rule: FailureRule) -> None:
    ctx = look_at(dict.fromkeys(look_at().facts, None))
    with pytest.raises(Unread):
        seen(rule, ctx)


@given(text=st.text(st.characters(codec="utf-8") | st.sampled_from("\t\n -./\x1b"), max_size=300))
@pytest.mark.parametrize("start", ["", f"{LINK}\t3.9\tnumpy-", f"link\t{HOME}\nhome\t{HOME}\ndist\tnumpy-"])
def test_no_answer_breaks_a_rule(start: str, text: str) -> None:
    ctx = look_at(dict.fromkeys((VENV, VENVS, OUTSIDE, PYTHONS), start + text))
    for rule in RULES:
        with suppress(Unread):
            assert all(isinstance(line, str) for line in seen(rule, ctx))


def test_nothing_fires_on_a_bare_host() -> None:
    assert fired({VENV: "link\t\n"}) == []


# environment built by provisioning


@pytest.mark.parametrize(
    ("name", "version", "rule"),
    [("numpy", "2.0.2", "numpy-too-new"), ("protobuf", "4.21.12", "protobuf-too-new")],
)
def test_what_breaks_the_import_is_the_one_finding(name: str, version: str, rule: str) -> None:
    differs: Differs = {VENV: audited({name: version})}
    assert fired(differs) == [rule]
    assert found(rule, differs) == [f"{HOME}: {name} {version}"]


@pytest.mark.parametrize("version", ["3.20.3", "3.19.4"])
def test_protobuf_3_is_only_not_the_pinned_one(version: str) -> None:
    assert fired({VENV: audited({"protobuf": version})}) == ["pins-not-kept"]


def test_another_tensorflow_is_the_one_finding() -> None:
    differs: Differs = {VENV: audited({"tensorflow": "2.11.0"})}
    assert fired(differs) == ["tensorflow-other-version"]
    assert found("tensorflow-other-version", differs) == [f"{HOME}: tensorflow 2.11.0, Python 3.9"]


def test_each_other_broken_pin_is_a_warning() -> None:
    assert found("pins-not-kept", {VENV: audited({"keras": "2.10.0"})}) == ["keras 2.10.0 (pinned: 2.9.0)"]
    assert fired({VENV: added("keras-2.10.0")}) == ["pins-not-kept"]


def test_a_lost_file_a_lost_package_and_a_lost_interpreter_are_damage() -> None:
    damage = "damage\tkeras-2.9.0.dist-info\tkeras/losses.py\n"
    assert fired({VENV: audited(more=damage)}) == ["environment-damaged"]
    assert found("environment-damaged", {VENV: audited(more=damage)}) == [
        "keras 2.9.0 (keras/losses.py missing or changed)"
    ]
    assert found("environment-damaged", {VENV: audited({"numpy": ""})}) == ["numpy absent"]
    gone = audited().replace("constraints\t", "gone\tinterpreter\nconstraints\t")
    assert found("environment-damaged", {VENV: gone}) == [f"{HOME}: no interpreter"]
    assert fired({VENV: gone, PYTHONS: "/usr/bin/python3 3.11\n"}) == ["no-wheel"], "it went with the host's Python"


@pytest.mark.parametrize("dist", ["tensorflow_gpu-2.9.0", "tf_nightly-2.10.0.dev20220427", "tensorflow_cpu-2.9.0"])
def test_a_second_tensorflow_explains_the_files_that_it_changed(dist: str) -> None:
    damage = "damage\ttensorflow-2.9.0.dist-info\ttensorflow/__init__.py\n"
    assert fired({VENV: added(dist) + damage}) == ["second-tensorflow"]


@pytest.mark.parametrize("dist", ["tensorflow_estimator-2.9.0", "tensorflow_io_gcs_filesystem-0.26.0", "jupyter-1.0.0"])
def test_what_belongs_to_tensorflow_or_to_a_user_is_no_second_one(dist: str) -> None:
    assert set(fired({VENV: added(dist)})) <= {"pins-not-kept"}
    assert found("second-tensorflow", {VENV: added(dist)}) == []


def test_nvidias_libraries_as_wheels_are_told() -> None:
    differs: Differs = {
        VENV: added("nvidia_cudnn_cu11-8.5.0.96", "nvidia_cublas_cu11-11.10.3.66", "nvidia_ml_py-11.495")
    }
    assert fired(differs) == ["nvidia-wheels"]
    assert found("nvidia-wheels", differs) == [
        f"{HOME}: nvidia-cublas-cu11 11.10.3.66", f"{HOME}: nvidia-cudnn-cu11 8.5.0.96",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["nvidia-ml-py", "nvidia-ml-py3", "nvidia-pyindex", "nvidia-smi", "nvidia-dali"])
def test_nvidia_package_without_cuda_libraries_is_no_cuda_wheel(name: str) -> None:
    assert not WHEELS.fullmatch(name)


# handmade environment in its place


def by_hand(*dists: str, python: str = "3.9", home: str = LINK) -> Differs:
    lines = "".join(f"{home}\t{python}\t{dist}.dist-info\n" for dist in dists)
    return {VENV: "link\t\n", VENVS: lines}


def test_handmade_environment_is_examined_too() -> None:
    differs = by_hand("tensorflow-2.9.0", "numpy-2.0.2", "protobuf-4.25.8", "nvidia_cudnn_cu11-8.6.0")
    assert fired(differs) == ["nvidia-wheels", "protobuf-too-new", "numpy-too-new"]
    assert found("numpy-too-new", differs) == [f"{LINK}: numpy 2.0.2"]


def test_one_of_a_python_without_wheels_is_told() -> None:
    assert fired(by_hand("pip-24.0", python="3.12")) == ["environment-python"]
    full = ("tensorflow-2.12.0", "numpy-2.0.2", "tensorflow_cpu-2.12.0", "nvidia_cudnn_cu11-8.6.0.163")
    assert fired(by_hand(*full, python="3.11")) == ["environment-python"], "it is replaced, whatever is in it"
    no_python = {**by_hand("pip-24.0", python="3.12"), PYTHONS: "/usr/bin/python3 3.12\n"}
    assert fired(no_python) == ["no-wheel"]


def test_one_that_lies_elsewhere_is_somebodys_own() -> None:
    assert fired(by_hand("tensorflow-2.15.0", "numpy-2.0.2", python="3.12", home="/opt/other")) == []


def test_a_path_outside_opt_is_not_guessed_about() -> None:
    roles = tuple(DesiredRole(role.name, role.needs, (Venv("/srv/tf", (recipe(),)),)) for role in DESIRED.roles)
    ctx = replace(look_at(), desired=Desired("gpu01", STACK, roles))
    facts = {**ctx.facts, roles[-1].resources[0].probes()[1]: Answer(0, "link\t\n")}
    with pytest.raises(Unread, match="/srv/tf"):
        used(AuditContext(ctx.desired, {}, type(ctx.facts)(facts), {}, ctx.now))


def test_a_stack_that_pins_the_newer_ones_wants_them() -> None:
    constraints = dict.fromkeys(STACK.section(TensorflowSection).pythons, "numpy==2.0.2\nprotobuf==4.25.8\n")
    stack = with_values(STACK, tensorflow={"constraints": constraints})
    ctx = look_at(by_hand("numpy-2.0.2", "protobuf-4.25.8"))
    newer = replace(ctx, desired=replace(DESIRED, stack=stack))
    assert not any(seen(rule, newer) for rule in RULES)


# the host itself


def test_a_host_without_a_python_that_fits_is_told() -> None:
    assert found("no-wheel", {PYTHONS: "/usr/bin/python3 3.12\n/usr/bin/python3.12 3.12\n"}) == [
        "the host has Python 3.12 (/usr/bin/python3)"
    ]
    assert found("no-wheel", {PYTHONS: "/usr/bin/python3 3.12\n/usr/local/bin/python3.10 3.10\n"}) == []


@pytest.mark.parametrize(("status", "lines"), [(0, 0), (1, 1), (2, 0)])
def test_missing_avx_is_reported_and_unread_cpus_are_not(status: int, lines: int) -> None:
    assert len(found("no-avx", {AVX: Answer(status, "")})) == lines


# outside any environment, by this machine's sh


def install(site: Path, *dists: str) -> None:
    for dist in dists:
        (site / f"{dist}.dist-info").mkdir(parents=True)


def test_tensorflow_outside_an_environment_is_told_with_what_breaks_it(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/passwd").write_text(f"root:x:0:0:root:{tmp_path}/root:/bin/bash\n")
    install(tmp_path / "home/ann/.local/lib/python3.10/site-packages", "tensorflow-2.9.0", "numpy-2.2.6", "six-1.16.0")
    install(tmp_path / "home/b c/.local/lib/python3.9/site-packages", "numpy-2.0.2", "tensorflow_estimator-2.9.0")
    install(tmp_path / "usr/local/lib/python3.9/dist-packages", "tf_nightly-2.10.0", "protobuf-3.19.6")
    install(tmp_path / "root/.local/lib/python3.9/site-packages", "tensorflow_gpu-2.9.0")
    differs: Differs = {OUTSIDE: asked(OUTSIDE, tmp_path, "/etc/", "/home/", "/usr/lib/", "/usr/local/")}
    assert sorted(found("tensorflow-outside", differs)) == [
        "/home/ann/.local/lib/python3.10/site-packages: tensorflow 2.9.0, numpy 2.2.6",
        "/root/.local/lib/python3.9/site-packages: tensorflow-gpu 2.9.0",
        "/usr/local/lib/python3.9/dist-packages: tf-nightly 2.10.0, protobuf 3.19.6",
    ]
    assert fired(differs) == ["tensorflow-outside"]


def test_homes_that_do_not_answer_are_no_failure_of_the_host() -> None:
    with pytest.raises(Unread, match="within"):
        list(outside(look_at({OUTSIDE: Answer(124, "")})))


def test_the_environments_in_opt_are_listed(tmp_path: Path) -> None:
    home = tmp_path / "opt/a venv"
    install(home / "lib/python3.12/site-packages", "numpy-2.0.2", "pip-24.0")
    (home / "pyvenv.cfg").write_text("home = /usr/bin\n")
    (tmp_path / "opt/tensorflow-2.9").symlink_to("a venv")
    install(tmp_path / "opt/no-venv/lib/python3.9/site-packages", "numpy-1.26.4")
    answer = asked(VENVS, tmp_path, "/opt/")
    assert sorted(answer.text.splitlines()) == [
        f"/opt/{name}\t3.12\t{dist}.dist-info"
        for name in ("a venv", "tensorflow-2.9")
        for dist in ("numpy-2.0.2", "pip-24.0")
    ]
    venv = used(look_at({VENV: "link\t\n", VENVS: answer}))
    assert venv
    assert (venv.home, venv.python, venv.dists["numpy"]) == (LINK, "3.12", "2.0.2")


def test_the_stacks_own_environment_is_known_by_its_recipe() -> None:
    venv = used(look_at())
    assert venv
    assert venv.recipe in resource(Venv).recipes
    assert isinstance(venv.recipe, Recipe)
    assert venv.drifts == []

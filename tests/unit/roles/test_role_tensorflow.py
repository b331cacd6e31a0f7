"""The role tensorflow: selection of Python, builds, and repair of only the changed packages."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hostwright.plan.model import Answer, Change, Deferred, Refusal, Resource
from hostwright.plan.roles.role import RoleContext
from hostwright.resources.files.archives import ArchiveUnpacked, Part
from hostwright.resources.python.environments import EnvironmentVariables, Interpreter
from hostwright.resources.python.interpreters import VenvPackage, system_interpreter
from hostwright.resources.python.python import Recipe, Venv
from hostwright.resources.python.users_files import HOMES, MARKER
from hostwright.resources.python.venv_audit import audit_probe, parse_audit
from hostwright.resources.python.venv_scripts import CONSTRAINTS, create_script
from hostwright.stack.stack import Artifact
from hostwright.standard.roles.tensorflow import tensorflow
from hostwright.standard.roles.tensorflow.section import TensorflowSection
from tests.unit.support.facts import Replies, changes_of, facts_for, only
from tests.unit.support.shell import OWNER, ask, program, run
from tests.unit.support.stacks import load_stack, with_values

STACK = load_stack("tensorflow-2.9")
RESOURCES = tensorflow.resources(EnvironmentVariables(), RoleContext(STACK))
LINK = "/opt/tensorflow-2.9"
WHEELS = Artifact(name="wheels", file="wheels.tar", sha256="a" * 64)
PYTHON = "/usr/bin/python3 3.9\n/usr/bin/python3.9 3.9\n"
AUDIT = "readlink -- "


def asked_of_pip(script: str) -> list[str]:
    """Return the requirements in pip's arguments, which have hashes."""
    return re.findall(r"([\w.-]+==[\w.]+) --hash=sha256:", script)


def recipe(python: str = "3.9") -> Recipe:
    venv = next(one for one in RESOURCES if isinstance(one, Venv))
    return next(one for one in venv.recipes if one.python == python)


def found(
    differs: dict[str, str] | None = None,
    *,
    python: str = "3.9",
    link: str | None = None,
    more: str = "",
) -> str:
    """Return the audit of a complete venv, with other versions of some packages (empty: absent) and further lines."""
    made = recipe(python)
    versions = {**made.pins, "pip": "20.3.4", **(differs or {})}
    dists = [
        f"dist\t{name.replace('-', '_')}-{version}.dist-info\trecorded" for name, version in versions.items() if version
    ]
    text = hashlib.sha256(made.constraints.encode()).hexdigest()
    lines = [f"link\t{made.home if link is None else link}", f"home\t{made.home}", f"constraints\t{text}", *dists]
    return "\n".join(lines) + "\n" + more


def plan(audit: str, pythons: str = PYTHON, dpkg: str = "python3.9-venv\t3.9.2-1\tii \n") -> tuple[Change, ...]:
    replies: Replies = {"python3.14": pythons, AUDIT: audit, "dpkg-query": dpkg}
    return changes_of(RESOURCES, replies)


def text_of(change: Change) -> str:
    return "\n".join(step.script for step in change.steps)


def test_a_provisioned_host_plans_nothing() -> None:
    assert plan(found()) == ()


def test_a_bare_host_gets_venv_support_and_a_venv() -> None:
    package, venv = plan("link\t\n", dpkg="bash\t5\tii \n")
    assert package.want == "python3.9-venv"
    create, install, finish = (step.script for step in venv.steps)
    home = recipe().home
    assert f"/usr/bin/python3.9 -I -m venv --clear {home}" in create, "plain python3 changes with the distribution"
    assert "tensorflow==2.9.0 --hash=sha256:" in install and "--require-hashes" in install
    assert f"path={LINK}\n" in finish
    assert finish.index(MARKER) < finish.index("ln -sfn "), "switched in before it is complete"


@pytest.mark.parametrize(
    ("pythons", "chosen"),
    [
        ("/usr/bin/python3 3.8\n/usr/bin/python3.8 3.8\n", "3.8"),
        ("/usr/bin/python3 3.10\n/usr/bin/python3.10 3.10\n", "3.10"),
        ("/usr/bin/python3 3.13\n/usr/local/bin/python3.9 3.9\n", "3.9"),
        ("/usr/bin/python3.10 3.10\n/usr/bin/python3.8 3.8\n", STACK.section(TensorflowSection).pythons[0]),
    ],
)
def test_the_python_is_one_that_the_stack_names(pythons: str, chosen: str) -> None:
    venv = only(tuple(one for one in plan("link\t\n", pythons) if one.what.startswith("venv")))
    assert recipe(chosen).home in venv.steps[0].script
    assert f"Python {chosen}" in venv.want


def test_a_host_with_python_3_13_only_gets_no_steps() -> None:
    change = only(plan("link\t\n", "/usr/bin/python3 3.13\n"))
    assert isinstance(change, Deferred) and change.until  # the rules refuse such a host, in one sentence


def test_a_python_in_a_users_home_is_not_run_as_root() -> None:
    change = only(plan("link\t\n", "/home/admin/.pyenv/shims/python3.9 3.9\n"))
    assert isinstance(change, Refusal)
    assert "/home/admin/.pyenv/shims/python3.9" in change.sentence


def test_a_host_without_any_python_gets_the_distributions_first() -> None:
    package, venv = plan("link\t\n", "", dpkg="bash\t5\tii \n")
    assert package.want == "python3-venv"
    assert (type(venv), venv.until) == (Deferred, "python3")


def test_a_python_of_the_administrators_own_needs_no_package() -> None:
    resource = VenvPackage(("3.9",))
    assert changes_of(resource, {"python3.14": "/usr/local/bin/python3.9 3.9\n", "dpkg-query": ""}) == ()


BROUGHT = "/opt/hostwright/python3.9"


def bringing(series: str = "3.9", inside: str = "python") -> tuple[Resource, ...]:
    """Return the role's states for a stack with its own interpreter."""
    archive = Artifact(name="python", file=f"cpython-{series}.19-install_only.tar.gz", sha256="b" * 64)
    brought = Interpreter(python=series, artifact="python", inside=inside)
    stack = with_values(STACK, tensorflow={"interpreter": brought})
    stack = stack.model_copy(update={"artifacts": {**stack.artifacts, "python": archive}})
    return tuple(tensorflow.resources(EnvironmentVariables(), RoleContext(stack)))


@pytest.mark.parametrize("pythons", ["/usr/bin/python3 3.11\n", PYTHON, "/home/admin/bin/python3.9 3.9\n", ""])
def test_a_brought_interpreter_is_used_whatever_the_host_has(pythons: str) -> None:
    """All hosts of the stack use the same interpreter, never the distribution's or a user's."""
    unpacked, venv = changes_of(bringing(), {"python3.14": pythons, AUDIT: "link\t\n", "dpkg-query": "bash\t5\tii \n"})
    assert (unpacked.what, unpacked.artifacts) == ("files of python3.9 cpython-3.9.19-install_only.tar.gz", ("python",))
    create = venv.steps[0].script
    assert f"{BROUGHT}/bin/python3.9 -I -m venv --clear {HOMES}/tensorflow-2.9-py3.9-" in create
    assert "/usr/bin/python" not in create
    assert recipe().home not in create, "a venv of the host's own Python is another one"


def test_a_brought_interpreter_of_a_full_archive_is_found_where_the_stack_says() -> None:
    (unpacked,) = (one for one in bringing(inside="python/install") if isinstance(one, ArchiveUnpacked))
    assert unpacked.parts == (Part("python/install", BROUGHT, deep=True),)


@pytest.mark.parametrize(
    "answer",
    [
        "",  # archive of another series: no such file
        "#!/lib/ld-musl-x86_64.so.1\n",  # another C library
        "#!/bin/sh\nkill -ILL $$\n",  # for a newer CPU than this one
        "#!/bin/sh\necho \"No module named 'ensurepip'\" >&2; exit 1\n",
    ],
)
def test_an_interpreter_that_does_not_run_is_named(tmp_path: Path, answer: str) -> None:
    python = tmp_path / "bin/python3.9"
    python.parent.mkdir()
    if answer:
        python.write_text(answer)
        python.chmod(0o755)
    made = replace(recipe(), interpreter=str(python))
    done = run(create_script(made, made.interpreter).replace(HOMES, str(tmp_path / "venvs")))
    assert done.returncode == 1
    last = done.stderr.decode().splitlines()[-1]
    assert last.startswith(
        f"{python} does not run on this host; set the stack's interpreter to an archive with bin/python3.9"
    ), last


@pytest.mark.parametrize("missing", ["ensurepip", "ssl", "zlib", "venv"])
def test_an_interpreter_that_was_built_without_venvs_is_named_with_its_path(tmp_path: Path, missing: str) -> None:
    """``./configure --without-ensurepip``, and a Python built without OpenSSL's headers (pyenv/pyenv#993)."""
    answer = f"case $3 in *{missing}*) echo \"No module named '{missing}'\" >&2; exit 1 ;; esac"
    python = program(tmp_path / "bin", "python3.9", answer)
    done = run(create_script(recipe(), str(python)).replace(HOMES, str(tmp_path / "venvs")))
    assert done.returncode == 1
    lines = done.stderr.decode().splitlines()
    assert lines == [
        f"No module named '{missing}'",
        f"{python} (Python 3.9) cannot make a venv with pip: it lacks the module above",
    ]


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        ("/root/.pyenv/shims/python3.9 3.9\n/usr/bin/python3.12 3.12\n", "/root/.pyenv/shims/python3.9 (Python 3.9)"),
        ("/usr/local/bin/python3 3.9\n", "/usr/local/bin/python3 (Python 3.9)"),  # a link into /opt/conda
        ("/opt/conda/bin/python3 3.9\n/opt/conda/bin/python3.9 3.9\n",
         "/opt/conda/bin/python3 (Python 3.9) and /opt/conda/bin/python3.9 (Python 3.9)"),
    ],
)  # fmt: skip
def test_each_interpreter_that_root_does_not_run_is_named_with_path_and_version(answer: str, named: str) -> None:
    (refusal,) = changes_of(Venv("/opt/tf", (recipe(),)), {"python3.14": answer, AUDIT: "link\t\n"})
    assert isinstance(refusal, Refusal)
    assert refusal.sentence.startswith(f"the host has {named}, but root runs only interpreters below /usr ")
    assert refusal.sentence.endswith("; install one of Python 3.9 below /usr")


def test_a_python_of_a_users_own_does_not_hide_the_hosts() -> None:
    answer = "/root/.pyenv/shims/python3.9 3.9\n/usr/local/bin/python3.9 3.9\n/usr/bin/python3.9 3.9\n"
    facts = facts_for(RESOURCES[0], {"python3.14": answer})
    assert system_interpreter(facts, ("3.9",)) == ("3.9", "/usr/local/bin/python3.9")


def test_a_real_interpreter_elsewhere_makes_the_venv(tmp_path: Path) -> None:
    """The directory is a link, as /opt may be, and root's umask denies access to others."""
    (tmp_path / "real").mkdir()
    (tmp_path / "opt").symlink_to("real")
    series = ".".join(map(str, sys.version_info[:2]))
    (tmp_path / "real/bin").mkdir()
    (tmp_path / f"real/bin/python{series}").symlink_to(os.path.realpath(sys.executable))
    made = replace(recipe(), python=series, interpreter=f"{tmp_path}/opt/bin/python{series}")
    script = create_script(made, made.interpreter).replace(HOMES, str(tmp_path / "venvs"))
    done = run("umask 077\n" + script.replace("root:root", OWNER))
    assert done.returncode == 0, done.stderr
    home = Path(made.home.replace(HOMES, str(tmp_path / "venvs")))
    assert run(f"{home}/bin/python -I -c 'import sys; assert sys.prefix != sys.base_prefix'").returncode == 0
    assert home.stat().st_mode & 0o777 == 0o755


def test_numpy_2_installed_by_hand_is_found_and_it_alone_is_mended() -> None:
    change = only(plan(found({"numpy": "2.0.2"})))
    assert (change.have, change.want) == ("numpy 2.0.2", "numpy 1.26.4")
    (step,) = change.steps
    assert asked_of_pip(step.script) == ["numpy==1.26.4"]
    assert " --force-reinstall --no-deps " in step.script


def test_protobuf_4_is_found() -> None:
    assert only(plan(found({"protobuf": "4.21.12"}))).want == "protobuf 3.19.6"


def test_every_pin_is_compared() -> None:
    for name in recipe().pins:
        assert f"{name} absent" in only(plan(found({name: ""}))).have


def test_a_deleted_library_is_found_and_its_package_alone_put_back() -> None:
    damage = "damage\ttensorflow-2.9.0.dist-info\ttensorflow/python/_pywrap_tensorflow_internal.so\n"
    change = only(plan(found(more=damage)))
    assert "_pywrap_tensorflow_internal.so missing or changed" in change.have
    assert asked_of_pip(text_of(change)) == ["tensorflow==2.9.0"]
    assert " --no-deps " in text_of(change)


def test_what_a_user_added_is_left_alone() -> None:
    added = "dist\tjupyter-1.0.0.dist-info\trecorded\ndamage\tjupyter-1.0.0.dist-info\tjupyter.py\n"
    assert plan(found(more=added)) == ()


def test_a_package_without_record_is_removed_by_hand_since_pip_cannot() -> None:
    audit = found().replace("keras-2.9.0.dist-info\trecorded", "keras-2.9.0.dist-info\tbare")
    script = text_of(only(plan(audit)))
    assert f"{recipe().home}/lib/python3.9/site-packages/keras-2.9.0.dist-info" in script.splitlines()[1]


def test_the_wrong_one_of_two_numpy_versions_is_removed() -> None:
    change = only(plan(found(more="dist\tnumpy-2.0.2.dist-info\trecorded\n")))
    assert change.have == "numpy 1.26.4 and numpy 2.0.2"
    assert "numpy-2.0.2.dist-info" in text_of(change)
    assert "numpy-1.26.4.dist-info" not in text_of(change)


def test_a_turned_link_is_turned_back_and_nothing_is_installed() -> None:
    change = only(plan(found(link="/usr")))
    assert "pip install" not in text_of(change)
    assert change.artifacts == ()


def test_a_lost_interpreter_is_put_back_and_the_packages_stay() -> None:
    audit = found().replace("constraints\t", "gone\tinterpreter\nconstraints\t")
    change = only(plan(audit))
    assert "--without-pip" in text_of(change)
    assert "--clear" not in text_of(change)


def test_a_lost_pip_is_put_back_before_it_is_used() -> None:
    audit = found({"numpy": "2.0.2"}).replace("constraints\t", "gone\tpip\nconstraints\t")
    first, second = (step.script for step in only(plan(audit)).steps)
    assert "-m venv /opt" in first
    assert "numpy==1.26.4" in second


def test_a_venv_without_its_packages_is_built_anew() -> None:
    audit = found().replace("constraints\t", "gone\tsite-packages\nconstraints\t")
    assert "--clear" in text_of(only(plan(audit)))


def test_a_cut_build_does_not_count() -> None:
    assert len(only(plan("link\t\n")).steps) == 3  # without a marker, the audit has no home


def test_edited_constraints_are_written_again_and_nothing_is_installed() -> None:
    text = hashlib.sha256(recipe().constraints.encode()).hexdigest()
    change = only(plan(found().replace(text, "0" * 64)))
    assert change.have == f"{CONSTRAINTS} edited"
    assert "pip install" not in text_of(change)


def test_new_pins_are_built_beside_and_the_one_before_is_kept(tmp_path: Path) -> None:
    homes, link = tmp_path / "venvs", tmp_path / "opt/tensorflow-2.9"
    new, before, older, of_another = (
        homes / name
        for name in (
            Path(recipe().home).name,
            "tensorflow-2.9-py3.9-000000000000",
            "tensorflow-2.9-py3.8-111111111111",
            "tensorflow-2.90-py3.9-000000000000",
        )
    )
    for home in (new, before, older, of_another):
        home.mkdir(parents=True)
    link.parent.mkdir()
    link.symlink_to(before)
    script = only(plan(f"link\t{LINK}-py3.9-000000000000\n")).steps[-1].script
    assert run(script.replace(HOMES, str(homes)).replace(LINK, str(link))).returncode == 0
    assert link.readlink() == new
    assert (new / MARKER).exists()
    assert sorted(homes.iterdir()) == sorted([new, before, of_another])


@pytest.mark.parametrize("in_the_way", [True, False])
def test_a_directory_in_the_place_of_the_link_is_moved_aside(tmp_path: Path, in_the_way: bool) -> None:
    homes, link = tmp_path / "venvs", tmp_path / "opt/tensorflow-2.9"
    (homes / Path(recipe().home).name).mkdir(parents=True)
    if in_the_way:
        link.mkdir(parents=True)
    script = only(plan("link\t\n")).steps[-1].script
    assert run(script.replace(HOMES, str(homes)).replace(LINK, str(link))).returncode == 0
    assert link.is_symlink()
    assert len(list(link.parent.glob("*.before-hostwright.*"))) == in_the_way


def test_no_umask_of_root_keeps_users_out() -> None:
    for change in (only(plan("link\t\n")), only(plan(found({"numpy": "2.0.2"})))):
        for step in change.steps:
            assert "pip install" not in step.script or step.script.startswith("umask 022")


def test_nothing_that_is_fetched_runs_as_root_while_it_is_installed() -> None:
    for step in only(plan("link\t\n")).steps:
        assert step.script.count(" pip install ") == step.script.count("--only-binary :all:")


def test_a_wheelhouse_replaces_the_index() -> None:
    made = Recipe("tf", "3.9", "tensorflow==2.9.0", "numpy==1.26.4\n", WHEELS)
    change = only(changes_of(Venv("/opt/tf", (made,)), {"python3.14": PYTHON, AUDIT: "link\t\n"}))
    assert change.artifacts == ("wheels",)
    script = change.steps[1].script
    assert f"/var/cache/hostwright/artifacts/{'a' * 64}/wheels.tar" in script
    assert f"--no-index --find-links {made.home}.wheels" in script
    assert "trap" in script, "600 MB would stay"


def test_where_the_wheels_come_from_does_not_rebuild_a_venv() -> None:
    with_wheels = Recipe("tf", "3.9", "tensorflow==2.9.0", "numpy==1.26.4\n", WHEELS)
    assert with_wheels.home == Recipe("tf", "3.9", "tensorflow==2.9.0", "numpy==1.26.4\n").home


def test_each_input_has_a_venv_of_its_own() -> None:
    base = ("tf", "3.9", "tensorflow==2.9.0", "numpy==1.26.4\n")
    homes = {Recipe(*base).home}
    homes |= {Recipe(*(*base[:at], "3.8" if at == 1 else "other==1", *base[at + 1 :])).home for at in (1, 2, 3)}
    assert len(homes) == 4


def test_pins_are_those_of_this_python() -> None:
    made = Recipe(
        "tf", "3.9", "tensorflow==2.9.0", 'zipp==3.2 ; python_version < "3.9"\nNumPy==1.26.4 # <2\nsix>1\n-v\n'
    )
    assert made.pins == {"numpy": "1.26.4", "tensorflow": "2.9.0"}


# the audit's script, in this machine's sh


def make_venv(home: Path, version: str = "1.26.4", size: int = 5) -> Path:
    """Create the parts of a venv that the audit reads: marker, interpreter, pip, and one package with pip's RECORD."""
    site = home / "lib/python3.9/site-packages"
    for folder in (home / "bin", site / "pip", site / "numpy/include", site / f"numpy-{version}.dist-info"):
        folder.mkdir(parents=True)
    (home / MARKER).write_text("complete\n")
    (home / CONSTRAINTS).write_text("numpy==1.26.4\n")
    (home / "bin/python").symlink_to("/bin/sh")
    (home / "bin/f2py").write_text("x" * 7)
    (site / "numpy/a file.py").write_text("x" * size)
    rows = ["numpy/a file.py,sha256=x,5", "numpy/include/a.h,sha256=x,9", "numpy/__pycache__/a.pyc,,",
            "../../../bin/f2py,sha256=x,7", "../../../share/man/f2py.1,sha256=x,7"]  # fmt: skip
    (site / f"numpy-{version}.dist-info/RECORD").write_bytes("\r\n".join([*rows, ""]).encode())
    return site


def audit(link: Path, *homes: Path) -> str:
    status, text = ask(audit_probe(str(link), tuple(map(str, homes)), CONSTRAINTS).script)
    assert status == 0
    return text


def test_the_audit_of_a_whole_venv(tmp_path: Path) -> None:
    home = tmp_path / "a $(home)"
    make_venv(home)
    (tmp_path / "link").symlink_to(home)
    venvs = parse_audit(audit(tmp_path / "link", tmp_path / "none", home))
    assert venvs.link == str(home)
    (venv,) = venvs.homes.values()
    assert not venv.lost
    assert venv.constraints == hashlib.sha256(b"numpy==1.26.4\n").hexdigest()
    assert [(dist.name, dist.version, dist.flaw) for dist in venv.dists] == [("numpy", "1.26.4", "")]


def test_the_audit_sees_a_file_of_another_size(tmp_path: Path) -> None:
    make_venv(tmp_path / "home", size=6)
    (venv,) = parse_audit(audit(tmp_path / "link", tmp_path / "home")).homes.values()
    assert venv.dists[0].flaw == " (numpy/a file.py missing or changed)"


@pytest.mark.parametrize(
    ("lost", "flaw"),
    [("lib/python3.9/site-packages/numpy/a file.py", "numpy/a file.py"), ("bin/f2py", "bin/f2py")],
)
def test_the_audit_sees_a_lost_file(tmp_path: Path, lost: str, flaw: str) -> None:
    make_venv(tmp_path / "home")
    (tmp_path / "home" / lost).unlink()
    (venv,) = parse_audit(audit(tmp_path / "link", tmp_path / "home")).homes.values()
    assert venv.dists[0].flaw == f" ({flaw} missing or changed)"


def test_the_audit_sees_an_empty_record_and_a_lost_interpreter_and_pip(tmp_path: Path) -> None:
    site = make_venv(tmp_path / "home")
    os.truncate(site / "numpy-1.26.4.dist-info/RECORD", 0)
    (tmp_path / "home/bin/python").unlink()
    (site / "pip").rmdir()
    (venv,) = parse_audit(audit(tmp_path / "link", tmp_path / "home")).homes.values()
    assert venv.lost == ("interpreter", "pip")
    assert venv.dists[0].flaw == " without pip's record"


def test_the_audit_passes_over_a_venv_that_was_not_finished(tmp_path: Path) -> None:
    make_venv(tmp_path / "home")
    (tmp_path / "home" / MARKER).unlink()
    assert parse_audit(audit(tmp_path / "link", tmp_path / "home")).homes == {}


def test_an_answer_that_makes_no_sense_makes_no_venv() -> None:
    assert parse_audit("dist\tx\nhome\n\ngarbage\tonly").homes.keys() <= {""}
    assert changes_of(RESOURCES, {"python3.14": PYTHON, AUDIT: Answer(1, "\x00")})

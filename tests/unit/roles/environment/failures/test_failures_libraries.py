"""Rules for cuDNN, the loader and users' variables find their failures on a host, and none on a sound host."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostwright.audit.failures.rule import FailureRule
from hostwright.audit.judging.context import Unread
from hostwright.plan.model import Answer, Probe
from hostwright.resources.packages.packages import DPKG
from hostwright.standard.roles.cuda.failures.toolkits import TOOLKITS
from hostwright.standard.roles.cudnn.failures import FAILURES as CUDNN_RULES
from hostwright.standard.roles.driver.failures.loader_cache import CONF, LOADER, cached
from hostwright.standard.roles.environment import COMMAND
from hostwright.standard.roles.environment.failures import FAILURES, NAMES, SONAME_RULES
from hostwright.standard.roles.environment.failures.variables import VARIABLES
from tests.unit.support.library_contexts import (
    CUDNN,
    LIB,
    LINK,
    NVCC_LINK,
    OWN,
    PACKAGES,
    PTXAS_LINK,
    SONAMES,
    STRAYS,
    TREE,
    Differs,
    asked,
    loader,
    look_at,
    seen,
    tree,
    write,
)
from tests.unit.support.shell import ask, program

RULES = [rule for rule in (*CUDNN_RULES, *FAILURES) if rule.sign]
DISTRIBUTION = f"{PACKAGES}nvidia-cuda-toolkit\t11.2.2-3\tii \n"


def found(name: str, differs: Differs | None = None) -> list[str]:
    return seen(next(rule for rule in RULES if rule.name == name), look_at(differs))


def fired(differs: Differs) -> list[str]:
    """Return the names of all rules with findings."""
    ctx = look_at(differs)
    return [rule.name for rule in RULES if seen(rule, ctx)]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_nothing_is_seen_on_a_host_that_is_as_desired(rule: FailureRule) -> None:
    assert seen(rule, look_at()) == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_nothing_is_said_of_a_host_that_was_not_asked(rule: FailureRule) -> None:
    ctx = look_at(dict.fromkeys(look_at().facts, None))
    with pytest.raises(Unread):
        seen(rule, ctx)


@given(text=st.text(st.characters(codec="utf-8") | st.sampled_from("\t\n :/=\"'\\\x1b"), max_size=300))
@pytest.mark.parametrize(
    "start", ["", "found ", "entry\tlibcuda.so.1\t/", "link\t/usr/lib/libcuda.so\t", "/a:1:PATH=/cuda"]
)
def test_no_answer_breaks_a_rule(start: str, text: str) -> None:
    ctx = look_at(dict.fromkeys((TREE, LOADER, NAMES, TOOLKITS, VARIABLES, STRAYS, DPKG), start + text))
    for rule in RULES:
        with suppress(Unread):
            assert all(isinstance(line, str) for line in seen(rule, ctx))


def test_nothing_fires_on_a_bare_host() -> None:
    bare: Differs = {
        DPKG: "bash\t5.1\tii \n", TOOLKITS: "", TREE: Answer(1, ""), LOADER: "", PTXAS_LINK: Answer(1, ""),
        NVCC_LINK: Answer(1, ""), VARIABLES: "",
    }  # fmt: skip
    assert fired(bare) == []


# the loader


def test_a_library_that_the_cache_does_not_name_is_told() -> None:
    names = [name for name in (*SONAMES, *CUDNN) if name != "libcurand.so.10"]
    assert found("library-not-found", {LOADER: loader(names=names)}) == [
        f"{LIB}/libcurand.so.10 is not in the loader's cache"
    ]


def test_a_library_that_is_not_there_is_no_failure_of_the_loader() -> None:
    names = [name for name in SONAMES if name != "libcurand.so.10"]
    broken = tree(
        {name: SONAMES[name] for name in names}, more=f"found l 9 {LIB}/libcurand.so.10 libcurand.so.10.2.3.152\n"
    )
    assert fired({TREE: broken, LOADER: loader(names=names)}) == []


def test_another_cuda_first_is_the_one_finding() -> None:
    path = "/usr/local/cuda-11.4/lib64/libcublas.so.11"
    differs: Differs = {LOADER: loader(f"libcublas.so.11 {path}")}
    assert found("loader-finds-another-cuda", differs) == [f"libcublas.so.11 => {path}"]
    assert fired(differs) == ["loader-finds-another-cuda"]
    file = "/etc/ld.so.conf.d/00-conda.conf"
    named: Differs = {**differs, CONF: f"{file}:  /usr/local/cuda-11.4/lib64/ # mine\n/etc/ld.so.conf.d/x.conf:/opt\n"}
    assert found("loader-finds-another-cuda", named) == [f"libcublas.so.11 => {path}, which {file} names"]


def test_another_cuda_behind_ours_is_a_warning() -> None:
    path = "/usr/local/cuda-11.4/lib64/libcublas.so.11"
    assert fired({LOADER: loader(after=[f"libcublas.so.11 {path}"])}) == ["cuda-twice-in-loader"]


def test_alias_and_other_major_version_are_no_second_cuda() -> None:
    link = "/usr/local/cuda/lib64"
    text = loader(
        f"libcublas.so.11 {link}/libcublas.so.11", after=["libcublas.so.12 /usr/local/cuda-12/libcublas.so.12"]
    )
    assert fired({LOADER: f"{text}directory\t{link}\t{LIB}\n"}) == []


def test_a_second_cudnn_outside_a_toolkit_is_left_to_its_own_rule() -> None:
    path = "/usr/lib/x86_64-linux-gnu/libcudnn.so.8"
    assert fired({LOADER: loader(f"libcudnn.so.8 {path}")}) == ["cudnn-in-loader"]
    in_toolkit = "libcudnn.so.8 /usr/local/cuda-11.4/lib64/libcudnn.so.8"
    assert fired({LOADER: loader(in_toolkit)}) == ["loader-finds-another-cuda"]


def test_the_compatibility_package_is_told_when_its_libcuda_comes_first() -> None:
    path = "/usr/local/cuda-11.8/compat/libcuda.so.1"
    assert found("cuda-compat-in-loader", {LOADER: loader(f"libcuda.so.1 {path}")}) == [f"libcuda.so.1 => {path}"]
    behind = f"{loader()}entry\tlibcuda.so.1\t{path}\n"
    assert found("cuda-compat-in-loader", {LOADER: behind}) == []


def test_the_profilers_library_alone_missing_is_a_warning() -> None:
    text = "".join(line for line in loader().splitlines(True) if "cupti" not in line)
    assert fired({LOADER: text}) == ["cupti-not-found"]
    assert "cupti-not-found" not in fired({LOADER: ""}), "then nothing is in the cache, which says more"


def test_a_tool_that_is_on_nobodys_path_is_told() -> None:
    assert fired({PTXAS_LINK: Answer(1, "")}) == ["ptxas-not-found"]
    assert fired({PTXAS_LINK: Answer(1, ""), TOOLKITS: LINK + OWN.replace(" bin/ptxas", "")}) == []


def test_the_distributions_nvcc_is_the_one_finding() -> None:
    libraries = loader(after=["libcudart.so.11.0 /usr/lib/x86_64-linux-gnu/libcudart.so.11.0"])
    differs: Differs = {DPKG: DISTRIBUTION, NVCC_LINK: "\n", LOADER: libraries}
    assert fired(differs) == ["nvcc-of-distribution"]
    assert found("nvcc-of-distribution", differs) == [
        "/usr/bin/nvcc is not the stack's", "nvidia-cuda-toolkit 11.2.2-3 is installed",
    ]  # fmt: skip


def test_the_distributions_cuda_behind_the_stacks_is_a_warning() -> None:
    libraries = loader(after=["libcudart.so.11.0 /usr/lib/x86_64-linux-gnu/libcudart.so.11.0"])
    assert fired({DPKG: DISTRIBUTION, NVCC_LINK: f"{COMMAND}\n", LOADER: libraries}) == ["cuda-of-distribution"]


# soname and link targets


def names(*links: str) -> Differs:
    return {NAMES: "".join("link\t{}\t{}\n".format(*link.split(" ")) for link in links)}


@pytest.mark.parametrize(
    "link",
    [
        "/usr/lib/libcuda.so /usr/local/cuda-11.2/lib64/libcudnn.so.8",
        f"{LIB}/libcusolver.so.10 libcusolver.so.11",
        f"{LIB}/libcudnn.so.8 libcudnn.so.7.6.5",
    ],
)
def test_a_name_that_leads_to_another_library_is_told(link: str) -> None:
    assert found("library-of-another-name", names(link)) == [link.replace(" ", " leads to ")]


@pytest.mark.parametrize(
    "link",
    [
        "/usr/lib/x86_64-linux-gnu/libcuda.so.1 libcuda.so.470.182.03",
        "/usr/lib/x86_64-linux-gnu/libcuda.so.1 /etc/alternatives/glx--libcuda.so.1-x86_64-linux-gnu",
        "/usr/lib/x86_64-linux-gnu/libcudnn.so /etc/alternatives/libcudnn_so",
        f"{LIB}/libcudart.so.11.0 libcudart.so.11.2.152",
        f"{LIB}/libcudnn.so libcudnn.so.8",
    ],
)
def test_names_as_their_packages_make_them_are_right(link: str) -> None:
    assert found("library-of-another-name", names(link)) == []


def test_a_file_that_calls_itself_another_library_is_told() -> None:
    right = "file\t/usr/lib/libcudart.so.11.2.152\nsoname\tlibcudart.so.11.0\n"
    text = f"file\t/usr/lib/libcuda.so.1\nsoname\tlibcudnn.so.8\nfile\t/bin/sh\n{right}"
    assert found("library-of-another-name", {NAMES: text}) == ["/usr/lib/libcuda.so.1 has the soname libcudnn.so.8"]


# the probe's script, run by this machine's sh


def test_the_cache_is_read_in_its_order_with_the_directories_links_followed(tmp_path: Path) -> None:
    (tmp_path / "cuda-11.2/lib64").mkdir(parents=True)
    (tmp_path / "cuda").symlink_to("cuda-11.2")
    listing = [
        f"libcudnn_ops_infer.so.8 (libc6,x86-64) => {tmp_path}/cuda/lib64/libcudnn_ops_infer.so.8",
        f"libcudart.so.11.0 (libc6,x86-64, OS ABI: Linux 2.3.99) => {tmp_path}/cuda/lib64/libcudart.so.11.0",
        "libcudart.so.11.0 (libc6) => /usr/lib32/libcudart.so.11.0",
        "libcudart.so.11.0 (libc6,x86-64) => /gone/libcudart.so.11.0",
        "libcurl.so.4 (libc6,x86-64) => /usr/lib/x86_64-linux-gnu/libcurl.so.4",
    ]
    said = "\n".join(f"\t{one}" for one in listing)
    ldconfig = program(tmp_path / "sbin", "ldconfig", f"cat <<'END'\n5 libs found in cache\n{said}\nEND")
    status, text = ask(LOADER.script.replace("/sbin/ldconfig", str(ldconfig)))
    read = cached(look_at({LOADER: Answer(status, text)}))
    home = f"{tmp_path}/cuda-11.2/lib64"
    assert [one.real for one in read] == [
        f"{home}/libcudnn_ops_infer.so.8", f"{home}/libcudart.so.11.0", "/gone/libcudart.so.11.0",
    ]  # fmt: skip
    assert read[1].below(f"{tmp_path}/cuda-11.2")


def test_a_loader_that_does_not_answer_is_no_empty_cache(tmp_path: Path) -> None:
    broken = program(tmp_path, "ldconfig", "exit 1")
    status, text = ask(LOADER.script.replace("/sbin/ldconfig", str(broken)))
    with pytest.raises(Unread):
        found("library-not-found", {LOADER: Answer(status, text)})


READELF = r"""[ $# -gt 2 ] || exit 9
shift 2
for file; do
  printf '\nFile: %s\n\nDynamic section at offset 0x1e0 contains 9 entries:\n' "$file"
  printf ' 0x000000000000000e (SONAME)             Library soname: [%s]\n' "$(cat "$file")"
done"""


def test_links_and_what_files_call_themselves_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "usr/lib"
    write(folder / "libcudart.so.11.0", "libcublas.so.11")
    write(folder / "libcublas.so.11.4.1", "libcublas.so.11")
    write(folder / "libother.so.1", "libcublas.so.11")
    (folder / "libcuda.so").symlink_to("/usr/local/cuda-11.2/lib64/libcudnn.so.8")
    (folder / "libother.so").symlink_to("libcudnn.so.8")
    readelf = program(tmp_path, "reader", READELF)
    script = NAMES.script.replace("readelf", str(readelf)).replace("/bin/sh", str(folder / "libcublas.so.11.4.1"))
    answer = asked(Probe(script), tmp_path, "/usr/l")
    assert seen(SONAME_RULES[-1], look_at({NAMES: answer})) == [
        "/usr/lib/libcuda.so leads to /usr/local/cuda-11.2/lib64/libcudnn.so.8",
        "/usr/lib/libcudart.so.11.0 has the soname libcublas.so.11",
    ]


def test_a_toolkit_that_has_two_names_is_looked_at_once(tmp_path: Path) -> None:
    lib = tmp_path / "usr/local/cuda-11.2/targets/x86_64-linux/lib"
    lib.mkdir(parents=True)
    (lib / "libcusolver.so.10").symlink_to("libcusolver.so.11")
    (tmp_path / "usr/local/cuda-11").symlink_to("cuda-11.2")
    (tmp_path / "usr/local/cuda").symlink_to("cuda-11.2")
    answer = asked(NAMES, tmp_path, "/usr/l")
    assert seen(SONAME_RULES[-1], look_at({NAMES: answer})) == [f"{LIB}/libcusolver.so.10 leads to libcusolver.so.11"]


def test_without_binutils_names_alone_are_looked_at(tmp_path: Path) -> None:
    write(tmp_path / "usr/lib/libcudart.so.11.0", "libcublas.so.11")
    (tmp_path / "usr/lib/libcuda.so").symlink_to("libcudnn.so.8")
    answer = asked(Probe(NAMES.script.replace("readelf", "no-such-program")), tmp_path, "/usr/l")
    assert answer == Answer(0, "link\t/usr/lib/libcuda.so\tlibcudnn.so.8\n")

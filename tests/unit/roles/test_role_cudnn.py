"""The role cudnn: the tarball's files where they belong, links as links, and no second cuDNN 8."""

from __future__ import annotations

import pytest

from hostwright.plan.model import Answer, Change
from hostwright.plan.roles.role import RoleContext
from hostwright.stack.store.hostcache import host_path
from hostwright.standard.roles.cudnn import Cudnn, cudnn
from tests.unit.support.facts import changes_of, only
from tests.unit.support.stacks import load_stack

STACK = load_stack("tensorflow-2.9")
RESOURCES = cudnn.resources(Cudnn(), RoleContext(STACK))
TARGET = "/usr/local/cuda-11.2/targets/x86_64-linux"
SEAL = f"8.1.0.77 {host_path(STACK.artifact('cudnn'))}\n"
LOOK = "maxdepth 0"  #: in the probe that answers with the record's first line and the files that differ from it
PARTS = ("", "_adv_infer", "_adv_train", "_cnn_infer", "_cnn_train", "_ops_infer", "_ops_train")
HEADER = f"f\t294\t1611700000.0\t{TARGET}/include/cudnn_version.h\t\n"
FILES = HEADER + "".join(
    f"l\t17\t1.0\t{TARGET}/lib/libcudnn{part}.so\tlibcudnn{part}.so.8\n"
    f"l\t21\t1.0\t{TARGET}/lib/libcudnn{part}.so.8\tlibcudnn{part}.so.8.1.0\n"
    f"f\t1000\t1611700000.0\t{TARGET}/lib/libcudnn{part}.so.8.1.0\t\n"
    for part in PARTS
)
GREEN: dict[str, str | Answer] = {
    "dpkg-query -W": "bash\t5.1\tii \n",
    "names='libcudnn*": "",
    LOOK: SEAL,
}


def changed(key: str, value: str | Answer) -> Change:
    return only(changes_of(RESOURCES, {**GREEN, key: value}))


def differing(present: str) -> str:
    """What the host answers where these are its files, and ``FILES`` those of the record."""
    pairs = zip(FILES.splitlines(), present.splitlines(), strict=True)
    return SEAL + "".join(f"<{recorded}\n>{now}\n" for recorded, now in pairs if recorded != now)


def script(change: Change) -> str:
    return "\n".join(step.script for step in change.steps)


def test_a_provisioned_host_plans_nothing() -> None:
    assert changes_of(RESOURCES, GREEN) == ()


def test_a_bare_host_gets_the_archive() -> None:
    change = only(changes_of(RESOURCES))
    assert (change.artifacts, change.want) == (("cudnn",), "8.1.0.77")


def test_links_are_moved_as_links_and_all_headers_come() -> None:
    commands = script(only(changes_of(RESOURCES)))
    assert (
        f"find /usr/local/cuda-11.2/.hostwright-cudnn/cuda/include -maxdepth 1 -type f -exec mv -f -t {TARGET}/include"
        in commands
    )
    assert (
        f"find /usr/local/cuda-11.2/.hostwright-cudnn/cuda/lib64 -maxdepth 1 -type l -exec mv -f -t {TARGET}/lib"
        in commands
    )
    copies = [line.strip() for line in commands.splitlines() if line.strip().startswith("cp ")]
    assert all(line.startswith(("cp -al", "cp -a")) for line in copies)  # without -P, gigabytes where a link belongs


def test_everything_goes_into_the_versioned_toolkit() -> None:
    commands = script(only(changes_of(RESOURCES)))
    assert "/usr/local/cuda/" not in commands
    assert "/usr/include" not in commands


@pytest.mark.parametrize("part", PARTS)
def test_turned_library_link_is_mended_without_the_archive(part: str) -> None:
    name = f"{TARGET}/lib/libcudnn{part}.so.8"
    turned = FILES.replace(f"{name}\tlibcudnn{part}.so.8.1.0", f"{name}\tlibcudnn{part}.so.8.0.5")
    change = changed(LOOK, differing(turned))
    assert change.have == f"{name}: link to libcudnn{part}.so.8.0.5"
    assert change.artifacts == ()
    assert len(script(change).splitlines()) == 1


def test_a_flattened_link_is_found() -> None:
    flat = FILES.replace(
        f"l\t21\t1.0\t{TARGET}/lib/libcudnn.so.8\tlibcudnn.so.8.1.0", f"f\t1000\t1.0\t{TARGET}/lib/libcudnn.so.8\t"
    )
    assert changed(LOOK, differing(flat)).have == f"{TARGET}/lib/libcudnn.so.8: file of 1000 bytes"


def test_a_header_of_another_version_is_found_and_put_back_alone() -> None:
    change = changed(LOOK, differing(FILES.replace(HEADER, HEADER.replace("294", "300"))))
    assert change.artifacts == ("cudnn",)
    assert "libcudnn" not in script(change)


def test_handmade_host_gets_the_archives_bytes() -> None:
    change = changed(LOOK, Answer(1, ""))
    assert change.have == "no record of its files"


def test_another_version_is_replaced() -> None:
    change = changed(LOOK, SEAL.replace("8.1.0.77", "8.3.0.98"))
    assert (change.have, change.want) == ("8.3.0.98", "8.1.0.77")


@pytest.mark.parametrize("package", ["libcudnn8", "libcudnn8-dev", "libcudnn8-samples", "nvidia-cudnn"])
def test_a_second_cudnn_of_apt_is_removed_with_the_reason(package: str) -> None:
    change = changed("dpkg-query -W", f"{package}\t8.2.0-1\tii \nlibcudnn7\t7.6\tii \n")
    assert change.have == f"{package} 8.2.0-1"
    assert "two cuDNN 8 in one process" in change.want
    assert script(change).endswith(f"purge {package}")


def test_a_stray_copy_is_set_aside_and_never_deleted() -> None:
    change = changed("names='libcudnn*", "/usr/local/lib/libcudnn.so.8\n")
    assert "moved to /var/lib/hostwright/set-aside" in change.want
    assert "rm " not in script(change)


def test_other_toolkits_and_another_major_version_are_left_alone() -> None:
    asked = "\n".join(probe.script for one in RESOURCES for probe in one.probes())
    assert "cuda-11.4" not in asked
    assert "libcudnn*.so.8*" in asked

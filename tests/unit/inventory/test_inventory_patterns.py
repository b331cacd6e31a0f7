from pathlib import Path

import pytest

from hostwright.common.errors import InputError, InputErrors
from hostwright.inventory import Inventory, fold, load, select
from hostwright.inventory.patterns import terms

HOSTS = """
rack3: {hosts: {"gpu[01:04]": }}
rack4: {hosts: {"gpu[05:08]": }}
dgx: {hosts: {gpu04: , dgx-a1: , dgx-b1: }}
weird: {hosts: {winbox: {ansible_connection: winrm}}}
"""


@pytest.fixture
def inventory(tmp_path: Path) -> Inventory:
    (tmp_path / "hosts.yml").write_text(HOSTS)
    return load(tmp_path)


@pytest.mark.parametrize(
    ("pattern", "chosen"),
    [
        ("gpu01", "gpu01"),
        ("gpu02,gpu01", "gpu[01-02]"),
        ("gpu01,gpu[03-05]", "gpu[01,03-05]"),
        ("gpu[01-02,08]", "gpu[01-02,08]"),
        ("gpu[01:03]", "gpu[01-03]"),
        ("@rack3", "gpu[01-04]"),
        ("rack3", "gpu[01-04]"),
        ("@rack3,!gpu02", "gpu[01,03-04]"),
        ("!gpu02,@rack3", "gpu[01,03-04]"),
        ("!@rack3,!@weird", "dgx-a1,dgx-b1,gpu[05-08]"),
        ("@rack3,&@dgx", "gpu04"),
        ("rack3:&dgx", "gpu04"),
        ("rack3:rack4:!gpu[02:07]", "gpu[01,08]"),
        ("~^dgx-", "dgx-a1,dgx-b1"),
        ("~^dgx", "dgx-a1,dgx-b1,gpu04"),
        ("rack3:~dgx$", "dgx-a1,dgx-b1,gpu[01-04]"),
        ("dgx[0]", "gpu04"),
        ("dgx[0:1]", "dgx-a1,gpu04"),
        ("dgx[1:]", "dgx-a1,dgx-b1"),
        ("dgx[-1]", "dgx-b1"),
        ("rack*[-1]", "gpu08"),
        ("rack3,!rack3[0]", "gpu[02-04]"),
        ("rack3[0-1]", "gpu[01-02]"),
        ("rack*", "gpu[01-08]"),
        ("gpu0[13]*", "gpu[01,03]"),
        ("~gpu0(?:1|2)", "gpu[01-02]"),
        ("~gpu0[1,2]$, @dgx", "dgx-a1,dgx-b1,gpu[01-02,04]"),
        ("gpu*,!~.*[5-8]$", "gpu[01-04]"),
        ("@rack*", "gpu[01-08]"),
        ("gpu?1", "gpu01"),
        ("@failed,!gpu02", "gpu01"),
        ("all,!winbox,!@rack4", "dgx-a1,dgx-b1,gpu[01-04]"),
    ],
)
def test_patterns(inventory: Inventory, pattern: str, chosen: str) -> None:
    hosts = select(inventory, pattern, {"failed": ["gpu02", "gpu01", "scrapped"]})
    assert fold(host.name for host in hosts) == chosen
    assert [host.name for host in hosts] == [name for name in inventory.hosts if name in {one.name for one in hosts}]


@pytest.mark.parametrize(
    ("pattern", "sentence"),
    [
        ("gpu1", "no host gpu1 in the inventory; did you mean 'gpu01'"),
        ("gpu[01-12]", r"no host gpu\[09-12\] in the inventory"),
        ("rakc3", "did you mean 'rack3'"),
        ("@rakc3", "unknown group 'rakc3'; did you mean 'rack3'"),
        ("@failde", "did you mean 'failed'"),
        ("all,!gpu99", "no host gpu99"),
        ("gpu01,!gpu01", "matches no host"),
        ("@failed,!gpu01,!gpu02", "matches no host"),
        ("", "matches no host"),
        (" , ,", "matches no host"),
        ("~^x", "'~\\^x' matches no host"),
        ("x*", "matches no host"),
        ("all,!winbox,!@nothing*", r"unknown group 'nothing\*'"),
        ("gpu*,!~[5-8]$", r"'~\[5-8\]\$' matches no host and no group"),
        ("all,!gpu9*", r"'gpu9\*' matches no host and no group"),
        ("dgx[7]", "'dgx' has only 3 hosts"),
        ("dgx[-4]", "'dgx' has only 3 hosts"),
        ("k3[-1]", "no host k3 in the inventory"),
        ("k3[0]", "no host k30 in the inventory"),
        ("dgx[99999999999999999999]", "too long"),
        ("gpu[1:99999999999999999999]", "too long"),
        ("~(", "not a regular expression"),
        ("gpu[1-", "not a range"),
        ("gpu[1-99999999]", "the limit is 100000"),
        ("gpu[1-999]x[1-999]", "the limit is 100000"),
        ("gpu01;id", "not a host, a group or a range"),
        ("gpu 01", "separate terms with commas"),
        ("$(id)", "not a host"),
    ],
)
def test_patterns_that_are_mistakes(inventory: Inventory, pattern: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as error:
        select(inventory, pattern, {"failed": ["gpu01", "gpu02"]})
    assert error.value.exit_status == 2


def test_a_host_that_cannot_be_reached_concerns_only_who_selects_it(inventory: Inventory) -> None:
    assert len(select(inventory, "all,!winbox")) == 10
    with pytest.raises(InputErrors, match=r"hosts.yml:5:26: ansible_connection: found 'winrm'"):
        select(inventory, "all")


def test_a_name_that_is_both_is_noted_and_means_the_host(tmp_path: Path) -> None:
    (tmp_path / "hosts.yml").write_text("a: {hosts: {b: }}\nb: {hosts: {c: }}")
    inventory = load(tmp_path)
    assert [host.name for host in select(inventory, "b")] == ["b"]
    assert [host.name for host in select(inventory, "@b")] == ["c"]
    assert inventory.notes == ("'b' is a host and a group; @b selects the group",)


def test_a_list_for_looking_at_takes_hosts_that_cannot_be_reached(inventory: Inventory) -> None:
    assert [host.name for host in select(inventory, "weird", usable=False)] == ["winbox"]


def test_names_with_colons_and_other_scripts_can_be_chosen(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("[v6]\n2001:db8::1\n[2001:db8::2]:2222\n[здесь]\nгпу_[1:2]_\n")
    inventory = load(tmp_path)
    assert [host.name for host in select(inventory, "2001:db8::1")] == ["2001:db8::1"]
    assert [host.name for host in select(inventory, "all,!2001:db8::1,!здесь")] == ["2001:db8::2"]
    assert inventory.hosts["2001:db8::2"].port == 2222
    assert [host.name for host in select(inventory, "здесь[0]")] == ["гпу_1_"]
    assert fold(inventory.hosts) == "гпу_[1-2]_,2001:db8::1,2001:db8::2"


def test_terms_are_split_outside_brackets() -> None:
    assert terms("a[1,2],b:c, !d[1:2] ,~x(?:y|z){1,2},e") == ["a[1,2]", "b", "c", "!d[1:2]", "~x(?:y|z){1,2}", "e"]

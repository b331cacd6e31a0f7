import json
from pathlib import Path

import pytest

from hostwright.common.secret import Secret
from hostwright.inventory import Host, Inventory, load


def inventory_of(tmp_path: Path, variables: object) -> Inventory:
    (tmp_path / "hosts.yml").write_text(json.dumps({"gpu": {"hosts": {"gpu01.rack": variables}}}))
    return load(tmp_path)


def host_of(tmp_path: Path, **variables: object) -> Host:
    return inventory_of(tmp_path, variables).hosts["gpu01.rack"]


def test_nothing_said_is_left_to_ssh(tmp_path: Path) -> None:
    host = host_of(tmp_path)
    assert (host.address, host.port, host.user, host.key_file, host.proxy_jump, host.known_hosts) == (None,) * 6
    assert (host.become, host.become_user, host.become_password, host.host_keys) == (True, "root", None, None)


def test_the_common_variables(tmp_path: Path) -> None:
    host = host_of(
        tmp_path,
        ansible_host="192.0.2.1",
        ansible_port="2222",
        ansible_user="ubuntu",
        ansible_ssh_private_key_file="~/.ssh/k",
        ansible_password="a",
        ansible_become=False,
        ansible_become_password="b",
        ansible_timeout=5,
        ansible_connection="smart",
        ansible_become_method="sudo",
        hostwright_known_hosts="/k",
    )
    assert (host.address, host.port, host.user, host.key_file) == ("192.0.2.1", 2222, "ubuntu", "~/.ssh/k")
    assert (host.password, host.become, host.become_password) == (Secret("a"), False, Secret("b"))
    assert (host.connect_timeout, host.known_hosts, host.mistakes) == (5.0, "/k", ())


@pytest.mark.parametrize(
    ("variables", "sudo"),
    [
        ({"hostwright_sudo": "/opt/sudo/bin/sudo"}, "/opt/sudo/bin/sudo"),
        ({"ansible_become_exe": "/usr/local/bin/sudo"}, "/usr/local/bin/sudo"),
        ({"ansible_become_exe": "sudo"}, None),
        ({"ansible_become_exe": "/a/sudo", "hostwright_sudo": "/b/sudo"}, "/b/sudo"),
        ({}, None),
    ],
)
def test_a_sudo_elsewhere(tmp_path: Path, variables: dict[str, str], sudo: str | None) -> None:
    host = host_of(tmp_path, **variables)
    assert (host.sudo, host.mistakes) == (sudo, ())


def test_passwords_never_show(tmp_path: Path) -> None:
    host = host_of(tmp_path, ansible_password="hunter2", ansible_become_pass="hunter2", ansible_ssh_pass="hunter2")
    assert "hunter2" not in repr(host) + repr(host.vars) + repr(host.layers) + str(host.password)


@pytest.mark.parametrize(
    ("arguments", "jump"),
    [
        ("-J bastion", "bastion"),
        ("-Jroot@bastion:2222", "root@bastion:2222"),
        ("-o ProxyJump=a,b@c:22", "a,b@c:22"),
        ("-oProxyJump=bastion", "bastion"),
        ("-o 'ProxyJump bastion'", "bastion"),
        ("-o ProxyJump=none", None),
        ('-o ProxyCommand="ssh -W %h:%p -q bastion"', "bastion"),
        ("-o ProxyCommand='ssh -q -p 2222 -l me -W %h:%p bastion.example.org'", "me@bastion.example.org:2222"),
        ("-o ControlMaster=auto -o ControlPersist=60s -C -o ProxyJump=bastion", "bastion"),
    ],
)
def test_jump_hosts(tmp_path: Path, arguments: str, jump: str | None) -> None:
    host = host_of(tmp_path, ansible_ssh_common_args=arguments)
    assert (host.proxy_jump, host.mistakes) == (jump, ())


def test_other_ssh_options(tmp_path: Path) -> None:
    host = host_of(
        tmp_path,
        ansible_ssh_common_args="-o StrictHostKeyChecking=accept-new -o UserKnownHostsFile=/k -p 22 -i /id -l me",
        ansible_ssh_extra_args="-o ConnectTimeout=7",
        ansible_port=23,
    )
    assert (host.host_keys, host.known_hosts, host.port, host.key_file) == ("accept-new", "/k", 23, "/id")
    assert (host.user, host.connect_timeout) == ("me", 7.0)


def test_host_keys_stay_checked_and_that_is_said(tmp_path: Path) -> None:
    inventory = inventory_of(
        tmp_path,
        {"ansible_ssh_common_args": "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"},
    )
    host = inventory.hosts["gpu01.rack"]
    assert (host.host_keys, host.known_hosts, host.mistakes) == (None, None, ())
    assert len(inventory.notes) == 1
    assert inventory.notes[0].startswith("host keys are always checked")


@pytest.mark.parametrize("name", ["local", "ansible.builtin.local", "ansible.legacy.local", "{{ 'lo' + 'cal' }}"])
def test_this_machine_is_a_host_like_any_other(tmp_path: Path, name: str) -> None:
    host = host_of(tmp_path, ansible_connection=name, ansible_host="127.0.0.1", ansible_become_password="b")
    assert (host.connection, host.local, host.address, host.mistakes) == ("local", True, "127.0.0.1", ())
    assert host.become_password == Secret("b")


def test_what_is_about_ssh_means_nothing_where_the_host_is_this_machine(tmp_path: Path) -> None:
    """Such variables are in group_vars for other hosts, and may have unsupported values."""
    host = host_of(
        tmp_path,
        ansible_connection="local",
        ansible_user="deploy",
        ansible_port="no",
        ansible_ssh_common_args="-F other",
        ansible_password="a",
        ansible_timeout="no",
        ansible_ssh_private_key_file="~/k",
    )
    assert (host.mistakes, host.user, host.port, host.password, host.key_file) == ((), None, None, None, None)


@pytest.mark.parametrize("name", ["ssh", "smart", "paramiko", "ansible.builtin.ssh", "ansible.builtin.paramiko_ssh"])
def test_ssh_by_all_its_names(tmp_path: Path, name: str) -> None:
    host = host_of(tmp_path, ansible_connection=name)
    assert (host.connection, host.local, host.mistakes) == ("ssh", False, ())


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("ansible_connection", ["local"], "found a list"),
        ("ansible_connection", "community.docker.docker", "expected 'ssh', or 'local' for this machine"),
        ("ansible_connection", "Local", "expected 'ssh', or 'local' for this machine"),
        ("ansible_port", "abc", "expected a port from 1 to 65535"),
        ("ansible_port", 70000, "expected a port"),
        ("ansible_port", True, "expected a port"),
        ("ansible_host", ["a"], "found a list, expected text"),
        ("ansible_host", "a\nb", "a line break"),
        ("ansible_become", "perhaps", "expected true or false"),
        ("ansible_become_user", "postgres", "only root can install"),
        ("ansible_become_method", "su", "expected sudo"),
        ("ansible_become_exe", "sudo su -", "expected sudo's absolute path"),
        ("ansible_become_exe", "opt/sudo", "expected sudo's absolute path"),
        ("hostwright_sudo", "/opt/../home/ann/sudo", "expected sudo's absolute path"),
        ("hostwright_sudo", "/opt/sudo;id", "expected sudo's absolute path"),
        ("ansible_connection", "docker", "expected 'ssh', or 'local' for this machine"),
        ("ansible_timeout", "soon", "expected a number of seconds"),
        (
            "ansible_ssh_common_args",
            "-o CheckHostIP=yes",
            "CheckHostIP yes is not supported here; put it into ~/.ssh/config",
        ),
        ("ansible_ssh_extra_args", "-oHashKnownHosts=yes", "HashKnownHosts yes is not supported here"),
        ("ansible_ssh_common_args", "-o StrictHostKeyChecking=maybe", "expected one of yes, true, accept-new, ask"),
        ("ansible_ssh_common_args", "-o UserKnownHostsFile='/a /b'", "expected one file"),
        ("ansible_ssh_common_args", "-o UserKnownHostsFile=none", "expected one file"),
        ("ansible_ssh_common_args", "-o VerifyHostKeyDNS=yes", "'verifyhostkeydns' is not supported here"),
        ("ansible_ssh_common_args", "-o HostKeyAlias=a", "'hostkeyalias' is not supported here"),
        ("ansible_ssh_common_args", "-o HostKeyAlgorithms=ssh-rsa", "'hostkeyalgorithms' is not supported here"),
        ("ansible_ssh_common_args", "-o GlobalKnownHostsFile=/k", "'globalknownhostsfile' is not supported here"),
        ("ansible_ssh_common_args", "-o RevokedHostKeys=/k", "'revokedhostkeys' is not supported here"),
        ("ansible_ssh_common_args", "-o KnownHostsCommand=/k", "'knownhostscommand' is not supported here"),
        ("ansible_ssh_common_args", "-F other", "'-F' is not supported here"),
        ("ansible_ssh_common_args", "-o LocalCommand=id", "'localcommand' is not supported"),
        ("ansible_ssh_common_args", "-o ProxyCommand='nc %h %p'", "expected `ssh -W %h:%p"),
        ("ansible_ssh_common_args", "-o ProxyCommand='ssh -W %h:%p -oProxyCommand=x b'", "expected `ssh -W"),
        ("ansible_ssh_common_args", "-J -oProxyCommand=x", "expected a jump host"),
        ("ansible_ssh_common_args", "-J 'a b'", "expected a jump host"),
        ("ansible_ssh_common_args", "-o 'x", "no closing quotation"),
        ("ansible_host", "{{ lookup('dig', 'x') }}", "only Ansible itself can evaluate lookup('dig', …)"),
        ("ansible_host", "{{ nothing }}", "refers to 'nothing', which is not a variable"),
    ],
)
def test_what_cannot_be_used_is_a_mistake_of_that_host(tmp_path: Path, name: str, value: object, sentence: str) -> None:
    (mistake,) = host_of(tmp_path, **{name: value}).mistakes
    assert sentence in str(mistake)
    assert "hosts.yml:1:" in str(mistake)


def test_options_about_host_keys_that_change_nothing_are_taken(tmp_path: Path) -> None:
    words = "-o CheckHostIP=no -o HashKnownHosts=no -o UpdateHostKeys=yes -o StrictHostKeyChecking=ask"
    host = host_of(tmp_path, ansible_ssh_common_args=words)
    assert (host.mistakes, host.host_keys, host.known_hosts) == ((), None, None)


def test_strict_checking_in_the_inventory_wins_over_accept_new(tmp_path: Path) -> None:
    """As in ssh_config, ``host_keys`` of a host wins over the command line."""
    host = host_of(tmp_path, ansible_ssh_common_args="-o StrictHostKeyChecking=yes")
    assert (host.mistakes, host.host_keys) == ((), "strict")


def test_plain_templates_in_connection_variables(tmp_path: Path) -> None:
    host = host_of(tmp_path, ansible_host="{{ inventory_hostname_short }}.{{ domain }}", domain="example.org")
    assert host.address == "gpu01.example.org"
    assert host.get("ansible_host") == "{{ inventory_hostname_short }}.{{ domain }}"


@pytest.mark.parametrize(
    ("template", "address"),
    [
        ("{{ 'gpu%02d' | format(number) }}", "gpu07"),
        ("{{ missing | default('10.0.0.1') }}", "10.0.0.1"),
        ("{% if number > 5 %}high{% else %}low{% endif %}", "high"),
        ("{{ outer }}", "gpu01.rack.example.org"),
        ("{{ nets.storage.ip }}", "10.1.0.7"),
        ("{{ hostvars['other'].ansible_host }}", "other.example.org"),
        ("{{ hostvars[groups['jump'][0]]['ansible_host'] }}", "other.example.org"),
        ("{{ group_names | join('-') }}", "gpu"),
        ("{{ lookup('env', 'OF_A_TEST') }}", "from the environment"),
    ],
)
def test_templates_are_rendered_with_the_hosts_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, template: str, address: str
) -> None:
    monkeypatch.setenv("OF_A_TEST", "from the environment")
    own = {"ansible_host": template, "number": 7, "domain": "example.org"}
    own |= {"outer": "{{ inventory_hostname }}.{{ domain }}", "nets": {"storage": {"ip": "10.1.0.{{ number }}"}}}
    other = {"ansible_host": "other.{{ domain }}", "domain": "example.org"}
    groups = {"gpu": {"hosts": {"gpu01.rack": own}}, "jump": {"hosts": {"other": other}}}
    (tmp_path / "hosts.yml").write_text(json.dumps(groups))
    host = load(tmp_path).hosts["gpu01.rack"]
    assert (host.address, host.mistakes) == (address, ())


@pytest.mark.parametrize(
    ("template", "sentence"),
    [
        ("{{ a }}", "in a cycle: a → b → a"),
        ("{{ hostvars['gpu01.rack'].a }}", "in a cycle: gpu01.rack's a → b → a → b"),
        ("{{ 'a' * 10000000000 }}", "in the template is too large"),
        ("{{ 9 ** 9999999 }}", "in the template is too large"),
        ("{% for x in 'ab' %}{{ x }}{% endfor %}", "loops in inventory templates"),
        ("{{ ''.__class__.__mro__ }}", "unsafe"),
        ("{{ a b }}", "cannot be parsed"),
        ("{{ inventory_hostname | ipaddr }}", "No filter named 'ipaddr'"),
        ("{{ hostvars['none'].x }}", "cannot be evaluated"),
    ],
)
def test_templates_that_cannot_be_rendered_are_a_mistake(tmp_path: Path, template: str, sentence: str) -> None:
    (mistake,) = host_of(tmp_path, ansible_host=template, a="{{ b }}", b="{{ a }}").mistakes
    assert sentence in str(mistake)


def test_a_user_in_a_hosts_name_is_read_as_ssh_does(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("me@gpu01\nme@gpu02 ansible_user=you\n")
    hosts = load(tmp_path).hosts.values()
    assert [(host.user, host.address) for host in hosts] == [("me", "gpu01"), ("you", "gpu02")]


@pytest.mark.parametrize(
    ("variable", "told"),
    [
        ("ansible_port: 22:22", "found 22:22, which YAML reads as 1342; put it in quotes"),
        ("ansible_port: 02222", "found 02222, which YAML reads as 1170; put it in quotes"),
        ("ansible_user: 0123", "found 0123, which YAML reads as 83; put it in quotes"),
        ("ansible_host: 1.10", "found 1.10, which YAML reads as 1.1; put it in quotes"),
    ],
)
def test_a_number_that_yaml_makes_of_something_else_is_not_connected_to(
    tmp_path: Path, variable: str, told: str
) -> None:
    (tmp_path / "hosts.yml").write_text(f"gpu: {{hosts: {{a: {{{variable}}}}}}}")
    (mistake,) = load(tmp_path).hosts["a"].mistakes
    assert str(mistake).endswith(f"{variable.partition(':')[0]}: {told}")


@pytest.mark.parametrize("written", ["0123456", "1_000", "1.10", "12:30", "2026-11-23", "1e3", "'007'", "4711"])
def test_a_password_is_what_stands_there(tmp_path: Path, written: str) -> None:
    (tmp_path / "hosts.yml").write_text(f"gpu: {{hosts: {{a: {{ansible_become_password: {written}}}}}}}")
    assert load(tmp_path).hosts["a"].become_password == Secret(written.strip("'"))


def test_a_password_that_only_ansible_can_read_is_noted(tmp_path: Path) -> None:
    (tmp_path / "hosts.yml").write_text(
        "gpu: {hosts: {a: {ansible_become_password: '{{ vault_it }}'}, b: {ansible_password: !vault 'x'}}}"
    )
    inventory = load(tmp_path)
    assert inventory.hosts["a"].become_password is None
    assert inventory.hosts["b"].password is None
    assert len(inventory.notes) == 2
    assert not inventory.hosts["a"].mistakes


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("ansible_password", "password"),
        ("ansible_ssh_pass", "password"),
        ("hostwright_password", "password"),
        ("ansible_become_pass", "become_password"),
        ("ansible_become_password", "become_password"),
        ("hostwright_become_password", "become_password"),
    ],
)
def test_a_command_stands_in_the_place_of_every_password(tmp_path: Path, name: str, field: str) -> None:
    host = host_of(tmp_path, **{f"{name}_command": 'printf "%s " "$HOSTWRIGHT_HOST"'})
    assert host.mistakes == ()
    secret = getattr(host, field)
    assert secret.reveal() == "gpu01.rack ", "a blank at its end is the password's"
    assert "HOSTWRIGHT_HOST" in repr(host.vars), "the command is no secret"


def test_a_password_for_hostwright_wins_over_one_that_only_ansible_can_read(tmp_path: Path) -> None:
    of_ansible = "{{ lookup('community.general.passwordstore', 'sudo') }}"
    variables = {"ansible_become_password": of_ansible, "hostwright_become_password_command": "echo s3cr3t"}
    inventory = inventory_of(tmp_path, variables)
    host = inventory.hosts["gpu01.rack"]
    assert host.become_password is not None
    assert (host.become_password.reveal(), host.mistakes, inventory.notes) == ("s3cr3t", (), ())
    host = host_of(tmp_path, ansible_become_password="general", hostwright_become_password_command="echo special")
    assert host.become_password is not None
    assert host.become_password.reveal() == "special"


def test_a_password_of_the_host_wins_over_a_command_of_its_group(tmp_path: Path) -> None:
    group = {"hostwright_become_password_command": "echo general"}
    hosts = {"gpu01": {"ansible_become_password": "special"}, "gpu02": {}}
    (tmp_path / "hosts.yml").write_text(json.dumps({"gpu": {"vars": group, "hosts": hosts}}))
    found = [host.become_password for host in load(tmp_path).hosts.values()]
    assert [password.reveal() for password in found if password] == ["special", "general"]
    typed = load(tmp_path, extra={"ansible_become_pass": "typed"}).hosts["gpu01"]
    assert typed.become_password == Secret("typed")


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"hostwright_password": "x", "hostwright_password_command": "y"}, "together with hostwright_password;"),
        ({"hostwright_password_command": ""}, "expected a command for /bin/sh"),
        ({"hostwright_password_command": ["pass", "x"]}, "expected a command for /bin/sh"),
        ({"hostwright_password_command": "pass {{ inventory_hostname }}"}, 'use "$HOSTWRIGHT_HOST" for the host'),
    ],
)
def test_a_command_for_a_password_that_cannot_be_used(
    tmp_path: Path, variables: dict[str, object], sentence: str
) -> None:
    (mistake,) = host_of(tmp_path, **variables).mistakes
    assert sentence in str(mistake)
    assert "hostwright_password_command: " in str(mistake)


def test_a_command_that_is_null_is_none(tmp_path: Path) -> None:
    host = host_of(tmp_path, hostwright_password="x", hostwright_password_command=None)
    assert (host.password, host.mistakes) == (Secret("x"), ())

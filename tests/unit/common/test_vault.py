"""Ansible Vault: data from ``ansible-vault`` (ansible-core 2.19) is decrypted as by Ansible, and never by accident."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostwright.common.errors import InputError, InputErrors
from hostwright.common.input.vault import Vault, password_of
from hostwright.common.secret import Secret
from hostwright.inventory import Inventory, load

PASSWORD = "correct horse"
WHOLE = """\
$ANSIBLE_VAULT;1.1;AES256
64643737343531356164333330373861633561366339663530613764343331376433303962326661
6530346561303032613138626534373635376236353963310a623661666132656462363465366163
32353938616634363965656239656563363563663932623339323164653066373736353232346138
3336646665663136610a656632303930333763343461646636346439646362356532653438383561
36393661303761636661663166323638303330386639396530643235353431356561623034663862
61633333376466386632346166386561633533666533363061616439636330356533313036396365
34656332663561346331386165633163653038653531336261336462336166373534653933366166
32356438326536343931613434646233323661376462653262356532356436323635383566363565
6465
"""
INLINE = """\
$ANSIBLE_VAULT;1.2;AES256;prod
66316461316364656231363533366233303764383336303735333062373764616434636261303062
3533663633386239373439373763306330386431353162340a313635306662376538633236373664
30343033343934326331396139313465633831363464336533353531623661643934653235613636
3462346130376339620a616232623334646134646335633933663165376666366661386633323137
3738
"""
EMPTY = """\
$ANSIBLE_VAULT;1.1;AES256
38393763316261326132616634633162393961616466333430663538333638626264616463653932
3331376533316361363439383930343662376234663535610a653436643631316238626635656539
36373533386537363737376231386164316134333236316463353062626466353066653630623565
3338323732366361330a643534393765653639326663383138643166306439663639616664313738
3466
"""


def vault(*passwords: str) -> Vault:
    return Vault(lambda: map(Secret, passwords))


def inventory(place: Path, *passwords: str, whole: str = WHOLE) -> Inventory:
    """Write a host with an encrypted file of variables, and an encrypted value in a plain file."""
    indented = "".join(f"    {line}\n" for line in INLINE.splitlines())
    (place / "host_vars").mkdir()
    (place / "host_vars" / "gpu01.yml").write_text(whole)
    (place / "hosts.yml").write_text(f"gpu: {{hosts: {{gpu01: }}}}\nall:\n  vars:\n   door: !vault |\n{indented}")
    return load(place, vault=vault(*passwords))


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        (INLINE, "open sesame"),
        (INLINE.replace("\n", "\r\n"), "open sesame"),
        (INLINE.replace("\n", "  \n") + "\n\n", "open sesame"),
        (EMPTY, ""),
        (WHOLE, 'rack_note: "north side"\ngpu_count: 8\nansible_host: 192.0.2.7\nregistry: {user: ann, key: kühl}\n'),
    ],
)
def test_what_ansible_vault_wrote_is_opened_by_the_password_that_fits(text: str, plain: str):
    assert vault("another", PASSWORD).open(text, "x.yml") == plain


@pytest.mark.parametrize(
    ("passwords", "text", "sentence"),
    [
        (["another"], INLINE, "x.yml: is encrypted with Ansible Vault: the vault password is wrong"),
        (["a", "b"], INLINE, "all 2 vault passwords are wrong"),
        ([], INLINE, "pass --vault-password-file FILE"),
        ([PASSWORD], INLINE.replace("AES256", "AES"), "'$ANSIBLE_VAULT;1.2;AES;prod'"),
        ([PASSWORD], INLINE.replace(";1.2", ";1.0"), "ansible-vault rekey"),
        ([PASSWORD], "$ANSIBLE_VAULT;1.1;AES256\n", "is not valid Ansible Vault data"),
        ([PASSWORD], "$ANSIBLE_VAULT;1.1;AES256\nxyz", "is not valid Ansible Vault data"),
        ([PASSWORD], INLINE[:-4], "is not valid Ansible Vault data"),
    ],
)
def test_what_cannot_be_opened_is_said_with_its_place(passwords: list[str], text: str, sentence: str):
    with pytest.raises(InputError) as refused:
        vault(*passwords).open(text, "x.yml")
    assert sentence in str(refused.value)


@settings(deadline=None, max_examples=60)
@given(st.integers(26, len(INLINE) - 1), st.sampled_from("0123456789abcdefg\n"))
def test_a_damaged_text_is_an_error_or_says_what_it_said(place: int, character: str):
    """The digest covers the ciphertext, so that no other plaintext is possible."""
    damaged = INLINE[:place] + character + INLINE[place + 1 :]
    try:
        assert vault(PASSWORD).open(damaged, "x.yml") == "open sesame"
    except InputError as error:
        assert "not valid" in str(error) or "wrong" in str(error)


def test_nobody_is_asked_for_a_password_that_nothing_needs(tmp_path: Path):
    def ask() -> list[Secret]:
        pytest.fail("nothing here is encrypted")

    (tmp_path / "hosts.yml").write_text("gpu: {hosts: {gpu01: {a: b}}}\n")
    assert load(tmp_path, vault=Vault(ask)).hosts["gpu01"].get("a") == "b"


def test_a_password_is_what_a_file_holds_or_a_program_prints(tmp_path: Path):
    file, program = tmp_path / "file", tmp_path / "program"
    file.write_text("  s3 cret \n")
    program.write_text("#!/bin/sh\necho ' s3 cret'\n")
    program.chmod(0o700)
    assert password_of(str(file)).reveal() == "s3 cret"
    assert password_of(str(program)).reveal() == " s3 cret", "Ansible takes line ends from it, and no spaces"


@pytest.mark.parametrize(
    ("text", "mode", "sentence"),
    [
        ("\n", 0o600, "contains no password"),
        ("#!/bin/sh\nexit 3\n", 0o700, "ended with exit status 3"),
        ("no program", 0o700, "Exec format error"),
        (None, 0, "No such file"),
    ],
)
def test_a_password_that_cannot_be_had_is_a_sentence(tmp_path: Path, text: str | None, mode: int, sentence: str):
    file = tmp_path / "pw"
    if text is not None:
        file.write_text(text)
        file.chmod(mode)
    with pytest.raises(InputError, match=sentence) as refused:
        password_of(str(file))
    assert str(file) in str(refused.value)


def test_encrypted_values_are_secrets_whatever_their_names_are(tmp_path: Path):
    host = inventory(tmp_path, PASSWORD).hosts["gpu01"]
    assert (str(host.get("door")), host.get("door").reveal()) == ("***", "open sesame")
    assert (str(host.get("rack_note")), host.get("rack_note").reveal()) == ("***", "north side")
    assert host.get("registry") == {"user": Secret("ann"), "key": Secret("kühl")}
    assert host.get("gpu_count") == 8, "a number is what its reader expects"
    assert host.address == "192.0.2.7", "what connects is opened where it is needed"


def test_without_a_password_hosts_are_read_and_the_file_is_noted(tmp_path: Path):
    read = inventory(tmp_path)
    assert str(read.hosts["gpu01"].get("door")) == "(encrypted with Ansible Vault)"
    assert ["pass --vault-password-file FILE" in note for note in read.notes] == [True]


def test_what_a_wrong_password_leaves_closed_concerns_who_needs_it(tmp_path: Path):
    read = inventory(tmp_path, "another")
    assert read.hosts["gpu01"].get("door").sentence.endswith("the vault password is wrong")
    (mistake,) = read.hosts["gpu01"].mistakes
    assert str(mistake).endswith("gpu01.yml: is encrypted with Ansible Vault: the vault password is wrong")


def test_an_address_that_cannot_be_used_is_not_shown(tmp_path: Path):
    inventory(tmp_path)
    hosts = tmp_path / "hosts.yml"
    hosts.write_text(hosts.read_text().replace("door", "ansible_port"))
    (mistake,) = load(tmp_path, vault=vault(PASSWORD)).hosts["gpu01"].mistakes
    assert "ansible_port: has an invalid value, which is not shown" in str(mistake) and "sesame" not in str(mistake)


def test_declared_names_are_secrets_in_every_layer_and_within_mappings(tmp_path: Path):
    (tmp_path / "hosts.yml").write_text(
        "all: {vars: {hostwright_secrets: [license, inner], license: abc, deep: {inner: [x, 7], other: y}}}\n"
        "gpu: {hosts: {gpu01: {license: {id: 5, on: true}}}}\n"
    )
    read = load(tmp_path, extra={"license": "typed"}).hosts["gpu01"]
    assert read.get("license") == Secret("typed")
    assert read.explain_variable("license")[0].value == Secret("abc")
    assert read.explain_variable("license")[1].value == {"id": Secret("5"), "on": True}
    assert read.get("deep") == {"inner": [Secret("x"), Secret("7")], "other": "y"}


def test_a_declaration_that_is_no_list_of_names_is_an_error(tmp_path: Path):
    (tmp_path / "hosts.yml").write_text("all: {hosts: {a: }, vars: {hostwright_secrets: license}}\n")
    with pytest.raises(InputErrors, match="expected a list of variable names"):
        load(tmp_path)

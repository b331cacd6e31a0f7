"""The host's own authority and certificate, made by the machine's own shell and openssl."""

from __future__ import annotations

import subprocess
from pathlib import Path

from cryptography.x509 import DNSName, ExtensionOID, IPAddress, load_pem_x509_certificate

from hostwright.plan.model import Answer, Change
from hostwright.plan.testing import changes_of
from hostwright.standard.roles.base.states.certificate import OwnCertificate
from tests.unit.roles.base.states.certificates import ended, made, problems


def test_a_host_without_one_gets_one_for_its_names_and_addresses(tmp_path: Path) -> None:
    state = made(tmp_path, ("gpu01", "gpu01.example.org", "10.1.2.3"))
    assert problems(state) == []
    certificate = load_pem_x509_certificate(Path(state.file).read_bytes())
    names = certificate.extensions.get_extension_for_oid(ExtensionOID.SUBJECT_ALTERNATIVE_NAME).value
    assert {"gpu01", "gpu01.example.org"} <= set(names.get_values_for_type(DNSName))
    assert "10.1.2.3" in {str(address) for address in names.get_values_for_type(IPAddress)}
    assert oct(Path(state.file).stat().st_mode)[-3:] == "600"
    assert oct((tmp_path / "authority.pem").stat().st_mode)[-3:] == "600"
    public = (tmp_path / "authority.crt").read_text()
    assert "PRIVATE" not in public
    assert oct((tmp_path / "authority.crt").stat().st_mode)[-3:] == "644"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["authority.crt", "authority.pem", "host.pem"]


def test_one_that_ends_within_thirty_days_is_a_change_and_the_authority_stays(tmp_path: Path) -> None:
    state = made(tmp_path, ("gpu01",))
    authority = (tmp_path / "authority.pem").read_bytes()
    ended(state, days=29)
    assert problems(state) == ["ends within 30 days"]
    made(tmp_path, ("gpu01",))
    assert problems(state) == []
    assert (tmp_path / "authority.pem").read_bytes() == authority


def test_one_with_31_days_left_is_none(tmp_path: Path) -> None:
    state = made(tmp_path, ("gpu01",))
    ended(state, days=31)
    assert problems(state) == []


def test_a_further_name_is_a_change_and_needs_another_authority(tmp_path: Path) -> None:
    made(tmp_path, ("gpu01",))
    authority = (tmp_path / "authority.pem").read_bytes()
    more = OwnCertificate(str(tmp_path), ("gpu01", "lab.example.org"), "proxy")
    assert problems(more) == ["without lab.example.org"]
    made(tmp_path, more.names)
    assert problems(more) == []
    assert (tmp_path / "authority.pem").read_bytes() != authority


def test_a_further_address_needs_no_other_authority(tmp_path: Path) -> None:
    made(tmp_path, ("gpu01",))
    authority = (tmp_path / "authority.pem").read_bytes()
    more = made(tmp_path, ("gpu01", "10.9.9.9"))
    assert problems(more) == []
    assert (tmp_path / "authority.pem").read_bytes() == authority


def test_the_authority_vouches_for_no_other_site(tmp_path: Path) -> None:
    made(tmp_path, ("gpu01",))
    key, request, other = (tmp_path / name for name in ("key", "request", "other.pem"))
    extensions = tmp_path / "extensions"
    extensions.write_text("subjectAltName=DNS:bank.example.com\n")
    authority = tmp_path / "authority.pem"
    for command in (
        f"openssl req -new -newkey rsa:2048 -nodes -keyout {key} -subj /CN=x -out {request}",
        f"openssl x509 -req -in {request} -CA {authority} -CAkey {authority} -set_serial 7 -extfile {extensions}"
        f" -out {other}",
    ):
        subprocess.run(command.split(), check=True, capture_output=True)
    verify = ("openssl", "verify", "-CAfile", authority, other)
    verified = subprocess.run(verify, capture_output=True, text=True, check=False)
    assert verified.returncode != 0
    assert "permitted subtree violation" in verified.stdout + verified.stderr


def test_what_is_wrong_with_it_is_said(tmp_path: Path) -> None:
    state = made(tmp_path, ("gpu01",))
    Path(state.file).chmod(0o644)
    assert problems(state) == ["others may read its key"]
    Path(state.file).write_text("")
    assert "has ended or cannot be read" in problems(state)
    (tmp_path / "host.pem").unlink()
    assert problems(state) == ["absent"]


def test_a_cut_run_leaves_the_former_one_and_the_next_makes_it_whole(tmp_path: Path) -> None:
    state = made(tmp_path, ("gpu01",))
    before = Path(state.file).read_bytes()
    (tmp_path / "authority.crt").unlink()  # as if the last step of a run were missing
    assert problems(state) == ["absent"]
    made(tmp_path, ("gpu01",))
    assert problems(state) == []
    assert Path(state.file).read_bytes() != before


def test_the_plan_names_the_reasons_once_and_shows_no_key(tmp_path: Path) -> None:
    state = made(tmp_path, ("gpu01",))
    (change,) = changes_of(state, {"problems": "ends within 30 days\nwithout a\nends within 30 days\n"})
    assert isinstance(change, Change)
    assert (change.what, change.have) == (f"certificate {state.file}", "ends within 30 days, without a")
    assert "PRIVATE KEY" not in change.steps[0].script
    assert changes_of(state, {"problems": Answer(0, "")}) == ()

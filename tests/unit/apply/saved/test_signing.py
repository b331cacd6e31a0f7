"""Saved plans with signatures: made and checked by the real ssh-keygen, and asked for only where a site does so."""

from __future__ import annotations

import json
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from hostwright.apply.journal.redaction import Redactor
from hostwright.apply.saved import savedplans, signing
from hostwright.apply.saved.signing import KEY, NAMESPACE, SIGNERS, Signing
from hostwright.cli.tasks.change import provision
from hostwright.cli.tasks.look import plan as plan_verb
from hostwright.common.errors import InputError
from hostwright.common.request import Request
from hostwright.fleet import Fleet
from hostwright.plan.model import Plan
from tests.unit.support.seeds import host

PLAN = Plan("gpu01", "tf")


@dataclass(frozen=True)
class Signers:
    """A folder with keys, and the files that say who may sign."""

    folder: Path

    def key(self, name: str = "ours", kind: str = "ed25519") -> Path:
        path = self.folder / name
        if not path.exists():
            keygen("-q", "-t", kind, "-N", "", "-C", name, "-f", str(path))
        return path

    def public(self, name: str = "ours") -> str:
        return self.key(name).with_suffix(".pub").read_text().strip()

    def allowed(self, *lines: str, name: str = "signers") -> Path:
        path = self.folder / name
        path.write_text("".join(f"{line}\n" for line in lines))
        return path

    def saved(self, key: Path, namespace: str = NAMESPACE) -> Path:
        """A plan that this key signed, for this use or for another."""
        path = self.folder / "plan.json"
        savedplans.save(path, [PLAN], Redactor([]))
        made = keygen("-Y", "sign", "-f", str(key), "-n", namespace, content=path.read_bytes())
        signing.signature_path(path).write_bytes(made)
        return path


def keygen(*arguments: str, content: bytes = b"") -> bytes:
    return subprocess.run(["ssh-keygen", *arguments], input=content, capture_output=True, check=True).stdout


@pytest.fixture
def signers(tmp_path: Path) -> Signers:
    return Signers(tmp_path)


def test_a_plan_is_saved_with_a_signature_and_read_with_it(signers: Signers) -> None:
    allowed = signers.allowed(f"plans@controller {signers.public()}")
    path = signers.folder / "plan.json"
    savedplans.save(path, [PLAN], Redactor([]), Signing(signers.key(), (allowed,)))
    beside = signers.folder / "plan.json.sig"
    assert [stat.S_IMODE(file.stat().st_mode) for file in (path, beside)] == [0o600, 0o600]
    assert savedplans.load_for(["gpu01"], path, [allowed]) == {"gpu01": PLAN}
    checked = keygen(
        "-Y", "verify", "-f", str(allowed), "-I", "plans@controller", "-n", NAMESPACE, "-s", str(beside),
        content=path.read_bytes(),
    )  # fmt: skip
    assert b'Good "hostwright-plan" signature for plans@controller' in checked


def refused(path: Path, *allowed: Path) -> str:
    with pytest.raises(InputError) as error:
        savedplans.load_for(["gpu01"], path, allowed)
    return str(error.value)


def test_a_plan_without_a_signature_is_refused_where_one_is_asked_for(signers: Signers) -> None:
    path, allowed = signers.saved(signers.key()), signers.allowed(f"ann {signers.public()}")
    signing.signature_path(path).unlink()
    assert f"plan.json: is not signed (plan.json.sig is missing), and the site requires signed plans ({SIGNERS}: " in (
        refused(path, allowed)
    )
    assert savedplans.load_for(["gpu01"], path) == {"gpu01": PLAN}


def test_a_plan_of_another_key_is_refused(signers: Signers) -> None:
    path = signers.saved(signers.key("theirs"))
    assert "is not signed by a key in" in refused(path, signers.allowed(f"ann {signers.public()}"))


@pytest.mark.parametrize("change", [b" ", b"\n", b"\0"])
def test_a_plan_that_changed_after_it_was_signed_is_refused(signers: Signers, change: bytes) -> None:
    path, allowed = signers.saved(signers.key()), signers.allowed(f"ann {signers.public()}")
    assert savedplans.load_for(["gpu01"], path, [allowed])
    path.write_bytes(path.read_bytes() + change)
    assert "has an invalid signature (ssh-keygen: Signature verification failed: incorrect signature)" in (
        refused(path, allowed)
    )


def test_what_is_read_is_what_was_checked(signers: Signers, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is exchanged while its signature is checked does not count."""
    path, allowed = signers.saved(signers.key()), signers.allowed(f"ann {signers.public()}")
    real = signing._keygen

    def exchanged(arguments: list[str], content: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        path.write_text(json.dumps({"schema": 2, "plans": {"gpu01": Plan("gpu01", "theirs").to_json()}}))
        return real(arguments, content)

    monkeypatch.setattr(signing, "_keygen", exchanged)
    assert savedplans.load_for(["gpu01"], path, [allowed]) == {"gpu01": PLAN}


@pytest.mark.parametrize(
    "content", [b"", b"\0\xff", b"-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\n"]
)
def test_a_damaged_signature_is_refused(signers: Signers, content: bytes) -> None:
    path = signers.saved(signers.key())
    signing.signature_path(path).write_bytes(content)
    assert "is not signed by a key in" in refused(path, signers.allowed(f"ann {signers.public()}"))


@pytest.mark.parametrize(
    ("line", "holds"),
    [
        ("ann {}", True),
        ("# a comment\n\nann {} and who it is", True),
        ("ann,bob {}", True),
        ("*@site.example {}", True),
        ('ann namespaces="hostwright-plan" {}', True),
        ('ann namespaces="git,hostwright-*" {}', True),
        ('ann valid-after="20200101" {}', True),
        ('ann namespaces="git" {}', False),
        ('ann valid-before="20200101" {}', False),
        ('ann valid-after="29990101" {}', False),
        ("ann cert-authority {}", False),
        ("# ann {}", False),
        ("-n {}", True),
        ("", False),
    ],
)
def test_who_may_sign_is_what_ssh_keygen_says(signers: Signers, line: str, holds: bool) -> None:
    path, allowed = signers.saved(signers.key()), signers.allowed(line.format(signers.public()))
    if holds:
        assert savedplans.load_for(["gpu01"], path, [allowed]) == {"gpu01": PLAN}
    else:
        assert "the site requires signed plans" in refused(path, allowed)


@pytest.mark.parametrize("namespace", ["file", "git", "hostwright-plan2", "Hostwright-Plan"])
def test_a_signature_for_another_use_is_refused(signers: Signers, namespace: str) -> None:
    path, allowed = signers.saved(signers.key(), namespace), signers.allowed(f"ann {signers.public()}")
    assert "has an invalid signature" in refused(path, allowed)


@pytest.mark.parametrize("kind", ["rsa", "ecdsa"])
def test_other_kinds_of_keys_sign_too(signers: Signers, kind: str) -> None:
    path = signers.saved(signers.key(kind, kind))
    assert savedplans.load_for(["gpu01"], path, [signers.allowed(f"ann {signers.public(kind)}")])


def test_a_certificate_signs_where_its_authority_is_named(signers: Signers) -> None:
    key, authority = signers.key(), signers.key("authority")
    keygen("-q", "-s", str(authority), "-I", "plans", "-n", "ann", "-V", "+1d", f"{key}.pub")
    path = signers.saved(signers.folder / "ours-cert.pub")
    allowed = signers.allowed(f"ann cert-authority {signers.public('authority')}")
    assert savedplans.load_for(["gpu01"], path, [allowed]) == {"gpu01": PLAN}
    other = signers.allowed(f"bob cert-authority {signers.public('authority')}")
    assert "the site requires signed plans" in refused(path, other)


def test_hosts_of_two_sites_need_the_signature_of_both(signers: Signers) -> None:
    path = signers.saved(signers.key())
    ours = signers.allowed(f"ann {signers.public()}")
    theirs = signers.allowed(f"bob {signers.public('theirs')}", name="others")
    assert f"not signed by a key in {theirs}" in refused(path, ours, theirs)
    both = signers.allowed(f"bob {signers.public('theirs')}", f"ann {signers.public()}", name="both")
    assert savedplans.load_for(["gpu01"], path, [ours, both])


def test_a_key_that_the_site_does_not_name_is_said_when_the_plan_is_saved(signers: Signers) -> None:
    allowed = signers.allowed(f"ann {signers.public('theirs')}")
    with pytest.raises(InputError, match="is not signed by a key in"):
        savedplans.save(signers.folder / "plan.json", [PLAN], Redactor([]), Signing(signers.key(), (allowed,)))


def test_a_key_that_cannot_sign_is_named_with_ssh_keygens_words(signers: Signers) -> None:
    (signers.folder / "ours").write_text("no key")
    with pytest.raises(InputError, match=rf"^{KEY}: .*/ours cannot sign: ssh-keygen: "):
        savedplans.save(signers.folder / "plan.json", [PLAN], Redactor([]), Signing(signers.folder / "ours"))
    assert not (signers.folder / "plan.json").exists()


# What the inventory says


def test_without_variables_nothing_is_signed(tmp_path: Path) -> None:
    assert signing.signing_of([host(None), host(None, **{KEY: None, SIGNERS: None})], tmp_path) == Signing()


def test_relative_paths_are_those_of_the_site(signers: Signers) -> None:
    signers.allowed("")
    hosts = [host(None, **{KEY: "ours", SIGNERS: "signers"}), host(None, **{SIGNERS: str(signers.folder / "signers")})]
    expected = Signing(signers.folder / "ours", (signers.folder / "signers",))
    assert signing.signing_of(hosts, signers.folder) == expected


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({KEY: 5}, f"hosts.yml:1:3: {KEY}: found number 5, expected a file's path"),
        ({SIGNERS: ""}, f"{SIGNERS}: found .*, expected a file's path"),
        ({"hostwright_plan_signer": "x"}, f"hostwright_plan_signer: .*{SIGNERS}"),
        ({SIGNERS: "none"}, f"hosts.yml:1:3: {SIGNERS}: the file .*/none does not exist"),
    ],
)
def test_mistakes_are_refused_with_their_place(tmp_path: Path, variables: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        signing.signing_of([host(None, **variables)], tmp_path)


def test_hosts_with_two_keys_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="these hosts have several keys"):
        signing.signing_of([host(None, **{KEY: "a"}), host(None, **{KEY: "b"})], tmp_path)


# As people use it: no host listens at all, so whoever asks one fails otherwise


def site(signers: Signers, **variables: str) -> Fleet:
    (signers.folder / "inventory").mkdir()
    (signers.folder / "tasks.py").touch()
    text = json.dumps({"all": {"hosts": {"gpu01": {}}, "vars": {"ansible_host": "192.0.2.1", **variables}}})
    (signers.folder / "inventory" / "hosts.yml").write_text(text)
    return Fleet.load(signers.folder / "inventory")


@pytest.fixture
def untouched(monkeypatch: pytest.MonkeyPatch, signers: Signers) -> None:
    """No verb gets as far as a host."""

    def touched(*_: object, **__: object) -> None:
        raise AssertionError("a host was asked")

    for verb in ("plan", "provision"):
        monkeypatch.setattr(Fleet, verb, touched)
    monkeypatch.chdir(signers.folder)


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("state", ["missing", "other key", "changed"])
def test_provision_refuses_before_a_host_is_asked(signers: Signers, state: str) -> None:
    signers.allowed(f"ann {signers.public()}")
    site(signers, **{SIGNERS: "signers"})
    path = signers.saved(signers.key("theirs" if state == "other key" else "ours"))
    if state == "missing":
        signing.signature_path(path).unlink()
    if state == "changed":
        path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(InputError, match=r"the site requires signed plans .*; nothing was changed"):
        provision(Request("gpu01", plan=str(path)))


@pytest.mark.usefixtures("untouched")
def test_provision_goes_on_with_a_good_signature(signers: Signers) -> None:
    signers.allowed(f"ann {signers.public()}")
    site(signers, **{SIGNERS: "signers"})
    with pytest.raises(AssertionError, match="a host was asked"):
        provision(Request("gpu01", plan=str(signers.saved(signers.key()))))


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize(
    ("variables", "out", "sentence"),
    [
        ({SIGNERS: "signers"}, "plan.json", f"{SIGNERS} requires signed plans, but this machine has no key"),
        ({KEY: "nothing"}, "plan.json", f"{KEY}: the key .* does not exist; create it: `ssh-keygen -t ed25519 -f .*`"),
        ({KEY: "ours"}, "/dev/null", "is not a regular file, which signed plans need"),
    ],
)
def test_plan_says_at_once_what_it_cannot_sign(
    signers: Signers, variables: dict[str, str], out: str, sentence: str
) -> None:
    signers.allowed(f"ann {signers.public()}")
    site(signers, **variables)
    with pytest.raises(InputError, match=sentence):
        plan_verb(Request("gpu01"), out=out)

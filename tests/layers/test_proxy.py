"""The proxy in front of workspaces, by what a browser meets: paths, certificate, and what is written of it."""

from __future__ import annotations

import secrets

import pytest

from hostwright.standard.roles.base.states.certificate import AUTHORITY
from hostwright.standard.roles.proxy import GATED, SERVED, STATE, TOKENS
from hostwright.standard.roles.workspaces.declared.workspace import workspaces_of

LOG = "/var/log/nginx/hostwright-workspaces"


@pytest.fixture(scope="module")
def spaces(target):
    """The workspaces that have a path."""
    v = target.variables["workspaces"]
    declared = workspaces_of(v.containers, v.users, v.directory, v.ports)
    return tuple(space for space in declared if space.entry.kind in SERVED)


@pytest.fixture(scope="module")
def ask(root_run, variables):
    """Ask the proxy for a path, from the host itself: the status, and curl's error."""
    address, _, port = variables.listen[0].rpartition(":")
    name = root_run("hostname").stdout.strip()
    to = f"{name}:{port}:{address or '127.0.0.1'}"
    trust = ["--cacert", f"{STATE}/{AUTHORITY}"] if not variables.certificate else ["--insecure"]

    def run(path):
        words = ("curl -q -sS -o /dev/null -m 20 --noproxy '*' --resolve %s -w %s", to, "%{http_code}")
        quoted = words[0] + " %s" * (len(trust) + 1)
        done = root_run(quoted, *words[1:], *trust, f"https://{name}:{port}{path}")
        return done.stdout.strip(), done.stderr.strip()

    return run


def test_each_workspaces_path_answers_over_tls(ask, spaces):
    """Each workspace with a page answers under its path, with a certificate for the host's name."""
    for space in spaces:
        status, error = ask(space.path)
        assert status in {"200", "302", "403"}, f"{space.path} answers {status} {error}"


def test_pages_that_ask_for_no_token_are_behind_one(root_run, variables, spaces):
    """A TensorBoard answers with its workspace's token alone, for which nginx asks."""
    gated = [space for space in spaces if space.entry.kind in GATED]
    address, _, port = variables.listen[0].rpartition(":")
    words = "curl -q -sS -k -o /dev/null -m 20 --noproxy '*' --resolve %s -w %s -H @- %s"
    for space in gated:
        to = f"workspaces:{port}:{address or '127.0.0.1'}", "%{http_code}", f"https://workspaces:{port}{space.path}"
        cookie = "printf 'Cookie: hostwright=%%s' \"$(cat -- %s)\" | "
        with_token = root_run(f"{cookie}{words}", f"{space.state}/token", *to).stdout
        without = root_run(f"printf 'Accept: */*' | {words}", *to).stdout
        assert (with_token, without) == ("200", "403"), f"{space.name} answers {with_token} with, {without} without it"
    if gated:
        mode = root_run("stat -c %s %s", "%u:%a", TOKENS).stdout.strip()
        assert mode == "0:600", f"{TOKENS} has the owner and mode {mode}"


def test_any_other_path_is_not_found(ask):
    """A path of no workspace is not found, and the certificate is for the host's name."""
    status, error = ask("/nobody/nothing/")
    assert status == "404", f"it answers {status} {error}"


def test_tokens_are_not_logged(ask, root_run, spaces):
    """What is asked with a token leaves no token in nginx's logs."""
    token = secrets.token_hex(16)
    for path in ("/nobody/", *(space.path for space in spaces)):
        ask(f"{path}?token={token}")
    assert root_run("grep -c . %s", f"{LOG}.log").rc == 0, "nothing is logged at all"
    assert root_run("grep -rl -- %s /var/log/nginx", token).stdout == "", "the token is in a log of nginx"

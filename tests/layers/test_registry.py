"""The registry of images, by what Docker meets there from each host, and who has its key."""

from __future__ import annotations

from hostwright.standard.roles.base.states.certificate import AUTHORITY
from hostwright.standard.roles.registry import STATE


def test_it_answers_this_host_over_tls(root_run, variables):
    """The registry answers under its name, with a certificate of the authority that this host has for it."""
    if variables.authority:
        trust = ["--cacert", variables.authority_file]
        assert root_run("cat %s", variables.authority_file).stdout == variables.authority
    elif variables.serve and not variables.certificate:
        trust = ["--cacert", f"{STATE}/{AUTHORITY}"]
    else:
        trust = []  # one that hosts know anyway
    to = ["--resolve", f"{variables.at}:127.0.0.1"] if variables.serve else []
    words = ["-q", "-sS", "-o", "/dev/null", "-m", "20", "--noproxy", "*", "-w", "%{http_code}"]
    words += [*to, *trust, f"https://{variables.at}/v2/"]
    done = root_run("curl" + " %s" * len(words), *words)
    assert done.stdout.strip() == "200", f"it answers {done.stdout.strip()} {done.stderr.strip()}"


def test_its_key_is_on_its_host_alone(root_run, variables):
    """The certificate's key is for root and for the registry's own account, and on no host that only pulls."""
    done = root_run("stat -c %s /run/hostwright-registry /run/hostwright-registry/key.pem", "%a %U")
    found = ["700 docker-registry", "400 docker-registry"] if variables.serve else []
    assert done.stdout.split("\n")[:-1] == found

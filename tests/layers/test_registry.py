"""The registry of images: on its host by what Docker meets there, on others by the authority that they believe."""

from __future__ import annotations

import pytest

from hostwright.standard.roles.proxy.states.certificate import AUTHORITY
from hostwright.standard.roles.registry import STATE


def test_it_answers_over_tls_for_its_name(root_run, variables):
    """The registry answers for its own name, with a certificate that its authority vouches for."""
    if not variables.serve:
        pytest.skip("this host has no registry, and pulls from another's")
    trust = ["--insecure"] if variables.certificate else ["--cacert", f"{STATE}/{AUTHORITY}"]
    to = f"{variables.name}:{variables.port}:127.0.0.1"
    words = ["-q", "-sS", "-o", "/dev/null", "-m", "20", "--noproxy", "*", "--resolve", to, "-w", "%{http_code}"]
    words += [*trust, f"https://{variables.at}/v2/"]
    done = root_run("curl" + " %s" * len(words), *words)
    assert done.stdout.strip() == "200", f"it answers {done.stdout.strip()} {done.stderr.strip()}"


def test_nobody_else_reads_its_key(root_run, variables):
    """The certificate's key is for root and for the registry's own account."""
    if not variables.serve:
        pytest.skip("this host has no registry, and pulls from another's")
    done = root_run("stat -c %s /run/hostwright-registry /run/hostwright-registry/key.pem", "%a %U")
    assert done.stdout.split("\n")[:2] == ["700 docker-registry", "400 docker-registry"]


def test_docker_believes_its_authority(root_run, variables):
    """Docker has the authority that the inventory names for this registry."""
    if not variables.authority:
        pytest.skip("the inventory names no authority: it is one that hosts know anyway")
    assert root_run("cat %s", variables.authority_file).stdout == variables.authority

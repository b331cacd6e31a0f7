"""TensorFlow's proofs in a container of the image in which people work, with real Docker.

The lab's image has no CUDA, and the lab's card computes nothing: beside right results of the processor there is the
finding that the card is not used.
"""

from __future__ import annotations

import time

from tests.lab.conftest import on
from tests.workspaces.site import HOST, IMAGE, Site

PROOF = "workspaces.devices_in_container"
CONTAINERS = "docker ps --all --quiet --filter label=hostwright.proof"
BEGUN_S = 120  #: for a container to begin
GONE_S = 60  #: for the job to notice that its program is gone, and to clean up


def proved(site: Site, status: int, *more: str) -> dict[str, object]:
    """The result of the proof on the host."""
    told = site.invoke.json("prove", "--hosts", HOST, "--proofs", PROOF, *more, status=status)
    (result,) = told["hosts"][0]["results"]
    return result  # type: ignore[no-any-return]


def test_tensorflow_computes_in_the_container_and_the_container_is_removed(site: Site) -> None:
    result = proved(site, 3)
    assert "TensorFlow does not compute on the card" in str(result["sentence"])
    values = {row["name"]: row["value"] for row in result["measurements"] if row["device"] != "no GPU"}  # type: ignore[attr-defined]
    assert (values["tensorflow"], values["product"]) == ("2.9.0", 0)
    assert on(site.machine, CONTAINERS) == ""


def test_a_proof_that_is_killed_leaves_no_container(site: Site) -> None:
    wait = f'for i in $(seq {10 * BEGUN_S}); do id=$({CONTAINERS} --filter status=running); [ -z "$id" ] || break; '
    kill = f"{wait}sleep 0.1; done; docker kill $id"
    on(site.machine, f"systemd-run -q --collect --unit=kills-proof sh -c '{kill}'")
    result = proved(site, 3)
    assert "status 137" in str(result["sentence"])
    limit = time.monotonic() + GONE_S
    while on(site.machine, CONTAINERS):
        assert time.monotonic() < limit, "the container of the killed proof is still there"


def test_an_image_that_is_not_there_is_no_pass(site: Site) -> None:
    result = proved(site, 1, "--var", "workspaces_proved_image=people/absent:1")
    assert result["outcome"] == "not run"
    assert "this host has no image people/absent:1" in str(result["sentence"])
    assert IMAGE in on(site.machine, "docker images --format '{{.Repository}}:{{.Tag}}'")

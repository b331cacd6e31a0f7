"""Proofs (tests) of TensorFlow in a container with the image of the host's workspaces."""

from __future__ import annotations

import re
from collections import Counter

from hostwright.proofs import Level, Proof
from hostwright.roles import RoleContext, sh_file
from hostwright.standard.roles.cuda.section import CudaSection
from hostwright.standard.roles.tensorflow.proofs import WITH_COMPILING_S, of_one_host
from hostwright.standard.roles.tensorflow.proofs.installed import TensorflowJudge
from hostwright.standard.roles.tensorflow.section import TensorflowSection
from hostwright.standard.roles.workspaces import Workspaces
from hostwright.standard.roles.workspaces.declared.images import image_for

LAYER = "workspaces"
LABEL = "hostwright.proof"  #: name of the label of containers in which proofs run
_NAMED = re.compile(r"(^|/)tensorflow[:@]")
_TAG = re.compile(r"(?:.*/)?tensorflow:([0-9]+\.[0-9]+\.[0-9]+)(?:-[^/]*)?")


def proofs(variables: Workspaces, ctx: RoleContext) -> tuple[Proof, ...]:
    """Return TensorFlow's proofs in a container with ``proved_image``, else with the workspaces' TensorFlow image.

    The short proofs run at the level ``quick`` if workspaces use the image, else at ``full``.
    """
    # An ssh workspace's base image may be missing on the host.
    entries = (entry for _, entry in sorted(variables.containers.items()) if entry.kind != "ssh")
    usual = image_for(ctx.stack)
    images = Counter(image for entry in entries if _NAMED.search(image := entry.image or usual))
    image = variables.proved_image or next((name for name, _ in images.most_common(1)), usual)
    if not variables.proved_image and not _NAMED.search(image):
        return ()
    script = sh_file(__file__, "container.sh", image=image, label=LABEL, limit_s=f"{WITH_COMPILING_S:g}")
    interpreter = ("sh", "-c", script, "container")
    level: Level = "quick" if images[image] else "full"
    return of_one_host(LAYER, interpreter, _judge(image, ctx), name="{}_in_container", quickest=level)


def _judge(image: str, ctx: RoleContext) -> TensorflowJudge:
    """Check CUDA only if the tag of ``image`` has the TensorFlow version of the stack."""
    tag = _TAG.fullmatch(image)
    version = tag[1] if tag else ""
    stacks, cuda = ctx.find(TensorflowSection), ctx.find(CudaSection)
    same = stacks is not None and stacks.version == version
    return TensorflowJudge(version, cuda.version if cuda and same else "")

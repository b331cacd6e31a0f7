"""The verb ``images.rebuild``, beside those of the role ``container``. What it needs is imported when it is run."""

from __future__ import annotations

from invoke import Collection

from hostwright.cli.verb import GRADUAL, REACHED, Request, verb


@verb(
    *REACHED,
    *("check", "drain", "force", "yes"),
    *GRADUAL,
    again="build once more on a day on which the images were built already",
)
def rebuild(request: Request, again: bool = False) -> int:
    """Build the images of SSH boxes again with today's updates, and make the boxes anew; files and host keys stay.

    hostwright images.rebuild gpu01
    """
    from hostwright.standard.roles.workspaces.verbs import rebuilding

    return rebuilding.rebuild(request, again=again)


namespace = Collection("images", rebuild)

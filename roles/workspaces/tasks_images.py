"""Task ``images.rebuild``. The implementation is imported when the task runs."""

from __future__ import annotations

from invoke import Collection

from hostwright.cli.verb import GRADUAL, REACHED, Request, verb


@verb(
    *REACHED,
    *("check", "drain", "force", "yes"),
    *GRADUAL,
    again="build again on a day on which the images were already built",
)
def rebuild(request: Request, again: bool = False) -> int:
    """Rebuild the images of SSH boxes with today's updates, and recreate the boxes; files and host keys are kept.

    hostwright images.rebuild gpu01
    """
    from hostwright.standard.roles.workspaces.verbs import rebuilding

    return rebuilding.rebuild(request, again=again)


namespace = Collection("images", rebuild)

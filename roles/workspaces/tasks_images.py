"""The verb ``images.rebuild``, beside those of the role ``container``. What it needs is imported when it is run."""

from __future__ import annotations

from invoke import Collection

from hostwright.cli.verb import CHECK, DRAIN, FORCE, GRADUAL, REACHED, YES, Given, verb


@verb(
    *REACHED,
    CHECK,
    DRAIN,
    FORCE,
    *GRADUAL,
    YES,
    again="build once more on a day on which the images were built already",
)
def rebuild(given: Given, again: bool = False) -> int:
    """Build the images of SSH boxes again with today's updates, and make the boxes anew; files and host keys stay.

    hostwright images.rebuild gpu01
    """
    from hostwright.standard.roles.workspaces.verbs import rebuilding

    return rebuilding.rebuild(
        given.selection,
        given.connection,
        given.change(),
        again=again,
        force=given.force,
        check=given.check,
        as_json=given.json,
    )


namespace = Collection("images", rebuild)

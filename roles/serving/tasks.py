"""The verbs ``serve.…``. What they need is imported when one is run."""

from __future__ import annotations

from typing import Any

from invoke import Collection

from hostwright.cli.verb import LISTED, OF_ONE, Command, Option, Request, verb

_HOST = "the host (default: the one that serves the model, or the only one with the role serving)"
_NAME = "the model's name"
_ONLY_WRITE = f"do not provision; {Command('provision', roles='workspaces,serving')} does the rest"


#: what the file says of a model's server, field by field
_ENTRY = {
    "user": Option("whose it is: a name of workspaces_users (default: nobody)", ""),
    "gpus": Option("numbers as nvidia-smi -L lists them, or UUIDs: 0,1", ""),
    "share": Option("its GPUs may be given to workspaces that share, too", False),
    "cpus": Option("at most this many CPUs: 8 or 0.5", ""),
    "memory": Option("at most this much memory: 64g", ""),
    "port": Option("on the host's loopback (default: auto)", ""),
    "image": Option("with its exact tag or digest (default: tensorflow/serving, of a release for the stack)", ""),
    "pull": Option("the host may pull the image from its registry", False),
}


@verb(
    *OF_ONE,
    host=_HOST,
    model="the directory that tf.saved_model.save wrote, or the one above it whose versions are numbers",
    name="the model's name (default: the directory's)",
    version="the version's number (default: the directory's, else one more than the newest)",
    signature="what clients ask by this name, where the model has no serving_default",
    no_provision=_ONLY_WRITE,
    further=_ENTRY,
)
def up(
    request: Request,
    /,
    model: str = "",
    name: str = "",
    version: int = 0,
    signature: str = "",
    no_provision: bool = False,
    **entry: Any,
) -> int:
    """Bring a model's version to a host and serve it beside those that it serves; the first one is live.

    hostwright serve.up gpu01 --model models/flowers
    """
    from hostwright.standard.roles.serving.verbs import changing

    wish = changing.Wish(model, name, version, signature)
    return changing.up(request, wish, entry, provision=not no_provision)


@verb(
    *OF_ONE,
    host=_HOST,
    force="also where it takes or gives other tensors than the live one",
    name=_NAME,
    version="the version that shall be live; it must be served already",
    no_provision=_ONLY_WRITE,
)
def switch(request: Request, name: str = "", version: int = 0, no_provision: bool = False) -> int:
    """Make another version of a model the live one, without a lost request.

    hostwright serve.switch gpu01 --name flowers --version 2
    """
    from hostwright.standard.roles.serving.verbs import changing

    return changing.switch(request, name, version, provision=not no_provision)


@verb(
    *OF_ONE,
    "yes",
    host=_HOST,
    name=_NAME,
    version="only this version, which must not be the live one (default: the model with its server)",
    no_provision=_ONLY_WRITE,
)
def down(request: Request, name: str = "", version: int = 0, no_provision: bool = False) -> int:
    """Take a model, or one of its versions, off its host.

    hostwright serve.down gpu01 --name flowers
    """
    from hostwright.standard.roles.serving.verbs import changing

    return changing.down(request, name, version, provision=not no_provision)


@verb(*LISTED, called="list")
def list_(request: Request) -> int:
    """Show the models of hosts: their versions, which of them is live, and where it answers.

    hostwright serve.list
    """
    from hostwright.standard.roles.serving.verbs import queries

    return queries.show_list(request)


namespace = Collection("serve", up, list_, switch, down)

"""Tasks ``serve.…`` for models. The implementation of a task is imported when the task runs."""

from __future__ import annotations

from typing import Any

from invoke import Collection

from hostwright.cli.verb import LISTED, OF_ONE, Command, Option, Request, verb

_HOST = "the host (default: the host that serves the model, or the only host with the role serving)"
_NAME = "the model's name"
_ONLY_WRITE = f"write the inventory only; apply it later with {Command('provision', roles='workspaces,serving')}"


#: task options that set fields of a model server's inventory entry
_ENTRY = {
    "user": Option("owner: a name of workspaces_users (default: nobody)", ""),
    "gpus": Option("indexes from nvidia-smi -L, or UUIDs: 0,1", ""),
    "share": Option("share its GPUs with other workspaces that share", False),
    "cpus": Option("maximum number of CPUs: 8 or 0.5", ""),
    "memory": Option("maximum memory: 64g", ""),
    "port": Option("port on the host's loopback interface (default: auto)", ""),
    "image": Option("image with an exact tag or digest (default: a tensorflow/serving release for the stack)", ""),
    "pull": Option("let the host pull the image from its registry", False),
}


@verb(
    *OF_ONE,
    host=_HOST,
    model="the directory that tf.saved_model.save wrote, or its parent with numbered versions",
    name="the model's name (default: the directory's)",
    version="the version number (default: the directory's name, else the newest version plus one)",
    signature="the signature that clients name in requests, if the model has no serving_default",
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
    """Upload a version of a model to a host and serve it beside the served versions. The first version becomes live.

    hostwright serve.up gpu01 --model models/flowers
    """
    from hostwright.standard.roles.serving.verbs import changing

    wish = changing.Wish(model, name, version, signature)
    return changing.up(request, wish, entry, provision=not no_provision)


@verb(
    *OF_ONE,
    host=_HOST,
    force="also if its input or output tensors differ from the live version's",
    name=_NAME,
    version="the new live version, which must be served already",
    no_provision=_ONLY_WRITE,
)
def switch(request: Request, name: str = "", version: int = 0, no_provision: bool = False) -> int:
    """Make another version of a model the live one, without failed requests.

    hostwright serve.switch gpu01 --name flowers --version 2
    """
    from hostwright.standard.roles.serving.verbs import changing

    return changing.switch(request, name, version, provision=not no_provision)


@verb(
    *OF_ONE,
    "yes",
    host=_HOST,
    name=_NAME,
    version="remove only this version, which must not be live (default: the model and its server)",
    no_provision=_ONLY_WRITE,
)
def down(request: Request, name: str = "", version: int = 0, no_provision: bool = False) -> int:
    """Remove a model, or one of its versions, from its host.

    hostwright serve.down gpu01 --name flowers
    """
    from hostwright.standard.roles.serving.verbs import changing

    return changing.down(request, name, version, provision=not no_provision)


@verb(*LISTED, called="list")
def list_(request: Request) -> int:
    """Show the models of hosts: versions, live version, state and address.

    hostwright serve.list
    """
    from hostwright.standard.roles.serving.verbs import queries

    return queries.show_list(request)


namespace = Collection("serve", up, list_, switch, down)

"""All verbs, one function each. ``invoke --list`` lists verbs, and ``invoke --help VERB`` explains one.

A verb imports its dependencies inside its function, which keeps ``invoke --list`` and completion fast.
"""

from __future__ import annotations

import sys
from typing import Any

from invoke import Collection, Task

from hostwright.cli.shell.advice import know
from hostwright.cli.shell.plaininvoke import of_invoke, refuse_bare_hosts
from hostwright.cli.tasks import change, keep, look, reach, restore, site
from hostwright.cli.tasks.ofroles import verbs_here

VERBS: tuple[Task[Any] | Collection, ...] = (
    *(look.plan, change.provision, look.verify, look.prove, change.remove, restore.rebuild, restore.rollback),
    Collection("audit", look.audit_fleet, look.audit_history, look.audit_diff),
    *(
        look.doctor,
        site.variables,
        site.hosts,
        site.check,
        site.schema,
        site.stacks,
        keep.adopt,
        keep.mirror,
        keep.pins,
    ),
    Collection("runs", keep.runs_list, keep.runs_show, keep.runs_follow),
    *(keep.lock, keep.unlock, restore.trust, restore.power, reach.run, reach.ssh),
    *verbs_here(),
)
namespace = Collection(*VERBS)
know(namespace)
if of_invoke(sys.argv):
    refuse_bare_hosts(sys.argv[1:], namespace)

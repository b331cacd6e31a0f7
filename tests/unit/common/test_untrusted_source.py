"""The source of code that reads hosts: numbers come from ``whole``, and patterns are ``Pattern``, or the reason is
listed.

``int("9" * 5000)`` is an error, ``"²".isdigit()`` is true, and ``re`` takes minutes for some texts.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.places import SENT_TO_HOSTS

ROOT = Path(__file__).parents[3]
ROOMS = (
    *(f"hostwright/{room}" for room in ("transport", "apply", "verify", "rebuild", "audit", "plan", "resources")),
    "roles",
)

OURS = "what it reads is the operator's, a stack's, or this machine's own"
MATCHED = "only what a pattern with bounded digits has matched"
BOUNDED = "its text is bounded (isascii, isdigit, length) where it stands"
STEPS = "one step a character: it begins at one place only, and nothing in it can be matched in two ways"

#: module → why it may use ``re``, ``int`` or ``float``
ALLOWED = {
    "hostwright/apply/notifying.py": "the operator's own command",
    "hostwright/audit/reports/html/commands.py": "names of the inventory, one bounded pattern",
    "hostwright/audit/reports/run/spans.py": "numbers of the record on this machine, which JSON has read",
    "hostwright/plan/roles/sitecheck.py": "places in the site's own files",
    **dict.fromkeys(
        (
            "hostwright/apply/delivery/sources/settings.py",
            "hostwright/apply/disturb/draining.py",
            "hostwright/apply/host/scheduling/pastruns.py",  # the record on this machine
            "hostwright/apply/journal/reading.py",
            "hostwright/apply/journal/records.py",
            "hostwright/apply/journal/results.py",
            "hostwright/apply/journal/runs.py",
            "hostwright/apply/journal/writing.py",
            "hostwright/apply/rollout/limits.py",
            "hostwright/audit/failures/document.py",
            "hostwright/audit/found/reading.py",  # the time limit of a search
            "hostwright/audit/history/comparing.py",
            "hostwright/audit/history/schema.py",
            "hostwright/audit/history/store.py",
            "hostwright/audit/history/writing.py",
            "hostwright/audit/reports/prometheus.py",
            "hostwright/plan/probing/questions.py",  # paths that are probed
            "hostwright/plan/roles/auditvalue.py",
            "hostwright/plan/stacks/fits.py",  # names of stacks
            "hostwright/plan/state_identity.py",
            "hostwright/rebuild/bmc/settings.py",
            "hostwright/rebuild/install/seeds/escaping.py",
            "hostwright/rebuild/install/seeds/fields.py",
            "hostwright/rebuild/install/seeds/reading.py",
            "hostwright/rebuild/install/sources.py",
            "hostwright/resources/document.py",
            "hostwright/resources/packages/packages.py",
            "hostwright/resources/python/python.py",
            "hostwright/transport/identity/hostkeys.py",
            "hostwright/transport/identity/lines.py",
            "hostwright/transport/routing/dialing.py",
            "hostwright/transport/routing/openssh.py",
            "hostwright/transport/routing/sshconfig.py",
            "hostwright/transport/routing/stanzas.py",
            "hostwright/transport/routing/sshconfig.py",
            "roles/cuda/__init__.py",
            "roles/cudnn/section.py",
            "roles/driver/modules.py",  # the driver of a stack
            "roles/driver/rules.py",
            "roles/container/images/loaded.py",
            "roles/serving/models/directory.py",  # the operator's model
            "roles/container/images/scanning.py",  # a size, already a number
            "roles/proxy/__init__.py",  # names of people in the inventory
            "roles/registry/__init__.py",
            "roles/workspaces/declared/forms.py",
            "roles/workspaces/declared/gpus.py",
            "roles/workspaces/declared/promises.py",
            "roles/workspaces/declared/zones.py",
            "roles/workspaces/export/kubernetes.py",
            "roles/workspaces/proofs/__init__.py",  # the names of images in the operator's inventory
            "roles/workspaces/states/arguments.py",  # the first line of an operator's script
            "roles/workspaces/states/cards.py",
            "roles/workspaces/verbs/changing.py",
            "roles/workspaces/verbs/edit.py",
            "roles/workspaces/verbs/giventext.py",  # mistakes in the operator's own files
            "roles/workspaces/verbs/rebuilding.py",
        ),
        OURS,
    ),
    **dict.fromkeys(
        (
            "hostwright/apply/delivery/sources/servers.py",
            "hostwright/audit/failures/logs.py",
            "roles/base/failures/apt.py",
            "roles/container/engines.py",
            "roles/container/failures/access.py",
            "roles/driver/failures/build.py",
            "roles/driver/failures/cards/lost.py",
            "roles/driver/failures/cards/xids.py",
            "roles/driver/failures/kernel.py",
            "roles/driver/failures/load.py",
            "roles/driver/failures/state.py",
            "roles/driver/xids/events.py",
            "roles/driver/xids/recovery.py",
            "roles/driver/states/device_files.py",
            "roles/environment/failures/variables.py",
            "hostwright/audit/history/store.py",
            "roles/driver/states/modprobe/__init__.py",
        ),
        MATCHED,
    ),
    **dict.fromkeys(
        (
            "hostwright/apply/executors/cluster/reporting.py",
            "hostwright/audit/failures/units.py",
            "roles/base/failures/disks.py",
            "roles/base/failures/host.py",
            "roles/base/failures/trust/__init__.py",
            "roles/cuda/failures/sources.py",
            "roles/cuda/failures/toolkits.py",
            "hostwright/transport/identity/negotiating.py",  # four bytes of a message
            "hostwright/transport/root/packing.py",  # three digits
            "roles/cuda/proofs/frameworks.py",  # ten characters
            "hostwright/resources/system/bootloader.py",
        ),
        BOUNDED,
    ),
    **dict.fromkeys(
        (
            "hostwright/apply/disturb/hooks.py",
            "hostwright/apply/disturb/rebooting.py",
            "hostwright/apply/jobs/jobs.py",
            "hostwright/apply/jobs/scripting.py",
            "hostwright/apply/journal/redaction.py",
            "hostwright/apply/locking/runlock.py",
            "hostwright/audit/readings/answers.py",
            "hostwright/audit/reports/html/matrix.py",
            "hostwright/audit/reports/html/text.py",
            "hostwright/plan/host/hostfacts.py",
            "hostwright/plan/host/jobs.py",
            "hostwright/plan/host/locks.py",
            "hostwright/plan/host/release.py",
            "hostwright/plan/planning.py",
            "hostwright/plan/probing/__init__.py",
            "hostwright/rebuild/bmc/controller.py",
            "hostwright/rebuild/bmc/trust.py",
            "hostwright/resources/files/archives_gone.py",
            "hostwright/resources/packages/sources_gone.py",
            "hostwright/resources/python/interpreters.py",
            "hostwright/resources/system/room.py",
            "hostwright/transport/frame.py",
            "hostwright/transport/identity/certificates.py",
            "hostwright/transport/root/become.py",
            "roles/driver/nvsmi/fields.py",
            "roles/driver/nvsmi/gpu.py",
            "roles/driver/nvsmi/report.py",
            "roles/driver/nvsmi/report.py",
            "roles/driver/xids/kernellog.py",
            "roles/workspaces/verbs/queries.py",
        ),
        STEPS,
    ),
}


def uses(source: str) -> Iterator[str]:
    """Return what a module uses of ``re``, ``int`` and ``float``, except on constants and comparisons."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names) if any(name.name == "re" for name in names):
                yield "re"
            case ast.Call(func=ast.Name(id="int" | "float" as name), args=[argument, *_]):
                if not isinstance(argument, ast.Constant | ast.Compare | ast.BoolOp):
                    yield name


def modules() -> Iterator[tuple[str, str]]:
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            if path.match(SENT_TO_HOSTS):
                continue  # there it reads output of that host itself
            yield str(path.relative_to(ROOT)), path.read_text()


def test_numbers_and_patterns_of_hosts_are_bounded_or_it_is_said_why_they_need_not_be() -> None:
    using = {name: sorted(found) for name, source in modules() if (found := set(uses(source)))}
    new = {name: found for name, found in using.items() if name not in ALLOWED}
    assert not new, "take `whole` and `Pattern` of hostwright.common.untrusted"
    here = {name for name in ALLOWED if not name.startswith("roles/") or (ROOT / "roles" / name.split("/")[1]).is_dir()}
    assert not here - using.keys(), "these need no leave any more"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import re", ["re"]),
        ("int(row[1])", ["int"]),
        ("float(text)", ["float"]),
        ("int('9')\nfloat(a == b)\nPattern('x')", []),
    ],
)
def test_it_is_seen(source: str, found: list[str]) -> None:
    assert list(uses(source)) == found

"""Several operators with one state directory: two users of this machine in a common group, and one outside it."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.places import PROJECT

ANN, BOB, EVE = 61001, 61002, 61003  #: user ids without an account on this machine; each is also a group id
TEAM = 61100

#: Records a run that stopped before its second host, a rebuild's time, the facts of a host and a lock.
WORKS = """\
import os, sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from hostwright.apply import events
from hostwright.apply.journal.header import RunHeader
from hostwright.apply.journal.writing import Journal
from hostwright.apply.locking import locallocks
from hostwright.audit.history.facts import FactStore
from hostwright.apply.journal.redaction import Redactor
from hostwright.common.places import state_root
from hostwright.plan.host.locks import OperatorLock
from hostwright.plan.model import Facts
from hostwright.rebuild.rebuild import Rebuild
from hostwright.rebuild.records import Records
os.umask(0o077)
who, inventory = sys.argv[1], Path(sys.argv[2])
header = RunHeader.now("provision", ["gpu01", "gpu02"], inventory, {}, site=inventory.parent)
with Journal.begin(state_root(), header, secrets=(), on_trouble=sys.exit) as journal:
    journal(events.HostEnded("gpu01", "failed", "disk full"))
    journal(events.HostEnded("gpu02", "untouched", "a canary failed: gpu01"))
    journal.end(1)
now = datetime.now(UTC)
Records(state_root(), inventory).add(Rebuild("gpu01", header.run, now, who, ("repair",), "rebuilt"))
FactStore(state_root()).keep(inventory, "gpu01", now, Facts({}), Redactor(()))
lock = OperatorLock(who, "RMA", "gpu02", now, now + timedelta(hours=1))
locallocks.put(state_root(), inventory, lock, now=now, force=True)
print(len(Records(state_root(), inventory).all()), journal.header.run)
"""


#: Runs a command as another user, in a mount namespace where all users can read this Python and this project.
AS_USER = r"""
set -eu
user=$1 groups=$2 kept=$3 python=$4 project=$5
shift 5
mkdir -p "$kept/python" "$kept/project"
mount --bind "$python" "$kept/python"
mount --bind "$project" "$kept/project"
mount -t tmpfs -o mode=755 tmpfs /root
mkdir -p "$python" "$project"
mount --bind "$kept/python" "$python"
mount --bind "$kept/project" "$project"
exec setpriv --reuid "$user" --regid "$user" $groups "$@"
"""


@pytest.fixture
def team() -> Iterator[Path]:
    """A folder with a clone of one site per operator, and a state directory for the team."""
    tmp_path = Path(tempfile.mkdtemp())  # only root can read pytest's folders
    tmp_path.chmod(0o755)
    state = tmp_path / "state"
    state.mkdir()
    os.chown(state, 0, TEAM)
    state.chmod(0o2770)
    for user in (ANN, BOB, EVE):
        clone = tmp_path / str(user)
        (clone / "inventory").mkdir(parents=True)
        (clone / "tasks.py").write_text("from hostwright.cli.tasks import namespace\n")
        (clone / "inventory/hosts.yml").write_text("all: {hosts: {gpu01: {}, gpu02: {}}}\n")
        (clone / "hostwright.toml").write_text(f'[site]\nstate = "{state}"\n')
        for place in (clone, *clone.rglob("*")):
            os.chown(place, user, user)
    yield tmp_path
    shutil.rmtree(tmp_path)


def as_user(team: Path, user: int, *words: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ["PATH"], "HOME": str(team / str(user)), "PYTHONPATH": str(PROJECT)}
    env |= {"HOSTWRIGHT_STATE": str(team / "state")} if words[0] == "-c" else {}
    groups = "--clear-groups" if user == EVE else f"--groups={TEAM}"
    places = (str(team / "kept"), sys.base_prefix, str(PROJECT))
    namespace = ("unshare", "--mount", "sh", "-c", AS_USER, "sh", str(user), groups, *places)
    return subprocess.run(
        [*namespace, sys.executable, *words],
        cwd=team / str(user), env=env, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


def works(team: Path, user: int) -> tuple[int, str]:
    """Record a run as this user; return the number of recorded rebuilds and the run's id."""
    done = as_user(team, user, "-c", WORKS, str(user), str(team / str(user) / "inventory"))
    assert done.returncode == 0, done.stderr
    number, run = done.stdout.split()
    return int(number), run


def test_operators_share_runs_sets_locks_and_histories(team: Path) -> None:
    assert works(team, ANN)[0] == 1
    number, run = works(team, BOB)
    assert number == 2, "both write one file"
    assert works(team, ANN)[0] == 3
    for place in (team / "state").rglob("*"):
        wanted = 0o2770 if place.is_dir() else 0o660
        assert (stat.S_IMODE(place.stat().st_mode), place.stat().st_gid) == (wanted, TEAM), place

    listed = as_user(team, ANN, "-m", "hostwright", "runs", "--json")
    assert len(json.loads(listed.stdout)["runs"]) == 3, listed.stderr
    for words in (("hosts", "--hosts", f"@failed:{run}"), ("hosts", "--hosts", "@failed")):
        chosen = as_user(team, ANN, "-m", "hostwright", *words, "--json")
        assert [host["host"] for host in json.loads(chosen.stdout)["hosts"]] == ["gpu01"], chosen.stderr
    resumed = as_user(team, ANN, "-m", "hostwright", "provision", "--resume", run)
    assert f"resuming {run}: gpu01, gpu02" in resumed.stderr, "one operator continues what the other began"
    assert "gpu02: set aside on this machine, locked by 61001" in resumed.stderr


def test_who_is_not_in_the_group_reads_and_writes_nothing(team: Path) -> None:
    works(team, ANN)
    listed = as_user(team, EVE, "-m", "hostwright", "runs", "--json")
    assert json.loads(listed.stdout or '{"runs": []}')["runs"] == []
    refused = as_user(team, EVE, "-c", WORKS, "eve", str(team / str(EVE) / "inventory"))
    assert refused.returncode != 0
    assert "Permission denied" in refused.stderr

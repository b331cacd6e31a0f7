"""Record what the driver's programs and Hostwright print on a machine with a GPU: ``make gpu``.

Needs Python 3.10 alone; Hostwright's commands need Python 3.11, and the wheels of ``make gpu-kit`` or an environment
that has them. Each step stands alone and has a time limit. No setting of the machine is changed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import IO

TREE = Path(__file__).resolve().parents[2]
LIMIT_S = 560.0  #: of all steps: ten minutes, less what ending and packing take
QUERY_S, VERB_S, PROOF_S = 30.0, 90.0, 70  #: of one query, one command of Hostwright, one proof
MOST_BYTES = 8 * 1024**2  #: our choice, of what one step prints
SMI, CSV = "nvidia-smi", "--format=csv,noheader"
#: by the name of the file; the first one names the serial numbers
QUERIES = {
    f"{SMI}-q-x.xml": f"{SMI} -q -x",
    f"{SMI}-q.txt": f"{SMI} -q",
    f"{SMI}.txt": SMI,
    f"{SMI}-L.txt": f"{SMI} -L",
    f"{SMI}-topo.txt": f"{SMI} topo -m",
    f"{SMI}-nvlink.txt": f"{SMI} nvlink --status",
    f"{SMI}-mig.txt": f"{SMI} mig -lgi",
    f"{SMI}-temperature.txt": f"{SMI} -q -d TEMPERATURE",
    f"{SMI}-bus.csv": f"{SMI} --query-gpu=pci.bus_id,uuid {CSV}",
    f"{SMI}-used.csv": f"{SMI} --query-gpu=uuid,utilization.gpu {CSV},nounits",
    f"{SMI}-apps.csv": f"{SMI} --query-compute-apps=gpu_uuid,pid,process_name {CSV}",
    f"{SMI}-fields.txt": f"{SMI} --help-query-gpu",
    "nvml.txt": f"'{sys.executable}' -u -m tests.gpu.nvml",
    "proc.txt": "grep -rs '' /proc/driver/nvidia /proc/driver/nvidia-caps",
    "modules.txt": "grep -E '^(nvidia|nouveau)' /proc/modules; /sbin/modinfo nvidia",
    "libraries.txt": "/sbin/ldconfig -p | grep -E 'libcuda|libnvidia|libcudnn|libnccl'",
    "bus.txt": "cd /sys/bus/pci/devices && for card in $(grep -l 0x10de */vendor); do card=${card%vendor}; "
    "grep -s '' ${card}uevent ${card}numa_node ${card}*_link_*; done",
    "devices.txt": "ls -l /dev/nvidia*; grep nvidia /proc/mounts",
    "kernel-log.txt": "dmesg | grep -iE 'nvrm|nvidia|nouveau'",
    "machine.txt": "uname -srm; cat /etc/os-release; id -u; nproc; grep MemTotal /proc/meminfo; df -h / /tmp; "
    "command -v systemctl sudo docker gcc g++ nvcc",
    "python.txt": "env -u PYTHONPATH python3 -c 'import sys, torch; print(sys.executable)'",
    "torch.txt": "env -u PYTHONPATH python3 -m torch.utils.collect_env",
}
#: on the hosts of tests/gpu/site: `machine` is to have a stack of today, `as_it_is` is proved
VERBS = {
    "hostwright-plan.txt": ("plan", "machine"),
    "hostwright-audit.txt": ("audit", "machine", "--details"),
    "hostwright-audit.json": ("audit", "machine", "--offline", "--json"),
    "hostwright-doctor.txt": ("doctor", "machine"),
    "hostwright-stacks.txt": ("stacks", "--hosts", "machine"),
    "hostwright-prove.json": ("prove", "as_it_is", "--json"),
    "hostwright-prove.txt": ("runs.show",),
}
ENDED = (0, 1, 3)  #: the exit statuses of a command of Hostwright that did its work
#: what Hostwright makes on a host on which it runs proofs: a folder for each job, and a file
JOBS = ("/var/lib/hostwright/jobs", *(f"{place}/hostwright/work" for place in ("/var/lib", "/opt", "/usr/local/lib")))
MADE = tuple(map(Path, (*JOBS, "/run/hostwright/run.lock")))
UUID = re.compile(r"(?i)\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
SERIAL = re.compile(r"(?i)(?:serial|pdi)[a-z_ ]*\W{1,60}?((?=\w*\d)\w{5,40})")


class Outcome:
    """The folder with what each step printed, the steps of its manifest, and made-up identifiers by the real ones."""

    def __init__(self, folder: Path):
        self.folder, self.rows, host = folder, list[dict[str, object]](), socket.gethostname()
        self.made_up = {host: "machine"} if re.search(r"[\d-]", host) else {}  # others may be words: "debian"
        self.deadline = time.monotonic() + LIMIT_S
        folder.mkdir(parents=True)

    def run(self, file: str, words: Sequence[str], limit_s: float, env: Mapping[str, str] | None = None) -> None:
        """Run a step within its limit, and keep what it printed and how it ended. Never raises."""
        began, status, note = time.monotonic(), None, ""
        limit_s = min(limit_s, self.deadline - began)
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            try:
                if limit_s < 1:
                    raise OSError("no time is left")
                process = subprocess.Popen(
                    words, cwd=TREE, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
                )
                status = process.wait(limit_s)
            except subprocess.TimeoutExpired:
                note = f"cut off after {limit_s:.0f} s"
                _end(process)
            except OSError as error:
                note = f"cannot be started: {error}"
            printed, errors = _text(out), _text(err)
        if file.startswith((SMI, "nvml", "proc")):
            for value in SERIAL.findall(printed):
                self.made_up.setdefault(value, f"{len(self.made_up) + 1:0{len(value)}}")
        self.keep(file, printed)
        if errors:
            self.keep(f"{file}.stderr", errors)
        took_s = round(time.monotonic() - began, 2)
        self.rows.append({"file": file, "command": list(words), "status": status, "took_s": took_s, "note": note})
        print(f"{took_s:6.1f} s  {'' if status is None else status:>3}  {file}  {note}", flush=True)

    def keep(self, file: str, text: str) -> None:
        """Write a text into the folder, with made-up identifiers."""
        for value in UUID.findall(text):
            if value.strip("0-"):  # a cluster of cards that there is not
                self.made_up.setdefault(value, f"00000000-0000-4000-8000-{len(self.made_up) + 1:012}")
        for value, instead in self.made_up.items():
            text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", instead, text)
        (self.folder / file).write_text(text, "utf-8")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Stop a step as Ctrl-C does, then kill it. One that the kernel does not let go is left behind."""
    for name, wait_s in ((signal.SIGINT, 5.0), (signal.SIGKILL, 1.0)):
        with suppress(ProcessLookupError, subprocess.TimeoutExpired):
            os.killpg(process.pid, name)
            process.wait(wait_s)


def _text(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read(MOST_BYTES).decode("utf-8", "backslashreplace")


def unpack(kit: Path, site: Path) -> None:
    """Unpack the wheels that suit this Python."""
    for wheel in sorted(kit.glob("*.whl")):
        python, abi = wheel.stem.split("-")[-3:-1]
        minor = sys.version_info[1]
        if abi in {"none", f"cp3{minor}"} or (abi == "abi3" and int(python.removeprefix("cp3")) <= minor):
            zipfile.ZipFile(wheel).extractall(site)


def query(outcome: Outcome, env: Mapping[str, str]) -> tuple[list[str], str]:
    """Run the queries. Returns the models of the cards, and the driver's version."""
    for file, command in QUERIES.items():
        outcome.run(file, ("sh", "-c", command), QUERY_S, env)
    report = (outcome.folder / f"{SMI}-q-x.xml").read_text("utf-8")
    driver = re.search(r"<driver_version>([^<]*)<", report)
    return re.findall(r"<product_name>([^<]*)<", report), driver[1] if driver else ""


def hostwright(outcome: Outcome, env: Mapping[str, str]) -> None:
    """Run Hostwright's commands on this machine, and keep the facts that they read."""
    nvcc = Path(shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc")
    toolkit = nvcc.resolve().parents[1] if nvcc.is_file() else ""
    python = (outcome.folder / "python.txt").read_text("utf-8").strip()
    there = {"toolkit": toolkit, "python": python, "limit_s": PROOF_S}
    proving = [word for name, value in there.items() for word in ("--var", f"borrowed_{name}={value}")]
    asked = subprocess.run(("sh", "-c", '[ "$(id -u)" = 0 ] || sudo -n true'), capture_output=True, check=False)
    rootless = ("--no-sudo",) if asked.returncode else ()
    further = {"prove": proving, "audit": rootless, "doctor": rootless}
    for file, words in VERBS.items():
        command = (sys.executable, "-m", "tests.gpu.verb", *words, *further.get(words[0], ()))
        outcome.run(file, command, LIMIT_S if words[0] == "prove" else VERB_S, env)
    for path in Path(env["HOSTWRIGHT_STATE"]).glob("**/facts/*.json.gz"):
        outcome.keep(f"facts-{path.stem}", gzip.decompress(path.read_bytes()).decode())


@contextmanager
def nothing_left(state: Path) -> Iterator[None]:
    """End what still runs of the jobs of Hostwright's runs, and remove what they made on this machine."""
    made = [path for place in MADE for path in (place, place.parent) if not path.exists()]
    try:
        yield
    finally:
        for run in (state / "runs").glob("*"):
            for process in Path("/proc").glob("[0-9]*"):
                with suppress(OSError):
                    if f"\0JOB={JOBS[0]}/{run.name}-".encode() in b"\0" + (process / "environ").read_bytes():
                        os.kill(int(process.name), signal.SIGKILL)
            for job in (job for place in MADE for job in place.glob(f"{run.name}-*")):
                shutil.rmtree(job, ignore_errors=True)
        for path in made:
            with suppress(OSError):  # somebody else's is in it
                path.rmdir() if path.is_dir() else path.unlink()


def main() -> int:
    """Run all steps, and pack the folder. Returns 0, or 1 if a step was cut off or a command of Hostwright failed."""
    parser = argparse.ArgumentParser(prog="python3 -m tests.gpu", description=str(__doc__).partition("\n")[0])
    parser.add_argument("--kit", type=Path, default=TREE / "build/gpu-kit", help="the folder of wheels (make gpu-kit)")
    parser.add_argument("--out", type=Path, default=TREE / "build/gpu", help="where the folder of this run is made")
    chosen, now = parser.parse_args(), datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ")  # noqa: UP017 - Python 3.10
    outcome = Outcome(chosen.out.resolve() / now)
    with tempfile.TemporaryDirectory(prefix="gpu-") as temporary, nothing_left(Path(temporary, "state")):
        unpack(chosen.kit, Path(temporary, "site"))
        env = {
            **os.environ, "HOME": temporary, "TMPDIR": temporary, "LC_ALL": "C.UTF-8", "COLUMNS": "120",
            "PYTHONPATH": os.pathsep.join((str(TREE), f"{temporary}/site")),
            "HOSTWRIGHT_STATE": f"{temporary}/state", "HOSTWRIGHT_SITE": str(TREE / "tests/gpu/site"),
        }  # fmt: skip
        cards, driver = query(outcome, env)
        hostwright(outcome, env)
    result = f"{', '.join(cards)} with driver {driver}" if cards else "no GPU"
    manifest = {"date": now, "outcome": result, "driver": driver, "cards": cards, "steps": outcome.rows}
    manifest["made up"] = sorted(outcome.made_up.values())
    (outcome.folder / "manifest.json").write_text(json.dumps(manifest, indent=1), "utf-8")
    packed = shutil.make_archive(str(outcome.folder), "gztar", outcome.folder.parent, now)
    if os.environ.get("OUT"):
        shutil.copy(packed, os.environ["OUT"])
    print(f"{result}: {outcome.folder}, packed as {packed}")
    return int(
        any(row["note"] or ("hostwright" in str(row["file"]) and row["status"] not in ENDED) for row in outcome.rows)
    )


if __name__ == "__main__":
    sys.exit(main())

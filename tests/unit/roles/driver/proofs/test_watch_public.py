"""Temperatures of other people's cards, as the watch of proofs reads them.

Each case is named after the place where it was published, and holds only the lines that are read, with identifiers of
our own.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from hostwright.standard.roles.driver.proofs import WATCH
from tests.unit.roles.driver.proofs.diagnosing import command


def temperatures(bus: str, **values: str) -> str:
    """What `nvidia-smi -q -d TEMPERATURE` prints of a card."""
    rows = "".join(f"        {name.replace('_', ' '):<34}: {value}\n" for name, value in values.items())
    return f"GPU {bus}\n    Temperature\n{rows}\n"


@pytest.mark.parametrize(
    ("rows", "report", "lines"),
    [
        pytest.param(
            "00000000:01:00.0, GPU-1\n",
            temperatures(
                "00000000:01:00.0", GPU_Current_Temp="41 C", GPU_Shutdown_Temp="N/A", GPU_Slowdown_Temp="N/A"
            ),
            ["GPU-1\t41\t85"],
            id="NVIDIA/nvidia-docker#206",
        ),
        pytest.param(
            "00000000:61:00.0, GPU-1\n",
            temperatures(
                "00000000:61:00.0", GPU_Current_Temp="24 C", **{"GPU_T.Limit_Temp": "68 C"},
                **{"GPU_Shutdown_T.Limit_Temp": "-5 C", "GPU_Slowdown_T.Limit_Temp": "-2 C"},
                **{"GPU_Max_Operating_T.Limit_Temp": "0 C", "Memory_Current_Temp": "N/A"},
            ),
            ["GPU-1\t24\t87"],
            id="influxdata/telegraf pro-6000-maxq-blackwell-v13.xml",
        ),
        pytest.param(
            "00000000:01:00.0, GPU-1\n",
            temperatures(
                "00000000:01:00.0", GPU_Current_Temp="15 C", **{"GPU_T.Limit_Temp": "N/A"},
                GPU_Shutdown_Temp="100 C", GPU_Slowdown_Temp="97 C", GPU_Max_Operating_Temp="88 C",
                GPU_Target_Temperature="83 C",
            ),
            ["GPU-1\t15\t92"],
            id="influxdata/telegraf dual_2080-v13.xml",
        ),
        pytest.param(
            "0000000F:01:00.0, GPU-1\n",
            temperatures("0000000F:01:00.0", GPU_Current_Temp="36 C"),
            ["GPU-1\t36\t85"],
            id="snowflakedb/ArcticTraining#345",
        ),
        pytest.param(
            "00000000:00:16.0, GPU-1\n00000000:00:17.0, GPU-2\n",
            temperatures(
                "00000000:00:16.0", GPU_Current_Temp="Unknown Error", GPU_Slowdown_Temp="Unknown Error"
            )
            + temperatures("00000000:00:17.0", GPU_Current_Temp="33 C", GPU_Slowdown_Temp="95 C"),
            ["GPU-2\t33\t90"],
            id="NVIDIA/dcgm-exporter#319",
        ),
        pytest.param(
            "00000000:3B:00.0, GPU-1\nWARNING: infoROM is corrupted at gpu 0000:3B:00.0\n",
            temperatures("00000000:3B:00.0", GPU_Current_Temp="46 C", GPU_Slowdown_Temp="93 C")
            + "WARNING: infoROM is corrupted at gpu 0000:3B:00.0\n",
            ["GPU-1\t46\t88"],
            id="microsoft/pai#3756",
        ),
    ],
)  # fmt: skip
def test_the_watch_reads_every_generations_temperatures(
    tmp_path: Path, rows: str, report: str, lines: list[str]
) -> None:
    (tmp_path / "rows").write_text(rows)
    (tmp_path / "report").write_text(f"\n==============NVSMI LOG==============\n\n{report}")
    told = f'case $1 in -q) cat "{tmp_path}/report" ;; *) cat "{tmp_path}/rows" ;; esac'
    command(tmp_path, "nvidia-smi", f"{told}\nexit 14")
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["sh", "-c", WATCH.script], env=environment, stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout.splitlines() == lines

"""Draw charts as SVG: ``python draw.py FOLDER``, with a JSON list of ``{"file": …, **chart}`` on standard input.

Runs in an environment with Matplotlib. Equal charts give equal bytes.
"""

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams |= {
    "svg.hashsalt": "hostwright",  # a fixed salt keeps the ids in the SVG files unchanged between runs
    "svg.fonttype": "none",  # "none" keeps text as text instead of converting the text to paths
    "font.family": "sans-serif",
    "font.size": 9,
}
from matplotlib import pyplot as plt  # noqa: E402 - the backend is chosen first
from matplotlib.ticker import NullFormatter, ScalarFormatter  # noqa: E402

#: height of a bar, space between groups of bars, and margin of the figure, in inches
BAR, GROUP_GAP, MARGIN = 0.24, 0.35, 1.0
WIDTH = 7.5
LOGARITHMIC = 30  #: ratio of the longest to the shortest bar above which the axis is logarithmic


def draw(chart: dict[str, Any], path: Path) -> None:
    """Draw horizontal bars in groups, each with a line from minimum to maximum, to the file ``path``."""
    rows = sum(len(group["bars"]) for group in chart["groups"])
    height = MARGIN + rows * BAR + len(chart["groups"]) * GROUP_GAP
    figure, axes = plt.subplots(figsize=(WIDTH, height), layout="constrained")
    colours = {name: f"C{index}" for index, name in enumerate(chart["order"])}
    place, ticks, labels = 0.0, [], []
    for group in chart["groups"]:
        place += GROUP_GAP / BAR
        axes.text(
            0, place - 0.62, f" {group['name']}", transform=axes.get_yaxis_transform(), weight="bold", va="center"
        )
        for bar in group["bars"]:
            least, most = bar["median"] - bar["least"], bar["most"] - bar["median"]
            axes.barh(place, bar["median"], 0.8, color=colours[bar["contender"]], xerr=[[least], [most]], ecolor="#555")
            axes.annotate(f" {bar['median']:.3g} s", (bar["most"], place), va="center", fontsize=8)
            ticks.append(place)
            labels.append(bar["contender"])
            place += 1
    axes.set_yticks(ticks, labels)
    axes.invert_yaxis()
    if widest(chart) > LOGARITHMIC:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(ScalarFormatter())
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("wall, seconds (median; the line is from least to most)")
    axes.margins(x=0.15)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(
        path, metadata={"Title": chart["title"], "Description": f"drawn from {chart['digest']}", "Date": None}
    )
    plt.close(figure)


def widest(chart: dict[str, Any]) -> float:
    """Return the ratio of the longest to the shortest bar."""
    medians = [bar["median"] for group in chart["groups"] for bar in group["bars"]]
    return float(max(medians) / min(medians))


def main() -> None:
    """Read charts from standard input, and draw each to a file in the folder of the command line."""
    folder = Path(sys.argv[1])
    for chart in json.load(sys.stdin):
        draw(chart, folder / chart["file"])


if __name__ == "__main__":
    main()

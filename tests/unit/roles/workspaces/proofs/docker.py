"""Test support: a program ``docker`` with directories as containers, which runs their programs on this machine."""

from __future__ import annotations

from pathlib import Path

from tests.unit.support.shell import program

#: A container's directory is its /tmp; ``pid`` is its first process, from which a proof's mark is removed, because
#: Docker's daemon passes on only the given variables.
DOCKER = r"""
echo "$*" >>"$FAKE/calls"
case $1 in
  image)
    [ -e "$FAKE/image" ] || { echo "Error: No such image: $5" >&2; exit 1; }
    echo sha256:0123 ;;
  create)
    mkdir "$FAKE/c1"
    mark=
    while [ "$1" != sha256:0123 ]; do
      [ "$1" != HOSTWRIGHT_PROOF ] || mark=$HOSTWRIGHT_PROOF
      shift
    done
    shift
    echo "$mark" >"$FAKE/c1.mark"
    printf '%s\n' "$@" | sed "s|/tmp/|$FAKE/c1/|" >"$FAKE/c1.words"
    echo c1 ;;
  cp) cp "$2" "$FAKE/c1/${3#c1:/tmp/}" ;;
  start)
    cd "$FAKE/c1" || exit 1
    env -u HOSTWRIGHT_PROOF setsid sh -c '
      mark=$(cat "$0.mark"); [ -z "$mark" ] || export HOSTWRIGHT_PROOF="$mark"
      echo $$ >"$0.pid"; exec timeout $(cat "$0.words")' "$FAKE/c1"
    status=$?
    rm -rf "$FAKE/c1"
    exit "$status" ;;
  ps) [ ! -d "$FAKE/c1" ] || echo c1 ;;
  rm)
    [ ! -s "$FAKE/c1.pid" ] || kill -s KILL -- "-$(cat "$FAKE/c1.pid")" 2>/dev/null
    rm -rf "$FAKE/c1" ;;
esac
"""


def docker(folder: Path, *, image: bool = True) -> Path:
    """Return the directory with the program, and optionally its image; its file ``calls`` has the commands."""
    made = program(folder, "docker", f"FAKE={folder}\n{DOCKER}")
    if image:
        (folder / "image").touch()
    return made.parent


def calls(folder: Path) -> list[str]:
    """Return the commands, one per line."""
    return (folder / "calls").read_text().splitlines()

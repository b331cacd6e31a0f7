#!/bin/sh
# Hostwright lab: lets Docker limit its containers on this host, and writes down whether it can.
# systemd-nspawn shows the machine's hierarchies of cgroup v1 read-only; those of v2 it hands over as they are.
# The note is one line: "in force: …", or "not in force: …" with what is missing.
set -eu
groups=/sys/fs/cgroup
note=/run/hostwright-lab/limits
wanted="cpu cpuset memory pids"

for place in "$groups"/*/; do
    place=${place%/}
    case ${place##*/} in systemd | unified) continue ;; esac
    # A link is another name of two controllers that are mounted together (cpu,cpuacct).
    if [ -e "$groups/cgroup.controllers" ] || [ -L "$place" ]; then continue; fi
    mount -o remount,bind,rw,nosuid,nodev,noexec "$place" || true # what stays read-only is told of below
done

missing=
for controller in $wanted; do
    if [ -e "$groups/cgroup.controllers" ]; then
        grep -qw "$controller" "$groups/cgroup.controllers" || missing="$missing $controller"
    else
        [ -w "$groups/$controller/cgroup.procs" ] || missing="$missing $controller"
    fi
done

mkdir -p "${note%/*}"
if [ -n "$missing" ]; then
    echo "not in force: this machine gives its hosts no cgroup controller for$missing" >"$note"
elif [ -e "$groups/cgroup.controllers" ]; then
    echo "in force: cgroup v2" >"$note"
else
    echo "in force: cgroup v1" >"$note"
fi

"""Hosts with a past, as people have them: what was done to each before Hostwright came, and what is right for it.

What is right was written down before any verb was run on a host: what ``doctor`` must find and nothing else, what the
plan must name, and what the stack takes the place of. All else on the host is its user's, and is compared file by file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from lab.config import HostOptions
from lab.hardware import Hardware
from tests.lab.audit.by_hand import ARTICLE, Typed
from tests.lab.audit.test_article import LEFT, MENDED
from tests.lab.conftest import SMALL
from tests.lab.site.conftest import DRIVER
from tests.lab.strangers import EXPIRED
from tests.lab.trees import DISK, KERNEL_INDEX

#: What Docker writes of its own, once a container has run.
DOCKERS = r"/var/lib/containerd/.*|/var/lib/docker/(buildkit|image|volumes/metadata\.db).*"
NOTHING = r"(?!)"  #: matches no path
IPV6 = "fd48:5700:{slot:x}::{index:x}"  #: of a host; the prefix is ours (RFC 4193)

#: Files of a driver, a toolkit, cuDNN and the container toolkit that were there before: the stack's take their place.
STACK = (
    r"/usr/local/cuda.*|/usr/local/lib/libcudnn.*|/var/cuda-repo.*|/etc/alternatives/.*(cuda|nvidia|gl).*|"
    r"/etc/apt/(sources\.list\.d|preferences\.d)/(cuda|nvidia).*|/usr/share/keyrings/.*|/etc/apt/trusted\.gpg.*|"
    r"/.*(nvidia|NVIDIA|cuda|Xorg|glvnd|egl|EGL|vulkan|OpenCL|dkms|modules).*|"
    r"/usr/(lib|share)/(.*/)?(mesa-diverted|glx|X11)[^/]*(/.*)?|/usr/lib/(x86_64-linux-gnu|xorg).*|"
    r"/etc/ld\.so\.(cache|conf\.d/.*)|/boot/initrd.*|/var/lib/hostwright/.*"
)


@dataclass(frozen=True)
class Past:
    """A host, how it became what it is, and what is right for it.

    Attributes:
        host: its name.
        script: shell that the console's root runs on the bare host.
        typed: lines that its login user types afterwards, as an article says.
        finds: the rules of the failures and warnings that ``doctor`` finds, before anything is changed.
        keeps: those of them whose cure is the user's: ``provision`` leaves them.
        says: what the plan of ``provision`` must say, in these words.
        taken: an expression for paths that the stack takes the place of; all others must be as before in the end.
        ipv6: whether the inventory has an IPv6 address of it.
        options: what the lab makes it of.
    """

    host: str
    script: str = ""
    typed: tuple[Typed, ...] = ()
    finds: frozenset[str] = frozenset()
    keeps: frozenset[str] = frozenset()
    says: tuple[str, ...] = ()
    taken: str = NOTHING
    ipv6: bool = False
    options: HostOptions = field(default=SMALL)

    def is_taken(self, line: str) -> bool:
        """Whether a difference is one of what the stack took the place of."""
        if line.startswith("/"):
            return bool(re.fullmatch(self.taken, line.partition(": ")[0]))
        return self.taken != NOTHING and bool(re.search(r"nvidia|cuda|libcu|libnv|glvnd|glx|dkms|diversions", line))


#: What people have beside a stack: an account with a notebook and a start file, and data that not everybody may read.
PEOPLE = (
    DISK
    + KERNEL_INDEX
    + """
useradd -m -s /bin/bash ada
install -d -o ada -g ada -m 700 /home/ada/work
echo '{"cells": []}' >/home/ada/work/notebook.ipynb
echo 'alias ll="ls -l"' >>/home/ada/.bashrc
chown -R ada:ada /home/ada
mkdir -p /srv/data && echo 1,2,3 >/srv/data/train.csv && chmod 640 /srv/data/train.csv
"""
)

#: fish as login shell that greets, noexec directories, root's umask 077, a secure_path without sbin, German.
UNUSUAL = """
export DEBIAN_FRONTEND=noninteractive
apt-get -qq update >/dev/null
apt-get -qq install -y --no-install-recommends fish locales >/dev/null 2>&1
chsh -s /usr/bin/fish ops
install -d -o ops -g ops /home/ops/.config /home/ops/.config/fish
printf 'echo Welcome to fish\\nset -gx LC_ALL de_DE.UTF-8\\n' >/home/ops/.config/fish/config.fish
chown ops:ops /home/ops/.config/fish/config.fish
sed -i 's/^# de_DE.UTF-8/de_DE.UTF-8/' /etc/locale.gen
locale-gen >/dev/null
echo LANG=de_DE.UTF-8 >/etc/default/locale
for place in /tmp /var/tmp /home /run/user; do
  mkdir -p "$place"
  echo "$place $place none bind,noexec,nosuid,nodev 0 0" >>/etc/fstab
  mount --bind "$place" "$place" && mount -o remount,bind,noexec,nosuid,nodev "$place"
done
printf 'Defaults umask_override, umask=0077\\nDefaults secure_path="/usr/bin:/bin"\\n' >/etc/sudoers.d/strict
chmod 440 /etc/sudoers.d/strict
sed -i 's/^UMASK.*/UMASK 077/' /etc/login.defs
echo 'umask 077' >>/root/.bashrc
echo 'umask 077' >>/root/.profile
"""

PASTS = (
    Past(
        host="byhand01",
        script=PEOPLE,
        typed=ARTICLE,
        finds=frozenset({*MENDED, *LEFT}),
        keeps=frozenset(LEFT),
        taken=f"{STACK}|{DOCKERS}",
    ),
    Past(
        host="debian01",
        script=PEOPLE + DRIVER,
        finds=frozenset({"other-installer", "no-headers"}),  # the second was not foreseen: a module without headers
        says=("libnvidia-tesla-470-cuda1",),
        taken=STACK,
        options=HostOptions(profile="small", hardware=Hardware(loaded="470.256.02")),
    ),
    Past(
        host="apt01",
        script=PEOPLE + EXPIRED,
        finds=frozenset({"foreign-keyring"}),
        keeps=frozenset({"foreign-keyring"}),
    ),
    Past(
        host="fish01",
        script=PEOPLE + UNUSUAL,
        says=("config.fish",),
        ipv6=True,
    ),
)

"""Hosts with a past, as people have them: what was done to each before Hostwright came, and what is right for it.

What is right was written down before any verb was run on a host: what ``doctor`` must find and nothing else, what the
plan must name, and what the stack takes the place of. All else on the host is its user's, and is compared file by file.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lab.config import HostOptions
from lab.hardware import Hardware
from tests.lab.audit.by_hand import ARTICLE, Typed
from tests.lab.audit.by_hand import DRIVER as BY_HAND
from tests.lab.audit.test_article import LEFT, MENDED
from tests.lab.conftest import SMALL
from tests.lab.site.conftest import DRIVER
from tests.lab.strangers import EXPIRED
from tests.lab.trees import DISK, KERNEL_INDEX

#: What Docker writes of its own, once a container has run.
DOCKERS = r"/var/lib/containerd/.*|/var/lib/docker/(buildkit|image|volumes/metadata\.db).*"
NOTHING = r"(?!)"  #: matches no path
IPV6 = "fd48:5700:{slot:x}::{index:x}"  #: of a host; the prefix is ours (RFC 4193)

#: What follows from which driver is there: written anew by whoever changes it.
DERIVED = (
    r"/etc/ld\.so\.cache|/var/lib/hostwright(/.*)?|/boot/initrd\.img-[^/]*|/usr/lib/modules/[^/]*/modules\.[a-z.]*"
)


@dataclass(frozen=True)
class Past:
    """A host, how it became what it is, and what is right for it.

    Attributes:
        host: its name.
        script: shell that the console's root runs on the bare host.
        driver: how a driver came to it that the stack takes the place of: shell of root's, or lines among ``typed``.
        typed: lines that its login user types afterwards, as an article says.
        finds: the rules of the failures and warnings that ``doctor`` finds, before anything is changed.
        keeps: those of them whose cure is the user's: ``provision`` leaves them.
        says: what the plan of ``provision`` must say, in these words.
        goes: the packages of a driver that are gone in the end, beside those of ``driver``.
        back: whether all packages of the driver are there again in the end, since the host's own sources have them.
        taken: an expression for paths of others that need not be as before in the end.
        ipv6: whether the inventory has an IPv6 address of it.
        options: what the lab makes it of.
    """

    host: str
    script: str = ""
    driver: str | tuple[Typed, ...] = ()
    typed: tuple[Typed, ...] = ()
    finds: frozenset[str] = frozenset()
    keeps: frozenset[str] = frozenset()
    says: tuple[str, ...] = ()
    goes: frozenset[str] = frozenset()
    back: bool = False
    taken: str = NOTHING
    ipv6: bool = False
    options: HostOptions = field(default=SMALL)


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

#: What `cuda-11-2` brings beside the toolkit: a driver, what depends on it, and itself.
CUDAS_DRIVER = frozenset({
    "cuda-11-2", "cuda-demo-suite-11-2", "cuda-drivers", "cuda-drivers-460", "cuda-runtime-11-2",
    *(f"libnvidia-{part}-460" for part in ("cfg1", "common", "compute", "decode", "encode", "extra", "fbc1", "gl")),
    "libnvidia-ifr1-460",
    *(f"nvidia-{part}-460" for part in ("compute-utils", "dkms", "driver", "kernel-common", "kernel-source", "utils")),
    "xserver-xorg-video-nvidia-460",
})  # fmt: skip

PASTS = (
    Past(
        host="byhand01",
        script=PEOPLE,
        typed=ARTICLE,
        finds=frozenset({*MENDED, *LEFT}),
        keeps=frozenset(LEFT),
        driver=BY_HAND,
        goes=CUDAS_DRIVER,
        taken=DOCKERS,
    ),
    Past(
        host="debian01",
        script=PEOPLE,
        driver=DRIVER,
        finds=frozenset({"other-installer", "no-headers"}),  # the second was not foreseen: a module without headers
        says=("libnvidia-tesla-470-cuda1",),
        back=True,
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

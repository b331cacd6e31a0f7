"""Faults of a host's base: packages, apt and dpkg, kernel headers, nouveau, the release record."""

from __future__ import annotations

from tests.lab.audit.planting import plant
from tests.lab.strangers import EXPIRED_KEY

LISTS = "/etc/apt/sources.list.d"
UNATTENDED = "/etc/apt/apt.conf.d/52hostwright"
DEB = """
work=$(mktemp -d); mkdir "$work/DEBIAN"
printf '%s\\n' "Package: $name" "Version: $version" 'Architecture: all' 'Maintainer: Lab <lab@localhost>' \
'Description: planted' >"$work/DEBIAN/control"
"""

#: Installs a package whose configuration fails while a file exists.
HALF_CONFIGURED = f"""
name=planted version=1; {DEB}
printf '#!/bin/sh\\n[ ! -e /run/planted ]\\n' >"$work/DEBIAN/postinst"; chmod 755 "$work/DEBIAN/postinst"
dpkg-deb --build "$work" "$work.deb"; touch /run/planted
dpkg --install "$work.deb" || true  # it fails: that is the damage
"""

NO_INITRAMFS = f"""
mkdir -p /etc/initramfs-tools/conf.d; echo MODULES=dep >/etc/initramfs-tools/conf.d/planted
{HALF_CONFIGURED.replace("name=planted", "name=linux-image-6.99.0-planted")}"""

#: What is left where apt was to take a package of the toolkit's before 2023 away, and its own script does not let it.
NOT_REMOVED = f"""
name=nvidia-docker version=1.0.0; {DEB}
printf '#!/bin/sh\\necho Failed to remove volumes; exit 102\\n' >"$work/DEBIAN/prerm"; chmod 755 "$work/DEBIAN/prerm"
dpkg-deb --build "$work" "$work.deb"; dpkg --install "$work.deb"
apt-get remove -y nvidia-docker || true  # it fails: that is the damage
"""

#: Leftovers of DKMS's hook when another module does not build for a new kernel's headers.
OTHER_MODULE = f"""
tree=/var/lib/dkms/planted/2.4.1; mkdir -p "$tree/build" "$tree/source"; touch "$tree/source/dkms.conf"
echo 'DKMS make.log for planted-2.4.1 for kernel 6.99.0-planted (x86_64)' >"$tree/build/make.log"
name=linux-headers-6.99.0-planted version=1; {DEB}
printf '%s\n' '#!/bin/sh' 'set -e' 'echo "Autoinstall of module planted/2.4.1 for kernel 6.99.0-planted (x86_64)"' \
'echo "Running the pre_build script...(bad exit status: 1)"' \
'echo "Autoinstall on 6.99.0-planted failed for module(s) planted(1)."' 'exit 1' >"$work/DEBIAN/postinst"
chmod 755 "$work/DEBIAN/postinst"; dpkg-deb --build "$work" "$work.deb"
dpkg --install "$work.deb" || true  # planted to fail
"""

#: Leftovers of apt when it rejects a downloaded Release file.
RENAMED = """
cd /var/lib/apt/lists
for list in *_InRelease; do sed 's/^Label: .*/Label: planted/' "$list" >"partial/$list"; done
"""

#: Leftovers of apt after a file conflict between packages: a package that waits, and the log.
CONFLICT = f"""
name=planted-owner version=1; {DEB}
mkdir -p "$work/srv"; echo a >"$work/srv/planted"
dpkg-deb --build "$work" "$work.deb"; dpkg --install "$work.deb"
name=planted-waits version=1; {DEB}
echo 'Depends: planted-lib' >>"$work/DEBIAN/control"
dpkg-deb --build "$work" "$work.deb"; dpkg --unpack "$work.deb"
printf '%s\\n' 'Log started: 2026-11-20  10:00:00' \
'dpkg: error processing archive /var/cache/apt/archives/planted-lib_1_all.deb (--unpack):' \
" trying to overwrite '/srv/planted', which is also in package planted-owner 1" >>/var/log/apt/term.log
"""

OTHER_DRIVER = f"""
name=nvidia-driver-460 version=460.32.03-0ubuntu1; {DEB}
dpkg-deb --build "$work" "$work.deb"; dpkg --install "$work.deb"
"""

#: Enables unattended upgrades without the list of excluded packages.
UPGRADES = f"""
name=unattended-upgrades version=2.8; {DEB}
dpkg-deb --build "$work" "$work.deb"; dpkg --install "$work.deb"
printf '%s\\n' 'APT::Periodic::Update-Package-Lists "1";' 'APT::Periodic::Unattended-Upgrade "1";' \
>/etc/apt/apt.conf.d/20auto-upgrades
rm {UNATTENDED}
"""

#: A module of that name (a lab host's kernel has none), and no blacklist of it: neither the role's nor the installer's.
NOUVEAU = """
place="/lib/modules/$(uname -r)/kernel/drivers/gpu/drm/nouveau"; mkdir -p "$place"
echo 'int planted;' | gcc -xc -c -o "$place/nouveau.ko" -; depmod
rm /etc/modprobe.d/*nouveau.conf /usr/lib/modprobe.d/*nouveau.conf
"""

#: Makes the driver's module due for a build.
UNBUILT = 'k=$(uname -r); dkms remove nvidia/470.182.03 -k "$k"; dkms add nvidia/470.182.03 || true\n'
OTHER_KERNEL = "/lib/modules/6.99.0-planted /boot/vmlinuz-6.99.0-planted"

#: GRUB's menu with that kernel first and the running kernel second.
GRUB = """
{{ printf "%s\\n" 'set default="{default}"' "menuentry 'Debian' {{" "linux /boot/vmlinuz-6.99.0-planted ro" \\
"}}" "submenu 'more' {{" "menuentry 'a' {{" "linux /boot/vmlinuz-6.99.0-planted ro" "}}" "menuentry 'b' {{" \\
"linux /boot/vmlinuz-$(uname -r) ro {words}" "}}" "}}"; }} >/boot/grub/grub.cfg
"""

#: Holds a lock of apt's kind until the fix stops the unit.
#: Shifts the start of the host and of the process back by 25 minutes.
HOLDS_LOCK = """
systemd-run --unit=planted-holder python3 -c "
import fcntl, time
file = open('/var/lib/dpkg/lock-frontend', 'a')
fcntl.lockf(file, fcntl.LOCK_EX)
open('/run/planted', 'w')
time.sleep(3600)  # holds the lock until the host is taken down"
until [ -e /run/planted ]; do sleep 0.05; done
awk '{ print $1 + 1500, $2 }' /proc/uptime >/run/planted
mount --bind /run/planted /proc/uptime
"""

#: Another job of the base role, and a state that it would have brought.
JOB = f"""
cd /var/lib/hostwright/jobs; last=$(ls -1t | grep -e '-base-' | head -n 1)
cp -a "$last" "$last-planted"; cd "$last-planted"; touch .; rm {UNATTENDED}
"""
FAILED_JOB = f"{JOB}\necho 100 >status; echo 'E: Failed to fetch http://mirror.example/gcc.deb' >>log"
CUT_OFF_JOB = f"{JOB}\nrm status pid"

STOP = "gpgconf --homedir $home --kill all; rm -rf $home"

BASE = (
    plant(
        "a unit of somebody else's failed", "base",
        "printf '[Service]\\nType=oneshot\\nExecStart=/bin/sh -c \"echo no disk; exit 1\"\\n'"
        " >/etc/systemd/system/planted.service; systemctl daemon-reload; systemctl start planted || true",
        rules="other-unit-failed",
        cure="rm /etc/systemd/system/planted.service; systemctl daemon-reload; systemctl reset-failed planted",
        quick=True,
    ),
    plant(
        "fstab names a disk that is gone", "base",
        "echo 'UUID=0b1c2d3e-1111-2222-3333-444455556666 /planted ext4 defaults 0 2' >>/etc/fstab",
        rules="boot-needs-missing-disk", cure="sed -i '/planted/d' /etc/fstab", quick=True,
    ),
    plant(
        "a filesystem of fstab is not mounted", "base",
        "echo 'tmpfs /planted tmpfs size=1m 0 0' >>/etc/fstab",
        rules="filesystem-not-mounted", cure="sed -i '/planted/d' /etc/fstab", quick=True,
    ),
    plant(
        "what the next boot and login meet", "base",
        "systemctl set-default rescue.target; echo 'UsePAMM yes' >>/etc/ssh/sshd_config; systemctl disable ssh;"
        " echo '* hard nproc 64' >/etc/security/limits.d/planted.conf; printf '[Unit]\nAfter=multi-user.target\n"
        "Before=docker.service\n[Service]\nExecStart=/bin/true\n' >/etc/systemd/system/planted-a.service;"
        " mkdir -p /etc/systemd/system/docker.service.requires;"
        " ln -s ../planted-a.service ../planted-b.mount /etc/systemd/system/docker.service.requires;"
        " systemctl daemon-reload",
        rules="boot-target sshd-config sshd-not-at-boot limits-too-low unit-ordering-cycle"
        " unit-dependency",
        cure="systemctl set-default multi-user.target; systemctl enable ssh; sed -i /UsePAMM/d"
        " /etc/ssh/sshd_config;"
        " rm /etc/security/limits.d/planted.conf /etc/systemd/system/planted-a.service; "
        "rm -r /etc/systemd/system/docker.service.requires; systemctl daemon-reload",
    ),
    plant(
        "what users, idle hosts and jobs meet", "base",
        "mkdir -p /etc/systemd/logind.conf.d; printf '[Login]\nIdleAction=suspend\n'"
        " >/etc/systemd/logind.conf.d/planted.conf; cp /etc/hosts /etc/hosts.kept;"
        " sed \"/$(hostname)/d\" /etc/hosts.kept >/etc/hosts;"
        " mkdir -m 700 /opt/planted.d; ln -s planted.d /opt/planted; cp /etc/fstab /etc/fstab.kept;"
        " echo '/dev/planted / ext4 ro 0 1' >/etc/fstab",
        rules="host-sleeps own-name-unresolved path-closed-to-users boot-read-only",
        cure="rm /etc/systemd/logind.conf.d/planted.conf /opt/planted; rmdir /opt/planted.d;"
        " cat /etc/hosts.kept >/etc/hosts; mv /etc/fstab.kept /etc/fstab; rm /etc/hosts.kept",
    ),
    plant(
        "shared memory closed to others", "base", "chmod 755 /dev/shm",
        rules="directory-not-for-everybody", cure="chmod 1777 /dev/shm", quick=True,
    ),
    plant(
        "build tools removed", "base", "dpkg --purge --force-depends build-essential",
        states=("packages build-essential",),
    ),
    plant(
        "pin against other drivers deleted", "driver", "rm /etc/apt/preferences.d/hostwright-no-other-driver",
        rules="driver-not-pinned", states=("file /etc/apt/preferences.d/hostwright-no-other-driver",), quick=True,
    ),
    plant(
        "unattended-upgrades may move the driver", "base", f"rm {UNATTENDED}",
        states=(f"file {UNATTENDED}",), quick=True,
    ),
    plant(
        "unattended-upgrades switched on", "base", UPGRADES,
        rules="upgrades-not-fenced", states=(f"file {UNATTENDED}",),
    ),
    plant(
        "unattended-upgrades may reboot the host", "base",
        f"{UPGRADES.replace(f'rm {UNATTENDED}', '')}\n"
        "echo 'Unattended-Upgrade::Automatic-Reboot \"true\";' >/etc/apt/apt.conf.d/60planted",
        rules="reboots-by-itself", cure="rm /etc/apt/apt.conf.d/60planted",
    ),
    plant(
        "package cut off while it was unpacked", "base",
        "cd /var/lib/dpkg; awk '/^Package:/{p=$2} p==\"gcc-10\" && /^Status:/{$0=\"Status: install reinstreq "
        "half-installed\"} {print}' status >status.cut; mv status.cut status; dpkg-query -W -f '${Status}' gcc-10",
        rules="dpkg-interrupted", states=("dpkg",),
    ),
    plant(
        "package that brings another's file", "base", CONFLICT,
        rules="dpkg-interrupted package-file-conflict", states=("dpkg",), cure="dpkg --purge planted-owner",
    ),
    plant(
        "headers of a kernel for which a stranger's module does not build", "base", OTHER_MODULE,
        rules="dkms-other-module", states=("dpkg",),
        cure="rm -r /var/lib/dkms/planted; dpkg --purge linux-headers-6.99.0-planted",
    ),
    plant(
        "package of nobody's whose own script fails", "base", HALF_CONFIGURED,
        rules="package-script-failed", states=("dpkg",), cure="rm /run/planted",
    ),
    plant(
        "package that its own script keeps from going", "container", NOT_REMOVED,
        rules="package-removal-failed toolkit-former-names",
        states=("packages nvidia-docker2",),
        cure="rm /var/lib/dpkg/info/nvidia-docker.prerm",
    ),
    plant(
        "pin against what a role wants", "base",
        "dpkg --purge --force-depends pciutils; printf 'Package: pciutils\\nPin: version *\\nPin-Priority: -1\\n'"
        " >/etc/apt/preferences.d/planted",
        rules="apt-pin-forbids", states=("packages build-essential",), cure="rm /etc/apt/preferences.d/planted",
    ),
    plant(
        "kernel whose initramfs is to hold the modules of / alone", "base", NO_INITRAMFS,
        rules="initramfs-modules-dep", states=("dpkg",), cure="rm /run/planted /etc/initramfs-tools/conf.d/planted",
    ),
    plant(
        "grub-pc without its disk", "base", HALF_CONFIGURED.replace("name=planted", "name=grub-pc"),
        rules="grub-install-device", states=("dpkg",), cure="rm /run/planted",
    ),
    plant(
        "journal of a dpkg that was killed", "base",
        "cd /var/lib/dpkg; awk -v RS= '/^Package: gcc-10\\n/' status >updates/0000",
        rules="dpkg-interrupted", states=("dpkg",),
    ),
    plant(
        "somebody holds dpkg's lock for long", "base", HOLDS_LOCK, rules="apt-lock",
        cure="systemctl stop planted-holder; umount /proc/uptime",
    ),
    plant(
        "the toolkit's repository with another key", "base",
        f"cd {LISTS}; sed 's,signed-by=[^]]*,signed-by=/etc/apt/keyrings/nvidia.gpg,' nvidia-container-toolkit.list "
        ">libnvidia-container.list",
        rules="signed-by-conflict", cure=f"rm {LISTS}/libnvidia-container.list",
    ),
    plant(
        "source list that apt does not understand", "base", f"echo 'dbe http://mirror.example ./' >{LISTS}/own.list",
        rules="apt-sources-unreadable", cure=f"rm {LISTS}/own.list",
    ),
    plant(
        "a source of apt's that everybody may write to", "base", f"umask 0; : >{LISTS}/open.list",
        rules="others-may-write", cure=f"rm {LISTS}/open.list", quick=True,
    ),
    plant(
        "a stranger's repository whose key expired", "base",
        f"{EXPIRED_KEY}; $gpg --export >/usr/share/keyrings/theirs.gpg; {STOP}; "
        f"echo 'deb [signed-by=/usr/share/keyrings/theirs.gpg] http://theirs.example ./' >{LISTS}/theirs.list",
        rules="foreign-keyring", cure=f"rm {LISTS}/theirs.list /usr/share/keyrings/theirs.gpg",
    ),
    plant(
        "the distribution's list names a keyring with an expired key", "base",
        f"{EXPIRED_KEY}; $gpg --export >/usr/share/keyrings/debian-archive-planted.gpg; {STOP}; "
        "echo 'deb [signed-by=/usr/share/keyrings/debian-archive-planted.gpg] http://archive.example bullseye main' "
        f">{LISTS}/planted.list",
        rules="repository-key-expired",
        cure=f"rm {LISTS}/planted.list /usr/share/keyrings/debian-archive-planted.gpg",
    ),
    plant(
        "the distribution's list names a keyring that is not there", "base",
        "echo 'deb [signed-by=/usr/share/keyrings/debian-archive-gone.gpg] http://archive.example bullseye main' "
        f">{LISTS}/planted.list",
        rules="keyring-unreadable", cure=f"rm {LISTS}/planted.list", quick=True,
    ),
    plant(
        "a keyring of the stack's that apt may not read", "base",
        "chmod 640 /usr/share/keyrings/nvidia-container-toolkit-keyring.gpg",
        rules="stack-keyring-unreadable", states=("key /usr/share/keyrings/nvidia-container-toolkit-keyring.gpg",),
    ),
    plant(
        "a library that every program is to load and that is gone", "base",
        "echo /usr/local/vgpu/libvgpu.so >/etc/ld.so.preload",
        rules="preload-missing", cure="rm /etc/ld.so.preload",
    ),
    plant(
        "a proxy for apt that is dead", "base",
        "echo 'Acquire::http::Proxy \"http://127.0.0.1:9\";' >/etc/apt/apt.conf.d/95planted",
        rules="proxy-refuses", cure="rm /etc/apt/apt.conf.d/95planted",
    ),
    plant(
        "a stranger's list of a repository that is none", "base",
        f"mkdir -p /srv/none; echo 'deb file:/srv/none ./' >{LISTS}/planted.list",
        rules="repository-without-release", cure=f"rm {LISTS}/planted.list",
    ),
    plant(
        "a repository that calls itself otherwise than before", "base", RENAMED,
        rules="repository-changed", cure="rm /var/lib/apt/lists/partial/*_InRelease",
    ),
    plant(
        "distribution's repository in two lists", "base", f"cp /etc/apt/sources.list {LISTS}/debian.list",
        rules="apt-sources-twice", cure=f"rm {LISTS}/debian.list", quick=True,
    ),
    plant(
        "nouveau no longer blacklisted", "driver", "rm /etc/modprobe.d/hostwright-nouveau.conf",
        states=("file /etc/modprobe.d/hostwright-nouveau.conf",), quick=True,
    ),
    plant(
        "nouveau may take the card at the next boot", "driver", NOUVEAU,
        rules="nouveau-not-blocked", states=("file /etc/modprobe.d/hostwright-nouveau.conf",),
    ),
    plant(
        "nouveau has the card", "driver",
        "ln -sfn ../../../../bus/pci/drivers/nouveau /run/hostwright-lab/hardware/pci/0000:3b:00.0/driver",
        rules="nouveau-in-use", states=("open NVIDIA drivers",),
    ),
    plant(
        "trace of a distribution's driver", "driver",
        "mkdir -p /usr/lib/nvidia; touch /usr/lib/nvidia/alternate-install-present",
        rules="alternate-install-left", states=("file /usr/lib/nvidia/alternate-install-present",), quick=True,
    ),
    plant(
        "package of a distribution's driver", "base", OTHER_DRIVER,
        rules="other-installer", states=("packages nvidia-driver", "NVIDIA driver"),
    ),
    plant(
        "headers of the kernel may be moved", "base", 'apt-mark unhold "linux-headers-$(uname -r)"',
        rules="kernel-not-held", states=("kernel packages",),
    ),
    plant(
        "headers of the kernel removed", "base", 'dpkg --purge --force-depends "linux-headers-$(uname -r)"',
        states=("kernel packages",),
    ),
    plant(
        "headers removed and a module to be built", "base",
        f'{UNBUILT}dpkg --purge --force-depends "linux-headers-$k"',
        rules="no-headers", states=("kernel packages", "NVIDIA kernel module"),
    ),
    plant(
        "make removed and a module to be built", "base", f"{UNBUILT}apt-get remove -y make",
        rules="no-compiler", states=("packages build-essential", "NVIDIA kernel module"),
    ),
    plant(
        "newer kernel without headers", "base",
        f"set {OTHER_KERNEL}; mkdir -p $1 /boot/grub; echo k >$2; {GRUB.format(default='0', words='')}",
        rules="next-kernel-without-driver", cure=f"rm -r {OTHER_KERNEL} /boot/grub",
    ),
    plant(
        "newer kernel, and GRUB keeps to the running one", "base",
        f"set {OTHER_KERNEL}; mkdir -p $1 /boot/grub; echo k >$2; {GRUB.format(default='1>1', words='')}",
        cure=f"rm -r {OTHER_KERNEL} /boot/grub", quick=True,
    ),
    plant(
        "an older kernel that GRUB has saved", "base",
        "mkdir -p /lib/modules/4.19.0-planted /boot/grub /etc/default/grub.d; "
        "echo GRUB_DEFAULT=0 >/etc/default/grub; echo GRUB_DEFAULT=saved >/etc/default/grub.d/99-own.cfg; "
        "echo 'saved_entry=gnulinux-4.19.0-planted-advanced-1f' >/boot/grub/grubenv",
        rules="next-kernel-without-driver",
        cure="rm -r /lib/modules/4.19.0-planted /boot/grub /etc/default/grub.d /etc/default/grub", quick=True,
    ),
    plant(
        "a command line that keeps the module away at the next boot", "driver",
        f"mkdir -p /boot/grub; {GRUB.format(default='1>1', words='modprobe.blacklist=nvidia')}",
        rules="module-blacklisted-at-boot", cure="rm -r /boot/grub", quick=True,
    ),
    plant("release record deleted", "base", "rm /var/lib/hostwright/release.json", rules="release-record-lost"),
    plant(
        "release record cut off", "base", "truncate -s 100 /var/lib/hostwright/release.json",
        rules="release-record-lost",
    ),
    plant(
        "last run of the layer failed", "base", FAILED_JOB,
        rules="job-failed", states=(f"file {UNATTENDED}",), quick=True,
    ),
    plant(
        "last run of the layer cut off", "base", CUT_OFF_JOB,
        rules="job-failed", states=(f"file {UNATTENDED}",),
    ),
)  # fmt: skip

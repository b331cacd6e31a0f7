"""A dpkg that was killed at work: what it leaves on a real host, made by the real dpkg with real packages."""

from __future__ import annotations

from lab.config import Machine
from lab.machine import console

PACKAGE = "hostwright-lab-halfway"
_WORK = "/run/hostwright-lab-halfway"  #: a reboot takes it away, and with it what makes the package hang

#: Makes a package whose configuration hangs the first time, and kills dpkg with all that it started while it hangs.
_HALF_CONFIGURE = """
package=$1 work=$2
rm -rf "$work"; mkdir -p "$work/tree/DEBIAN" "$work/tree/usr/share/$package"
echo 'made by the Hostwright lab' >"$work/tree/usr/share/$package/README"
cat >"$work/tree/DEBIAN/control" <<END
Package: $package
Version: 1.0
Architecture: all
Maintainer: Hostwright lab <lab@localhost>
Description: a package whose installation is interrupted (Hostwright lab)
END
cat >"$work/tree/DEBIAN/postinst" <<END
#!/bin/sh
[ -e $work/hang ] || exit 0
mv $work/hang $work/begun
sleep 600
END
chmod 755 "$work/tree/DEBIAN/postinst"
touch "$work/hang"
dpkg-deb --build "$work/tree" "$work/$package.deb" >/dev/null
setsid dpkg --install "$work/$package.deb" >"$work/log" 2>&1 &
"""

#: Unpacks a package of the distribution with a dpkg-deb before the real one in PATH that hands out half of the files.
_HALF_UNPACK = """
package=$1 work=$2
rm -rf "$work"; mkdir -p "$work/bin"
cd /var/cache/apt/archives
ls "$package"_*.deb >/dev/null 2>&1 || apt-get download "$package" >"$work/log" 2>&1
archive=$(ls -t "$package"_*.deb | head -n 1)
size=$(dpkg-deb --fsys-tarfile "$archive" | wc -c)
cat >"$work/bin/dpkg-deb" <<END
#!/bin/sh
[ "\\$1" = --fsys-tarfile ] || exec /usr/bin/dpkg-deb "\\$@"
/usr/bin/dpkg-deb "\\$@" | { head -c $((size / 2)); touch $work/begun; sleep 600; }
END
chmod 755 "$work/bin/dpkg-deb"
PATH="$work/bin:$PATH" setsid dpkg --unpack "$archive" >"$work/log" 2>&1 &
"""

#: Waits (60 s) until the process in $! has come to the point, and kills its session.
_KILL = """
count=0
until [ -e "$work/begun" ] && [ -n "$(ls /var/lib/dpkg/updates)" ]; do
    count=$((count + 1))
    if [ "$count" -gt 3000 ] || ! kill -0 $!; then cat "$work/log" >&2; kill -KILL -$! || true; exit 1; fi
    sleep 0.02
done
kill -KILL -$!
"""


def half_configure(machine: Machine) -> None:
    """Leave a package half-configured: dpkg was killed in the middle of a postinst.

    Real: the package (a tiny one, made in the host), dpkg's state and its unfinished journal. `dpkg --configure -a`
    mends it.
    """
    console(machine, "sh", "-euc", _HALF_CONFIGURE + _KILL, "sh", PACKAGE, _WORK)


def half_unpack(machine: Machine, package: str = "make") -> None:
    """Leave a package of the distribution half-installed: dpkg was killed in the middle of its files.

    Real: package, files and dpkg's state, which wants it reinstalled; `dpkg --configure -a` alone does not mend it.
    Stand-in: the point at which it is killed is chosen by a dpkg-deb that hangs there. Needs the package in apt's cache
    or the mirror in reach.
    """
    console(machine, "sh", "-euc", _HALF_UNPACK + _KILL, "sh", package, _WORK)

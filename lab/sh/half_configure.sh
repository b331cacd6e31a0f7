# Makes a package whose configuration hangs the first time, and kills dpkg with all that it started while it hangs.
: "${package:?}"
: "${work:?}"
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

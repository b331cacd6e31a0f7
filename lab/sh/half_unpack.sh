# Unpacks a package of the distribution with a dpkg-deb before the real one in PATH that hands out half of the files.
: "${package:?}"
: "${work:?}"
rm -rf "$work"; mkdir -p "$work/bin"
cd /var/cache/apt/archives || exit
ls "$package"_*.deb >/dev/null 2>&1 || apt-get download "$package" >"$work/log" 2>&1
# shellcheck disable=SC2012  # apt gives its files plain names
archive=$(ls -t "$package"_*.deb | head -n 1)
size=$(dpkg-deb --fsys-tarfile "$archive" | wc -c)
cat >"$work/bin/dpkg-deb" <<END
#!/bin/sh
[ "\$1" = --fsys-tarfile ] || exec /usr/bin/dpkg-deb "\$@"
/usr/bin/dpkg-deb "\$@" | { head -c $((size / 2)); touch $work/begun; sleep 600; }
END
chmod 755 "$work/bin/dpkg-deb"
PATH="$work/bin:$PATH" setsid dpkg --unpack "$archive" >"$work/log" 2>&1 &

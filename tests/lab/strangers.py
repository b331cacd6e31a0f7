"""What strangers leave on a host: a repository whose key expired, and a proxy of apt's that is gone."""

from __future__ import annotations

#: A key that expired long ago, in a home of its own; ``$gpg`` signs with it.
EXPIRED_KEY = (
    'home=$(mktemp -d); gpg="gpg --homedir $home --batch -q --faked-system-time 20200101T000000!"; '
    "$gpg --passphrase '' --quick-generate-key 'Theirs <a@b.example>' ed25519 sign 1d"
)
#: A repository that it signed, as vendors' are; nothing of it has been fetched.
EXPIRED = f"""
{EXPIRED_KEY}
$gpg --export >/usr/share/keyrings/theirs.gpg
mkdir -p /srv/theirs; cd /srv/theirs; : >Packages
sum=$(sha256sum Packages | cut -d' ' -f1)
printf 'Origin: T\\nDate: %s\\nSHA256:\\n %s 0 Packages\\n' "$(date -Ru)" "$sum" >Release
$gpg --clearsign -o InRelease Release
gpgconf --homedir "$home" --kill all
echo 'deb [signed-by=/usr/share/keyrings/theirs.gpg] file:/srv/theirs ./' >/etc/apt/sources.list.d/theirs.list
rm -rf /var/lib/apt/lists/*
"""
PROXY = "/etc/apt/apt.conf.d/95theirs"
#: A proxy that is gone, with somebody's password in its address, and no lists.
DEAD_PROXY = f"""
rm -rf /var/lib/apt/lists/*
echo 'Acquire::http::Proxy "http://ada:hunter2@127.0.0.1:9"; Acquire::https::Proxy "http://127.0.0.1:9";' >{PROXY}
"""

"""Shell scripts for leftovers of other software on a host: a repository with an expired key, an unreachable proxy."""

from __future__ import annotations

#: Creates an expired key in a separate GnuPG home; ``$gpg`` signs with it.
EXPIRED_KEY = (
    'home=$(mktemp -d); gpg="gpg --homedir $home --batch -q --faked-system-time 20200101T000000!"; '
    "$gpg --passphrase '' --quick-generate-key 'Theirs <a@b.example>' ed25519 sign 1d"
)
#: Adds a vendor repository signed with the expired key; its lists have not been fetched.
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
#: Sets an unreachable proxy with a password in its URL, and removes the lists.
DEAD_PROXY = f"""
rm -rf /var/lib/apt/lists/*
echo 'Acquire::http::Proxy "http://ada:hunter2@127.0.0.1:9"; Acquire::https::Proxy "http://127.0.0.1:9";' >{PROXY}
"""

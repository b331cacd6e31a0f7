"""Where we refuse a key that ``ssh`` accepts, each with the sentence that says why."""

from __future__ import annotations

_AUTHORITY = "trusts an authority for it: only a certificate or a recorded key is accepted"
_STRICT = "with --accept-new, or log in once with ssh"
STRICTER: dict[str, str] = {
    # no first use where an authority is trusted
    "an authority, no certificate, accepted at first": _AUTHORITY,
    "an authority, a wrong certificate, accepted at first": _AUTHORITY,
    "nobody in the certificate": "it names no host, which later versions of OpenSSH refuse",
    # only --accept-new and the inventory accept new keys, and nothing accepts a changed one
    "the configuration accepts at first": _STRICT,
    "off and unknown": _STRICT,
    "off and changed": "changed: it shows",
    "off and revoked": "known:1 revokes",
    "an option for localhost": _STRICT,
    "strict and unknown, to be accepted": "says StrictHostKeyChecking yes for it, so that --accept-new does not",
    # what is revoked stays revoked, also for a first use and in a line that ssh does not understand
    "revoked without the port, accepted at first": "known:1 revokes",
    "revoked behind a tab": "known:1 revokes",
    "nowhere, accepted at first": "/dev/null is not a regular file and cannot record it",
    # what ssh warns of, or means otherwise
    "with a space": "no absolute path: file names that are relative or contain a space are not understood",
    "a command without a path": "KnownHostsCommand in ssh_config must be an absolute path",
    "DNS and unknown, accepted at first": "VerifyHostKeyDNS",
    "a command that is not there": "KnownHostsCommand .* cannot be run",
}

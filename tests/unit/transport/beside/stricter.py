"""Cases in which Hostwright rejects a key that ``ssh`` accepts, each with the expected error."""

from __future__ import annotations

_AUTHORITY = "has a @cert-authority for it, so only a certificate or a recorded key is accepted"
_STRICT = "with --accept-new, or log in once with ssh"
STRICTER: dict[str, str] = {
    # no first use with a trusted authority
    "an authority, no certificate, accepted at first": _AUTHORITY,
    "an authority, a wrong certificate, accepted at first": _AUTHORITY,
    "nobody in the certificate": "it has no principals, which later versions of OpenSSH reject",
    # only --accept-new and the inventory accept new keys; changed keys are never accepted
    "the configuration accepts at first": _STRICT,
    "off and unknown": _STRICT,
    "off and changed": "changed: it presents",
    "off and revoked": "known:1 revokes",
    "an option for localhost": _STRICT,
    "strict and unknown, to be accepted": "sets StrictHostKeyChecking yes, so --accept-new does not accept",
    # a revoked key stays revoked, also for a first use and in a line that ssh ignores
    "revoked without the port, accepted at first": "known:1 revokes",
    "revoked behind a tab": "known:1 revokes",
    "nowhere, accepted at first": "/dev/null is not a regular file; set another UserKnownHostsFile",
    # ssh warns, or interprets the setting differently
    "with a space": "is not an absolute path; write an absolute path without spaces",
    "a command without a path": "KnownHostsCommand .* is not an absolute path",
    "DNS and unknown, accepted at first": "VerifyHostKeyDNS",
    "a command that is not there": "KnownHostsCommand .* cannot be run",
}

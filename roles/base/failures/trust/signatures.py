"""Messages of apt about a repository that it does not trust, or that does not exist."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hostwright.failures import FailureRule, ForPeople, Sign, Variant
from hostwright.resources import Probe
from hostwright.roles import sh_file
from hostwright.standard.roles.base.failures.trust import (
    FOREIGN,
    KEY_EXPIRED,
    KEYRING_UNREADABLE,
    OWN_KEYRING_UNREADABLE,
    REPOSITORY_CHANGED,
    WITHOUT_RELEASE,
)

if TYPE_CHECKING:
    from hostwright.failures import AuditContext


#: directories and files from which root runs programs or loads libraries
PLACES = (
    "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/etc", "/etc/environment", "/etc/profile",
    "/etc/ld.so.preload", "/etc/ld.so.conf", "/etc/sudoers", "/opt", "/opt/hostwright", "/var/lib/hostwright",
)  # fmt: skip
#: directories whose files configure programs that root runs, such as apt and DKMS
FOLDERS = (
    "/etc/apt", "/etc/apt/sources.list.d", "/etc/apt/apt.conf.d", "/etc/apt/preferences.d", "/etc/apt/auth.conf.d",
    "/etc/apt/keyrings", "/etc/apt/trusted.gpg.d", "/usr/share/keyrings", "/etc/dpkg", "/etc/dpkg/dpkg.cfg.d",
    "/etc/kernel/postinst.d", "/etc/dkms", "/etc/modprobe.d", "/etc/modules-load.d", "/etc/ld.so.conf.d",
    "/etc/profile.d", "/etc/sudoers.d", "/etc/systemd/system", "/etc/docker",
)  # fmt: skip

WRITABLE = Probe(sh_file(__file__, "writable.sh", places=PLACES, folders=FOLDERS), root=True)


def writable(ctx: AuditContext) -> Iterator[str]:
    """A file or directory that controls what root runs, loads or trusts is not owned by root, or is writable for
    others.
    """
    for line in ctx.text(WRITABLE).split("\n"):
        if line.count("\t") == 3:
            user, group, mode, path = line.split("\t")
            yield f"{path} belongs to {user}:{group}, mode {mode}"


OTHERS_WRITE = FailureRule(
    "others-may-write",
    "",
    "users other than root may write to files that control which programs root runs or whom it trusts; each of these "
    "users can become root, and change installed software",
    "Find out who changed the owner or the mode, and check the contents; then run chown root:root and chmod go-w on "
    "the files that the evidence names",
    "sources.list(5), apt.conf(5), modprobe.d(5), systemd.unit(5)",
    sign=Sign("base", writable, (WRITABLE,), grave=False),
)


REPOSITORY = (
    r"(?:repository|GPG error:"
    r"|Failed to fetch) \W{0,2}(?P<repository>https?://[^\s'\"’]{1,200}(?: [a-z][\w/.-]{1,60}\b)?)"
)

#: failure rules about signatures, in order of precedence. apt prints "is not signed" for every cause, so the rule for
#: that text follows the rules for causes.
SIGNATURES = (
    FailureRule(
        "keyring-unreadable",
        r"ignored as the file (?:is not readable by user|has an unsupported filetype)",
        "apt ignores a keyring and the keys in it, because its user _apt may not read the file or because its type "
        "differs from its file name extension",
        "Make it readable (chmod 644 for the file in the message, 755 for its directories). If its type is wrong, "
        "name an armored key .asc and a binary one .gpg. Then run apt-get update",
        "apt apt-key and methods/gpgv.cc",
        sign=KEYRING_UNREADABLE,
        treatment=ForPeople(),
    ),
    FailureRule(
        "stack-keyring-unreadable",
        "",
        "apt's user _apt may not read the keyring of a repository of the stack, usually written under umask 027: apt "
        "reports NO_PUBKEY although the right key is installed",
        "Provision again: the repository's layer sets the file's mode, 644. If a directory above it is closed to "
        "others, run chmod 755 on it",
        "apt methods/gpgv.cc; NVIDIA/nvidia-docker#1658",
        sign=OWN_KEYRING_UNREADABLE,
    ),
    FailureRule(
        "repository-key-expired",
        r"\b(?:EXPKEYSIG|KEYEXPIRED|EXPSIG)\b|is not live because: Expired on|[Kk]ey .*: Expired on [0-9]{4}-",
        "the key{, FINGERPRINT,|} with which {the apt repository REPOSITORY|an apt repository} is signed has expired",
        "Fetch the repository's renewed key into the keyring that its source names with signed-by, or remove the "
        "repository; also check the date on the host",
        "apt methods/gpgv.cc and methods/sqv.cc; GnuPG doc/DETAILS",
        sign=KEY_EXPIRED,
        treatment=ForPeople(),
        unless=r"\[GNUPG:\] KEYEXPIRED",
        names=(REPOSITORY, r"(?:EXPKEYSIG|KEYEXPIRED) (?P<fingerprint>[0-9A-F]{8,40})"),
    ),
    FOREIGN,
    OTHERS_WRITE,
    FailureRule(
        "repository-signature-invalid",
        r"\bBADSIG\b|\bREVKEYSIG\b|[Aa]t least one invalid signature was encountered|Clearsigned file isn't valid"
        r"|does not start with a cleartext signature|Policy rejected (?:non-revocation )?(?:signature|packet"
        r"|asymmetric)"
        r"|\b\w{2,20} is not considered secure since"
        r"|uses weak (?:digest )?algorithm .*and is not trusted"
        r"|\bNODATA [12]\b|[Ss]igned file isn't valid|untrusted public key algorithm"
        r"|Good signature, but could not determine",
        "the signature of an apt repository does not match the received data: a proxy, a login page or a mirror in "
        "the middle of an update delivered something else, its key was revoked or is too weak, or apt could not "
        "check it",
        "Clear apt's lists (rm -r /var/lib/apt/lists, then apt-get update) and bypass the proxy or use another "
        "mirror; in a container, also check free space and the age of Docker",
        "apt methods/gpgv.cc; GnuPG doc/DETAILS; NVIDIA/cuda-repo-management#39",
        beside=r"Signing key on [0-9A-F]{8,40}|is not considered secure since|OpenPGP signature verification failed: ",
        names=(
            r"signature verification failed: (?P<repository>https?://[^\s'\"]{1,200})",
            r"GPG error: (?P<repository>https?://[^\s'\"]{1,200})",
            r"(?:Signing key on|[Ss]ignature by key) (?P<key>[0-9A-F]{8,40})",
            r"\b(?P<algorithm>\w{2,20}) is not considered secure",
            r"considered secure since (?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})",
            r"uses weak (?:digest )?algorithm \(?(?P<algorithm>\w{2,20})",
        ),
        variants=(
            Variant(
                r"Policy rejected|is not considered secure|uses weak (?:digest )?algorithm",
                "apt has the key{ KEY|} of {the repository REPOSITORY|a repository}, and rejects its signature: "
                "{ALGORITHM|its algorithm} counts as too weak{ since DATE|} (sqv, the verifier of Debian 13 and "
                "Ubuntu 25.04, rejects SHA-1 since February 2026). apt keeps its old lists, or installs nothing from "
                "there",
                "Use the vendor's repository for this release, with its own keyring, if it is signed with a newer "
                "algorithm: NVIDIA's CUDA repository debian13 is, and a stack for this release names it. If the "
                "vendor has none yet, copy /usr/share/apt/default-sequoia.config to "
                "/etc/crypto-policies/back-ends/apt-sequoia.config and set a later date for "
                "sha1.second_preimage_resistance there, until it has",
            ),
        ),
    ),
    FailureRule(
        "repository-without-release",
        r"(?:does not have|no longer has) a Release file|Unable to find expected entry '[^'\n]+' in Release file"
        r"|configured file '[^'\n]+/binary-[^\n]+ (?:does not seem to provide it"
        r"|doesn't have the component '[^'\n]+') \((?:sources\.list entry|component) mis"
        r"|no longer have a Release file|None of the configured source.*Release",
        "a source list names {REPOSITORY|an address}, which has no apt repository, or none for this distribution",
        "Correct address and distribution in /etc/apt/sources.list.d, or remove the list; for an old release, use "
        "the archive's address",
        "apt acquire-item.cc",
        narrower=r"\b(?:40[137]|5[0-9]{2})\s{1,3}[A-Z][a-z]{3}|Connection (?:failed|refused|timed out|reset)"
        r"|Could not connect",
        names=(REPOSITORY,),
        sign=WITHOUT_RELEASE,
    ),
    FailureRule(
        "no-public-key",
        r"NO_PUBKEY|Missing key [0-9A-F]{8,40}, which is needed to verify"
        r"|because the public key is not available|packages cannot be authenticated|there were unauthenticated packages"
        r"|Public key for \S+ is not installed",
        "{the apt repository REPOSITORY|an apt repository} is signed with a key{, FINGERPRINT,|} that the host does not"
        " have",
        "Remove the repository from /etc/apt/sources.list.d, or install its key and name it with signed-by",
        "apt-secure(8)",
        closing=r"repository .+ is (?:not|no longer) signed",
        names=(REPOSITORY, r"(?:NO_PUBKEY|[Mm]issing key) (?P<fingerprint>[0-9A-F]{8,40})"),
    ),
    FailureRule(
        "repository-changed",
        r"Repository '.+' changed its (?:'[A-Z][a-z]{1,20}' value|default priority)",
        "an apt repository changed its description (origin, label, suite or codename), as happens at each release of "
        "its distribution, and apt requires confirmation before it reads anything new from it",
        "Check that the change is intended (a stable release becoming oldstable is), then accept it with apt-get "
        "update --allow-releaseinfo-change, and provision again",
        "apt acquire-item.cc; apt-secure(8)",
        sign=REPOSITORY_CHANGED,
    ),
    FailureRule(
        "repository-date",
        r"Release file for .+ (?:is not valid yet|is expired)|is not valid yet \(invalid for another",
        "the host's clock is wrong, or the mirror is no longer updated",
        "Set the clock (timedatectl) or name another mirror",
        "apt-secure(8)",
    ),
)

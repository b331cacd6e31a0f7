"""Test cases: host certificates, authorities, and lists of revoked keys.

Sources: OpenSSH's regress tests (cert-hostkey.sh, krl.sh) and PROTOCOL.certkeys, net-ssh 833, 988 and 1009,
tmds/Tmds.Ssh 462, skeema/knownhosts 9, 16 and 17, estuary/connectors 5269, mwiede/jsch 1091.
"""

from __future__ import annotations

from tests.unit.transport.beside.case import Case

H = "gpu01.example.org"
P = 2222
CA = f"@cert-authority {H} <ca>"

CERTIFICATES = (
    Case("an authority", CA, server="cert-good"),
    Case("an authority, ecdsa", CA, server="cert-good-ec"),
    Case("an authority, rsa", CA, server="cert-good-rsa"),
    Case("another authority", CA, server="cert-by-ca2"),
    Case("the second authority", f"@cert-authority {H} <ca2>\n{CA}", server="cert-good"),
    Case("an authority for a domain", "@cert-authority *.example.org <ca>", server="cert-good"),
    Case("an authority for all", "@cert-authority * <ca>", server="cert-good"),
    Case("an authority for others", "@cert-authority *.example.com <ca>", server="cert-good"),
    Case("an authority for all but this", f"@cert-authority *,!{H} <ca>", server="cert-good"),
    Case("an authority, hashed", f"@cert-authority <hash {H}> <ca>", server="cert-good"),
    Case("an authority of the system", system="@cert-authority * <ca>", server="cert-good"),
    Case(
        "an authority in the second file", "", "UserKnownHostsFile <dir>/known <dir>/more", more=CA, server="cert-good"
    ),
    Case("an authority in capitals", f"@CERT-AUTHORITY {H} <ca>", server="cert-good"),
    Case("an authority without its marker", f"{H} <ca>", server="cert-good"),
    Case("a certificate as an authority", f"@cert-authority {H} <good>", server="cert-good"),
    Case("a certificate as a known key", f"{H} <good>", server="cert-good"),
    Case("the host key as an authority", f"@cert-authority {H} <ed>", server="cert-good"),
    Case("signed by itself", f"@cert-authority {H} <ed>", server="cert-by-itself"),
    Case("another host's certificate", CA, server="cert-stranger"),
    Case("a pattern in the certificate", CA, server="cert-wildcard"),
    Case("capitals in the certificate", CA, server="cert-upper"),
    Case("capitals are asked", CA, server="cert-good", host=H.upper()),
    Case("nobody in the certificate", CA, server="cert-nobody"),
    Case("expired", CA, server="cert-expired"),
    Case("not yet valid", CA, server="cert-future"),
    Case("valid now", CA, server="cert-now"),
    Case("a user's certificate", CA, server="cert-user"),
    Case("a critical option", CA, server="cert-critical"),
    Case("an extension", CA, server="cert-extended"),
    Case("no authority and no key", "", server="cert-good"),
    Case("the key is known, the authority is not", f"{H} <ed>", server="cert-good"),
    Case("the key is known, the certificate expired", f"{CA}\n{H} <ed>", server="cert-expired"),
    Case("the key is known, the certificate is another's", f"{CA}\n{H} <ed>", server="cert-stranger"),
    Case("another key is known, the certificate is right", f"{CA}\n{H} <other>", server="cert-good"),
    Case("another key is known, the certificate is wrong", f"{CA}\n{H} <other>", server="cert-expired"),
    Case("the authority is revoked", f"{CA}\n@revoked * <ca>", server="cert-good"),
    Case("the authority is revoked, the key known", f"{CA}\n@revoked * <ca>\n{H} <ed>", server="cert-good"),
    Case("the key is revoked", f"{CA}\n@revoked * <ed>", server="cert-good"),
    Case("the certificate is revoked", f"{CA}\n@revoked * <good>", server="cert-good"),
    Case("another certificate of the key is revoked", f"{CA}\n@revoked * <by-ca2>", server="cert-good"),
    Case("the authority is revoked in the system's file", CA, system="@revoked * <ca>", server="cert-good"),
    Case("an authority, and a server without certificate", CA),
    Case("an authority, no certificate, accepted at first", CA, new=True),
    Case("an authority, a wrong certificate, accepted at first", CA, server="cert-expired", new=True),
    Case("another's authority, accepted at first", "", server="cert-good", new=True),
    Case("a right certificate, accepted at first", CA, server="cert-good", new=True),
    Case("an authority without the port", CA, server="cert-good", port=P),
    Case("an authority for the domain, with a port", "@cert-authority *.example.org <ca>", server="cert-good", port=P),
    Case("an authority on the port", f"@cert-authority [{H}]:{P} <ca>", server="cert-good", port=P),
    Case("an authority on another port", f"@cert-authority [{H}]:2223 <ca>", server="cert-good", port=P),
    Case("an authority for any port", f"@cert-authority [*]:{P} <ca>", server="cert-good", port=P),
    Case("the port in the certificate", f"@cert-authority [{H}]:{P} <ca>", server="cert-port", port=P),
    Case("another authority on the port", f"@cert-authority [{H}]:{P} <ca2>\n{CA}", server="cert-good", port=P),
    Case("an alias in the certificate", "@cert-authority rack1 <ca>", "HostKeyAlias rack1", server="cert-good"),
    Case("an alias that is not in it", "@cert-authority rack2 <ca>", "HostKeyAlias rack2", server="cert-good"),
    Case("an alias, the authority for the name", CA, "HostKeyAlias rack1", server="cert-good"),
    Case("an alias and a port", "@cert-authority rack1 <ca>", "HostKeyAlias rack1", server="cert-good", port=P),
    Case("the name as another was asked", CA, f"HostName {H}", server="cert-good", host="g1"),
    Case("the asked name in the certificate", "@cert-authority 10.0.0.7 <ca>", "HostName 10.0.0.7", server="cert-good"),
)
_RSA = f"@cert-authority {H} <carsa>"
ALGORITHMS = (
    Case("signed with sha512", _RSA, server="cert-by-rsa-512"),
    Case("signed with sha256", _RSA, server="cert-by-rsa-256"),
    Case("signed with sha1", _RSA, server="cert-by-rsa-sha1"),
    Case("signed with sha1, allowed", _RSA, "CASignatureAlgorithms +ssh-rsa", server="cert-by-rsa-sha1"),
    Case("only sha512 for authorities", _RSA, "CASignatureAlgorithms rsa-sha2-512", server="cert-by-rsa-256"),
    Case("no ed25519 for authorities", CA, "CASignatureAlgorithms -ssh-ed25519", server="cert-good"),
    Case(
        "no ed25519 for authorities, key known", f"{CA}\n{H} <ed>", "CASignatureAlgorithms ecdsa*", server="cert-good"
    ),
    Case("authorities of 4096 bits", _RSA, "RequiredRSASize 4096", server="cert-by-rsa-512"),
    Case("host keys of 4096 bits", f"{H} <rsa>", "RequiredRSASize 4096", server="rsa"),
    Case("host keys of 2048 bits", f"{H} <rsa>", "RequiredRSASize 2048", server="rsa"),
    Case("no certificates wanted", CA, "HostKeyAlgorithms ssh-ed25519", server="cert-good"),
    Case("no certificates wanted, key known", f"{CA}\n{H} <ed>", "HostKeyAlgorithms ssh-ed25519", server="cert-good"),
    Case("certificates only", CA, "HostKeyAlgorithms *-cert-v01@openssh.com", server="cert-good"),
    Case("certificates only, key known", f"{H} <ed>", "HostKeyAlgorithms *-cert-v01@openssh.com", server="cert-good"),
    Case("certificates only, none there", f"{H} <ed>", "HostKeyAlgorithms *-cert-v01@openssh.com"),
    Case("a certificate of another algorithm", CA, "HostKeyAlgorithms ecdsa*", server="cert-good"),
    Case("only ecdsa", f"{H} <ed>", "HostKeyAlgorithms ecdsa-sha2-nistp256", server="ed+ec"),
    Case("only ecdsa, known", f"{H} <ec>", "HostKeyAlgorithms ecdsa-sha2-nistp256", server="ed+ec"),
    Case("no ed25519", f"{H} <ed>", "HostKeyAlgorithms -ssh-ed25519*", server="ed+ec"),
    Case("ecdsa first", f"{H} <ed>", "HostKeyAlgorithms ^ecdsa-sha2-nistp256", server="ed+ec"),
    Case("ssh-rsa besides", f"{H} <ec>", "HostKeyAlgorithms +ssh-rsa", server="ed+ec"),
    Case("a known type is asked for first", f"{H} <ec>", server="ed+ec"),
    Case(
        "a known type, in the user's order",
        f"{H} <ec>",
        "HostKeyAlgorithms ssh-ed25519,ecdsa-sha2-nistp256",
        server="ed+ec",
    ),
    Case("the last of three types", f"{H} <rsa>", server="all"),
    Case("the best known type is not there", f"{H} <ed>\n{H} <rsa>", server="ec+rsa"),
    Case("the first type changed, the second is right", f"{H} <other>\n{H} <ec>", server="ed+ec"),
    Case("rsa by its algorithm", f"{H} <rsa>", "HostKeyAlgorithms rsa-sha2-256", server="all"),
    Case("rsa with sha1 only", f"{H} <rsa>", "HostKeyAlgorithms ssh-rsa", server="rsa"),
    Case("nothing in common", f"{H} <ed>", "HostKeyAlgorithms rsa-sha2-512"),
    Case("no such algorithm", f"{H} <ed>", "HostKeyAlgorithms ssh-nonsense"),
)


def _list(name: str, file: str, known: str = CA, server: str = "cert-good") -> Case:
    return Case(name, known, f"RevokedHostKeys {file}", server=server)


LISTS = (
    _list("a list with the key", "<world>/ed.pub"),
    _list("a list with another key", "<world>/other.pub"),
    _list("a list with the authority", "<world>/ca.pub"),
    _list("a list with the certificate", "<world>/good.pub"),
    _list("an empty list", "/dev/null"),
    _list("a list that is not there", "<world>/none"),
    _list("a list that is a folder", "<world>"),
    _list("no list", "none"),
    _list("a list with the plain key", "<world>/ed.pub", f"{H} <ed>", "ed"),
    _list("a list of others, with the plain key", "<world>/other.pub", f"{H} <ed>", "ed"),
    _list("a KRL with the key", "<world>/plain.krl"),
    _list("a KRL with the plain key", "<world>/plain.krl", f"{H} <ed>", "ed"),
    _list("a KRL with another key", "<world>/others.krl"),
    _list("an empty KRL", "<world>/empty.krl"),
    _list("a KRL with the serial number", "<world>/serial.krl"),
    _list("a KRL with other serial numbers", "<world>/serials.krl"),
    _list("a KRL with the certificate's name", "<world>/id.krl"),
    _list("a KRL with the key's hash", "<world>/hash.krl"),
    _list("a KRL with the certificate", "<world>/good.krl"),
    _list("a KRL with the authority", "<world>/ca.krl"),
    _list("a KRL with the serial number, key known", "<world>/serial.krl", f"{H} <ed>"),
    _list("a damaged KRL", "<dir>/broken.krl"),
    _list("a list by a token", "<world>/%k.list"),
    _list("a list in quotes", '"<world>/ed.pub"'),
    Case("a list, and accepted at first", "", "RevokedHostKeys <world>/ed.pub", new=True),
    Case("a list in another stanza", f"{H} <ed>", "Host gpu02\n RevokedHostKeys <world>/ed.pub\nHost *"),
    Case("lists in the text's own words", f"{H} <ed>", "RevokedHostKeys <dir>/mixed"),
)

"""Failures to reach a mirror, package index or registry, in messages of apt, pip, curl, wget, git and Go."""

from __future__ import annotations

from hostwright.failures import FailureRule, ForPeople, Variant
from hostwright.standard.roles.base.failures.trust import PROXY_REFUSES

#: pattern of the server in a URL. A login before the server is skipped.
SERVER = r"https?://(?:[^/\s@'\"]{1,200}@)?(?P<server>[\w.-]{1,200})"
#: pattern of a line in a web server's request log
_SERVED = r"\"(?:GET|POST|PUT|HEAD|DELETE|OPTIONS|PATCH) /[^\n]{0,300} HTTP/"
_AWAY = "(?:408|429|5[0-9]{2})"  #: pattern of HTTP statuses for temporary errors (RFC 9110, RFC 6585)
_ERRNO = r"(?:Network is unreachable|No route to host|[Cc]onnection (?:refused|timed out|reset))"

#: failure rules about network connections, in order of precedence
WAY = (
    FailureRule(
        "ca-bundle-missing",
        r"[Cc]ould not find a suitable TLS CA certificate bundle, invalid path: |error setting certificate (?:verify"
        r" locations|file)[^\n]*(?:\n {1,4}CAfile: [^\n]*)?"
        r"|Error reading ca cert file |unable to load CA (?:file|certificate)",
        "a setting names a file of certificate authorities that is missing or unreadable: BUNDLE",
        "Correct or remove the setting (REQUESTS_CA_BUNDLE, SSL_CERT_FILE, CURL_CA_BUNDLE, PIP_CERT; cert in "
        "pip.conf; cacert in .curlrc; find it with grep -rn in /etc/environment, /etc/profile.d, /etc/pip.conf, and "
        "homes); the host's own file is /etc/ssl/certs/ca-certificates.crt",
        "requests adapters.py, cert_verify; curl lib/vtls/openssl.c; pypa/pip#10147",
        transient=False,
        names=(r"(?:invalid path:|CAfile:|cert file|certificate file:) {0,3}(?P<bundle>/?[^\s:]{1,200})",),
    ),
    FailureRule(
        "tls-certificate",
        r"CERTIFICATE_VERIFY_FAILED"
        r"|[Cc]ertificate verif(?:y|ication) failed|SSLCertVerificationError"
        r"|problem confirming the ssl certificate(?:: HTTPSConnectionPool\([^)\n]*\))?(?: - skipping)?\s*$"
        r"|x509: |failed to verify certificate|SSL certificate problem"
        r"|curl: \((?:51|58|60|77)\) |unable to get (?:local )?issuer certificate|certificate is NOT trusted"
        r"|[Ee]rror in the certificate verification|cannot verify .+'s certificate|error setting certificate"
        r"|self[- ]signed certificate in certificate chain|DEPTH_ZERO_SELF_SIGNED_CERT"
        r"|unable to verify the first certificate"
        r"|PKIX path building failed|No system certificates available"
        r"|certificate of .+ is not trusted|(?:doesn't have|hasn't got) a known issuer"
        r"|certificate (?:.+ )?has expired"
        r"|has expired certificate|uses expired certificate|locally verify the issuer|ERR_CERT_|UNABLE_TO_(?:VERIFY"
        r"|GET_ISSUER)"
        r"|hostname .+ doesn't match|certificate subject name|\bCertificateError\b"
        r"|certificate issuer (?:is unknown|is not recognized)"
        r"|SEC_ERROR_UNKNOWN_ISSUER|tls: (?:unknown certificate|bad certificate)|legitimacy of the server"
        r"|cannot validate certificate",
        "the certificate of {SERVER|the server} is not trusted: usually a company proxy signs with an authority that "
        "is not installed on the host, or ca-certificates is missing or old, or the certificate has expired",
        "Find its issuer (curl -vI the address above) and install that authority (update-ca-certificates; for pip "
        "also PIP_CERT; restart Docker after it); check the date on the host",
        "OpenSSL x509_txt.c; GnuTLS; Go crypto/x509; apt connect.cc; curl lib/strerror.c",
        names=(r"host='(?P<server>[^'\n]{1,200})'", r"cannot verify (?P<server>[\w.-]{3,200})'s", SERVER),
        transient=False,
    ),
    FailureRule(
        "proxy-refuses",
        r"(?:Tunnel connection failed: [0-9]{3}|ProxyError\("
        r"|(?:[Uu]nable to|[Cc]annot|[Cc]ould not) connect to (?:the )?proxy)"
        r"|[Pp]roxy [Aa]uthentication [Rr]equired"
        r"|CONNECT tunnel failed|HTTP code [0-9]{3} from proxy|[Ii]nvalid response from proxy|proxyconnect tcp"
        r"|[Pp]roxy tunneling failed|Could not resolve proxy"
        r"|Couldn't resolve proxy|Missing dependencies for SOCKS support|WRONG_VERSION_NUMBER"
        r"|Failed to fetch .+  407 "
        r"|HTTP/1\.[01] 407|\b407 (?:Proxy"
        r"|authenticationrequired)"
        r"|Proxy request sent, awaiting response\.\.\. (?:40[37]|50[0-9])|proxy CONNECT aborted|Proxy URL had no scheme"
        r"|unsupported proxy|unknown proxy scheme|invalid proxy URL|Unable to determine SOCKS version|X-Squid-Error"
        r"|the proxy \S+ does not answer: "
        r"|(?:could not|unable to) connect to \S+:(?:3128|3142|8000|8080|8118|8123|8888)\b"
        r"|Failed to connect to (?:127\.0\.0\.1|localhost|::1) port (?:1080|3128|3142|7890|7897|8118|8889|10809)\b",
        "the proxy refuses the connection, requires a login, or does not answer",
        "Correct the proxy's address and login for this tool (http_proxy and https_proxy, usually both with http://; "
        "/etc/apt/apt.conf.d; Docker's unit), or exclude the server with no_proxy",
        "urllib3 connectionpool.py; curl http_proxy.c; apt http.cc; Go net/http",
        transient=False,
        sign=PROXY_REFUSES,
        treatment=ForPeople(),
    ),
    FailureRule(
        "name-resolution",
        r"(?:temporary failure (?:in name resolution|resolving)"
        r"|NameResolutionError|Failed to resolve '|\[Errno -[235]\])"
        r"|Could(?: not|n't) resolve (?:host|')"
        r"|unable to resolve host address"
        r"|(?:ping|ssh|wget|curl|failed): .*Name or service not known|failed: Name or service not known"
        r"|[Nn]ame does not resolve|getaddrinfo (?:EAI_AGAIN|ENOTFOUND|failed)"
        r"|lookup \S+(?: on \S+:)? (?:no such host|server misbehaving|Temporary failure)"
        r"|lookup \S+ on .*(?:i/o timeout|connection refused)"
        r"|Something wicked happened resolving|System error resolving|failed to lookup address information"
        r"|\b(?:EAI_AGAIN|EAI_NONAME|ENOTFOUND)\b|Resolving timed out|no address associated with (?:host)?name"
        r"|UnknownHostException"
        r"|nodename nor servname provided|bad address '[\w.-]{1,255}'|lookup \S+(?: on \S+:)? Try again"
        r"|dns error: failed to lookup"
        r"|getaddrinfo\b[^\n]*: name or service not known",
        "the host cannot resolve {the name QUESTION|names}",
        "Repair DNS on the host, or set a reachable mirror for apt and pip",
        "apt, pip, curl",
        unless=r"(?:^| )sudo: ",
        names=(
            r"(?:resolv(?:e|ing)(?: host(?: address)?:?)?|lookup|ENOTFOUND|EAI_AGAIN|bad address) ['\"‘`]?"
            r"(?P<question>[A-Za-z0-9][\w-]{0,62}(?:\.[\w-]{1,62}){1,8})",
            r"host='(?P<question>[^'\n]{1,200})'",
            r"(?:ping|ssh|wget|curl): (?P<question>[A-Za-z0-9][\w.-]{1,200}): ",
        ),
        transient=True,
    ),
)

#: failure rule for a server without TLS. apt then also reports missing Release files, so the rules for these follow.
PLAIN = FailureRule(
    "tls-answered-plainly",
    r"An unexpected TLS packet was received|SSL routines[^\n]{0,60}wrong version number"
    r"|first record does not look like a TLS|server gave HTTP response to HTTPS client",
    "a client used https on a port without TLS: usually a proxy that is set as https:// and only supports http, or a "
    "repository or registry without a certificate",
    "Set the proxy with http:// for both kinds (https_proxy=http://PROXY:3128; Acquire::https::Proxy in "
    "/etc/apt/apt.conf.d; Docker's unit). If no proxy is intended, check the server on that port (curl -v "
    "http://HOST:PORT), and if that is right, name it with http:// or as an insecure registry",
    "GnuTLS; OpenSSL; Go crypto/tls; element-hq/element-web#9097",
    transient=False,
)

HANDSHAKE = FailureRule(
    "tls-handshake",
    r"gnutls_handshake\(\) failed|Could not handshake: |TLS handshake timeout|curl: \(35\) "
    r"|\[SSL: (?:TLSV1_ALERT_PROTOCOL_VERSION|SSLV3_ALERT_HANDSHAKE_FAILURE|UNSUPPORTED_PROTOCOL)\]"
    r"|SSL routines[^\n]{0,60}(?:handshake failure|unsupported protocol|alert (?:protocol version|internal error))"
    r"|\btls: (?:handshake failure|protocol version not supported|first record does not look like a TLS)"
    r"|remote error: tls: |TLS connection was non-properly terminated|SSL_ERROR_SYSCALL",
    "the server, or a firewall or proxy, closed the connection during the TLS handshake: a temporary network "
    "failure, or a TLS version or name that the other side rejects",
    "Try it from the host (curl -v the address above). If a second try works, provision again. If none does, check "
    "the proxy or firewall and the host's age (OpenSSL before 1.0.1 has no TLS 1.2), or use a mirror",
    "apt connect.cc; GnuTLS; OpenSSL; Go crypto/tls",
    unless=r"(?-i:NCCL)|sshd|nginx|haproxy",
    transient=True,
)

NETWORK = (
    FailureRule(
        "download-interrupted",
        r"Could not connect to .*[Cc]onnection (?:refused|timed out)"
        r"|(?:connection reset by peer"
        r"|NewConnectionError|(?:Read|Connect)TimeoutError|[Rr]ead timed out|RemoteDisconnected|[Cc]onnection broken: )"
        r"|Error reading from server|Failed to connect to \S+ port [0-9]"
        r"|IncompleteRead|The read operation timed out|Failed to (?:download"
        r"|fetch)[^\n]*(?:\n[^\n]*){0,3}?operation timed"
        r" out|set UV_HTTP_TIMEOUT"
        rf"|connect \([0-9]{{1,3}}: {_ERRNO}|Connection failed \[IP|[Cc]onnection timed out \[IP"
        r"|Unable to connect to \S+:(?:https?|[0-9]{1,5}):"
        r"|curl: \((?:7|18|28|52|55|56|92)\) |transfer closed with"
        r"|dial tcp\b.*(?:connection refused|i/o timeout|no route to host"
        r"|network is unreachable)|Client\.Timeout exceeded"
        rf"|(?:Failed to|could not) fetch .+[ :] {_AWAY}\s{{1,3}}|The requested URL returned error: {_AWAY}"
        rf"|(?-i:ERROR {_AWAY}: )"
        rf"|HTTP error {_AWAY}|\b{_AWAY} (?:Client|Server) Error: |too many {_AWAY} error responses"
        rf"|unexpected HTTP status: {_AWAY}|toomanyrequests: "
        r"|requests\.exceptions\.(?:ConnectionError|ChunkedEncodingError)"
        r"|Max retries exceeded with url|SSLEOFError|UNEXPECTED_EOF_WHILE_READING|EOF occurred in violation of protocol"
        r"|\bearly EOF\b|RPC failed; (?:curl|HTTP)"
        r"|remote end hung up unexpectedly"
        r"|net/http: request canceled|Too Many Requests|CondaHTTPError"
        r"|Cannot initiate the connection to"
        r"|(?:HTTP error|returned error:|Server Error:) 5[0-9]{2}\b|(?-i:ERROR 5[0-9]{2}: )"
        r"|\b50[234]\s{1,3}(?:Bad Gateway|Service Unavailable|Gateway Time-?out)"
        r"|Connecting to [^\n]+\.\.\. failed: (?:Connection|Network|No route)"
        r"|Read error at byte"
        r"|curl: \((?:16|95|97)\) |Connection timed out after|Operation timed out after"
        r"|(?:Get|Post|Head) \\?\"?https?://\S+ ?[^\n]*(?:context deadline exceeded|: EOF$|i/o timeout)",
        "{SERVER|a mirror or a package index} did not answer, or closed the connection, at every attempt",
        "Check from the host whether it answers (curl -I the address above); use another mirror, or provision later",
        "apt, pip, curl",
        unless=r"(?-i:NCCL|CUDA)|c10d|gloo/|socket\.cpp|TCPStore|sshd|kex_|nginx|haproxy|next endpoint|cudaGet|cuInit"
        rf"|{_SERVED}",
        names=(SERVER, r"host='(?P<server>[^'\n]{1,200})'", r"(?:onnect to|Connecting to) (?P<server>[\w.-]{1,200})"),
        transient=True,
    ),
    FailureRule(
        "download-damaged",
        r"Hash Sum mismatch|DO NOT MATCH THE HASHES|File has unexpected size|Bad header line"
        r"|Datei hat eine unerwartete Größe|computed checksum did NOT match|layer verification failed for digest"
        r"|is not a Debian format archive|dpkg-deb: error: .*unexpected end of file|corrupted filesystem tarfile"
        r"|lzma error: compressed data is corrupt|Encountered a section with no Package: header|Error in (?:check sums"
        r"|(?:MD5|SHA256) checksums)|gzip: stdin: (?:unexpected end|invalid compressed)|tar: Unexpected EOF in archive"
        r"|BadZipFile|not a valid DEB archive|(?:archive|file) .*is truncated or corrupt|Corrupted archive"
        r"|Invalid archive (?:signature|member)|Tar checksum failed|package cache file is corrupted|not in gzip format"
        r"|File is not a zip file|Error -3 while decompressing|failed to register layer: [^\n]*(?:unexpected EOF"
        r"|invalid tar header|archive/tar)|ApplyLayer[^\n]*unexpected EOF|(?:checksum|sha256|md5"
        r"|digest)(?:sum)?s? (?:mismatch|do(?:es)? not match|verification failed|check failed)|[Hh]ash mismatch for ."
        r"|Wheel '[^'\n]{1,300}' located at \S{1,300} is invalid|sha256sum: WARNING: |layer verification failed"
        r"|Writing more data than expected|sent an invalid (?:Content|reply)",
        "a downloaded file does not match its index: a proxy, or a mirror in the middle of an update",
        "Provision again. If it persists, bypass the proxy or use another mirror",
        "apt, pip; vectorch-ai/ScaleLLM#286",
        variants=(
            Variant(
                r"File has unexpected size|Mirror sync in progress|unerwartete Größe",
                "the repository's lists do not match each other: a mirror, or the vendor's own network, is in the "
                "middle of an update, or a private mirror is stale",
                "Wait and run apt-get update again, or provision again. If it persists for hours, have the mirror "
                "synchronised, or use the vendor's own address. Until then, if nothing from it must be installed, "
                "remove the list from /etc/apt/sources.list.d. Keys, clock and this host's lists are not the cause",
            ),
            Variant(
                r"DO NOT MATCH THE HASHES|[Hh]ash mismatch for|located at \S{1,300} is invalid",
                "the wheel that pip downloaded does not match its hash in the index or the constraints: a truncated "
                "or old copy in pip's cache, a proxy or a mirror",
                "Empty the cache (pip cache purge; uv cache clean) and repeat the command, or provision again. If it "
                "persists, find the proxy or mirror that changes or truncates files. Do not disable the hash check",
            ),
        ),
        transient=True,
    ),
    FailureRule(
        "download-refused",
        r"Failed to fetch [^\n]+[ :] 40[13]\s{1,3}|The requested URL returned error: 40[13]\b|ERROR 40[13]: "
        r"|40[13] Client Error: [^\n]+ for url|HTTP error 40[13]\b|\b40[13]\s{1,3}(?:Forbidden|Unauthorized)\b"
        r"|pull access denied for |requested access to the resource is denied|unauthorized: (?:authentication|incorrect"
        r"|access)"
        r"|unexpected status(?: code)?[^\n]*: 40[13] |failed to authorize: ",
        "the server denies this file to this host: it requires a login or a subscription, or does not serve this "
        "address or country; registries report the same for an image that does not exist",
        "First check the name. Then log in (docker login, apt's auth.conf.d, pip's index with a token), or use a "
        "mirror that has the file",
        "RFC 9110, 401 and 403; apt http.cc; moby distribution/errors.go",
        transient=False,
    ),
    FailureRule(
        "download-missing",
        r"Failed to fetch .+ 404 |HTTP error 404|The requested URL returned error: 404|ERROR 404: Not Found"
        r"|404 Client Error: .+ for url: https?:|\b404  Not Found"
        r"|HTTP(?: status(?: code)?)?:? ?404\b|404:? Not Found|status code:? 404",
        "a file is no longer at its address, or the address is wrong{: ADDRESS|}",
        "Run apt-get update and try again: a list that is older than the mirror names deleted files. If it persists, "
        "compare the address with the server's content (an old release moves to an archive; the file of CUDA 11.2.2 "
        "ends in 11.2.2-460.32.03-1, not 460.27.04)",
        "conda-forge/cudatoolkit-feedstock",
        unless=_SERVED,
        names=(r"(?:etch|for url:|url) {1,3}['\"]?(?P<address>https?://[^\s'\"@]{1,300})",),
        variants=(
            Variant(
                r"for url|requested URL|HTTP error|HTTP status|ERROR 404",
                cure="Compare the address with the server's content: a name, version or branch in it is wrong, or "
                "was removed; some servers answer 404 if a login is missing. For a package, run apt-get update "
                "first (the file of CUDA 11.2.2 ends in 11.2.2-460.32.03-1, not 460.27.04)",
            ),
        ),
    ),
)

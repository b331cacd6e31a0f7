# told COMMAND...: run it; where it fails, what it printed, and as the last line what that means for a registry.
: "${at:?}"
told() {
  if output=$("$@" 2>&1); then
    printf '%s\n' "$output"
    return 0
  fi
  printf '%s\n' "$output" >&2
  echo "hostwright: error: the registry $at $(reason "$output")" >&2
  return 1
}

reason() { # OUTPUT of Docker. The order counts: old versions advise on certificates after every failure.
  log='its log says why: journalctl -u docker-registry on its host'
  case $1 in
  *'dial tcp: lookup '* | *'no such host'* | *'server misbehaving'*)
    echo "is known by no address: this host cannot resolve its name; repair DNS or /etc/hosts here" ;;
  *'connection refused'* | *'no route to host'* | *'i/o timeout'* | *'network is unreachable'* | *'connection reset'* | \
    *'Client.Timeout exceeded'* | *'context deadline exceeded'* | *'TLS handshake timeout'*)
    echo "does not answer: see on its host whether it runs (systemctl status docker-registry), and whether a firewall" \
      "is in the way; then run this again" ;;
  *'x509: certificate has expired'* | *'is not yet valid'*)
    echo "has a certificate that is not valid now: compare the clocks (timedatectl) of both hosts, then provision its" \
      "host, which renews its own certificate" ;;
  *'x509: certificate signed by unknown authority'* | *'x509: certificate is not trusted'*)
    echo "has a certificate of an authority that this host does not know: run \`invoke registry.trust\`, then provision" \
      "this host with the role registry" ;;
  *x509:*)
    echo "has a certificate that is not for this name: name it as its certificate does (registry_at), or provision its" \
      "host with the new name" ;;
  *'server gave HTTP response to HTTPS client'* | *'first record does not look like a TLS handshake'*)
    echo "answers without TLS: another program listens there, or it was set up by hand; provision its host" ;;
  *'manifest unknown'* | *'manifest for '*' not found'*)
    echo "no longer has this image: run images.push again, which brings it" ;;
  *denied* | *nauthorized* | *'no basic auth credentials'*)
    echo "wants a login, which Hostwright does not keep: docker login on each host, or take the one of the role registry" ;;
  *'no space left on device'*) echo "sent more than this host's disk has room for: make room (docker image prune)" ;;
  *'unexpected HTTP status: 500'* | *'unexpected status'*500*) echo "failed itself, often for want of room on its disk: $log" ;;
  *'unexpected HTTP status: '*)
    echo "is not what answered, but something between: a proxy of this host's Docker that must leave it out (NO_PROXY" \
      "in docker.service), or one in front of it" ;;
  *) echo "was not the end of it: $log" ;;
  esac
}

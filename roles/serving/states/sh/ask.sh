# How scripts ask a model server on the host's loopback.
get() { # PORT PATH: the body of the answer
  # shellcheck disable=SC2016  # bash's own variables
  timeout 10 bash -c '
    exec 3<>"/dev/tcp/127.0.0.1/$1" || exit 1
    printf "GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n" "$2" >&3
    cat <&3' get "$1" "$2" 2>/dev/null | tr -d '\r' | sed '1,/^$/d'
}

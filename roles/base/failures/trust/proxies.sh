# `proxy SCHEME ADDRESS` for each proxy that apt uses, without a login, and what apt says when it fetches a
# repository's first file through it; `finder SCHEME PROGRAM` where a program names the proxy (Proxy-Auto-Detect) and
# fails, and what apt says then. It is apt that asks, with the login that it would use; without a proxy nothing is asked.
# shellcheck disable=SC2016  # apt's own expressions
export LC_ALL=C
# On most hosts nothing names a proxy: then apt, which takes as long as many greps, is not started.
[ -n "${APT_CONFIG-}${http_proxy-}${https_proxy-}${all_proxy-}" ] ||
  grep -qisE 'proxy|#include' /etc/apt/apt.conf /etc/apt/apt.conf.d/* || exit 0
# A user's name is often an address of mail: a login ends at the last @.
config=$(apt-config dump --format '%f=%v%n' Acquire 2>/dev/null)
set_to() { printf '%s\n' "$config" | sed -n "s/^Acquire::$1=//Ip" | tail -n 1; }
for scheme in http https; do
  # apt.conf(5): what is set there counts before the environment, and for https what is set for http; DIRECT is none.
  proxy=$(set_to "$scheme::Proxy")
  [ -n "$proxy" ] || proxy=$(set_to http::Proxy)
  if [ -z "$proxy" ]; then
    proxy=$(env | sed -n "s/^${scheme}_proxy=//p" | head -n 1)
    [ -n "$proxy" ] || proxy=$(env | sed -n 's/^all_proxy=//p' | head -n 1)
  fi
  finder=$(set_to "$scheme::Proxy-Auto-Detect")
  [ -n "$finder" ] || finder=$(set_to "$scheme::ProxyAutoDetect")
  case $finder$proxy in ''|DIRECT) continue ;; esac
  address=$(timeout -k 1 5 apt-get indextargets --no-release-info --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' \
    2>/dev/null | grep "^$scheme://" | head -n 1)
  [ -n "$address" ] || continue
  suite=${address##* } address=${address%% *}
  case $suite in */) address=$address$suite ;; '') ;; *) address=${address}dists/$suite/ ;; esac
  if [ -n "$finder" ]; then
    status=0
    answer=$(timeout -k 1 8 /usr/lib/apt/apt-helper auto-detect-proxy "${address}InRelease" 2>&1 </dev/null) || status=$?
    if [ "$status" -ne 0 ]; then
      [ "$status" -lt 124 ] || answer='E: it did not end within 8 s'
      printf 'finder %s %s\n%s\n' "$scheme" "$finder" "$(printf '%s\n' "$answer" | grep '^E: ' | sed 's|://[^ ]*@|://|g')"
      continue
    fi
    answer=$(printf '%s\n' "$answer" | sed -n "s/^Using proxy '\(.*\)' for URL .*/\1/p" | tail -n 1)
    [ -z "$answer" ] || proxy=$answer  # without an answer, what is set otherwise counts
  fi
  case $proxy in ''|DIRECT) continue ;; esac
  printf 'proxy %s %s\n' "$scheme" "$(printf '%s\n' "$proxy" | sed 's|://.*@|://|')"
  timeout -k 1 8 /usr/lib/apt/apt-helper -o Acquire::Retries=0 -o Acquire::http::Timeout=4 -o Acquire::https::Timeout=4 \
    download-file "${address}InRelease" /dev/null 2>&1 | sed 's|://[^/ ]*@|://|g'
done
exit 0

# `proxy SCHEME ADDRESS` for each proxy that apt uses, without a login, and what apt says when it fetches a
# repository's first file through it. It is apt that asks, with the login that it would use; without a proxy nothing is
# asked.
# shellcheck disable=SC2016  # apt's own expressions
export LC_ALL=C
# A user's name is often an address of mail: a login ends at the last @.
config=$(apt-config dump --format '%f=%v%n' Acquire 2>/dev/null)
for scheme in http https; do
  # apt.conf(5): what is set there counts before the environment; DIRECT is none.
  proxy=$(printf '%s\n' "$config" | sed -n "s/^Acquire::$scheme::Proxy=//Ip" | tail -n 1)
  if [ -z "$proxy" ]; then
    proxy=$(env | sed -n "s/^${scheme}_proxy=//p" | head -n 1)
    [ -n "$proxy" ] || proxy=$(env | sed -n 's/^all_proxy=//p' | head -n 1)
  fi
  case $proxy in ''|DIRECT) continue ;; esac
  address=$(timeout -k 1 5 apt-get indextargets --no-release-info --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' \
    2>/dev/null | grep "^$scheme://" | head -n 1)
  [ -n "$address" ] || continue
  suite=${address##* } address=${address%% *}
  case $suite in */) address=$address$suite ;; '') ;; *) address=${address}dists/$suite/ ;; esac
  printf 'proxy %s %s\n' "$scheme" "$(printf '%s\n' "$proxy" | sed 's|://.*@|://|')"
  timeout -k 1 8 /usr/lib/apt/apt-helper -o Acquire::Retries=0 -o Acquire::http::Timeout=4 -o Acquire::https::Timeout=4 \
    download-file "${address}InRelease" /dev/null 2>&1 | sed 's|://[^/ ]*@|://|g'
done
exit 0

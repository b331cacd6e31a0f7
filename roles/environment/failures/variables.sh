# Assignments that mention CUDA, FILE:NUMBER:LINE, at most $most, those in system-wide files first. $nl and homes are
# those of the engine's homes probe.
: "${most:?}"
# shellcheck disable=SC2154
IFS=$nl; set -f; set --
for home in $(homes); do
  for name in .bashrc .bash_profile .bash_login .profile .zshrc .zshenv .zprofile .pam_environment; do
    [ ! -f "$home/$name" ] || set -- "$@" "$home/$name"
  done
done
set +f
system='/etc/environment
/etc/profile
/etc/bash.bashrc
/etc/zsh/zshenv'
# shellcheck disable=SC2086  # a path a line
grep -anHsE -m 20 '^[^#]*(PATH|CUDA_[A-Z_]+|XLA_FLAGS)[+]?=.*cuda' -- $system /etc/profile.d/*.sh "$@" |
  cut -c1-500 | head -n "$most"
exit 0

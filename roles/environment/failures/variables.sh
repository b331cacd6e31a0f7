# Assignments that mention CUDA, choose GPUs, take ways from NCCL or set the loader's path, and PATH in files of pam_env's, FILE:NUMBER:LINE, at most $most,
# those in system-wide files first; then what `has` says of the directories on those paths,
# `shadows PATH` for modules that TensorFlow imports, in those of PYTHONPATH, and `gone PATH` for a file of authorities, a
# preloaded library or a TMPDIR that is not there, also of pip's own settings. Needs `has`, and $nl and homes of the engine's homes
# probe. Only regular files of at most 1 MiB are read, and through a link none of root's: a user's link to a file of the kernel's, such as /proc/kmsg or
# /proc/kcore, would never end.
: "${most:?}"
shadows() {
  for name in numpy tensorflow keras h5py google absl six.py wrapt typing_extensions.py sitecustomize.py; do
    if [ -e "$1/$name" ]; then echo "shadows $1/$name"; fi
  done
}
gone() { if [ ! -e "$1" ]; then echo "gone $1"; fi; }
# shellcheck disable=SC2154
IFS=$nl; set -f; set --
links=
for home in $(homes); do
  for name in .bashrc .bash_profile .bash_login .profile .zshrc .zshenv .zprofile .pam_environment .nccl.conf; do
    if [ ! -f "$home/$name" ]; then continue; fi
    if [ -L "$home/$name" ]; then links=$links$nl$home/$name; else set -- "$@" "$home/$name"; fi
  done
done
set +f
pam='/etc/environment
/etc/security/pam_env.conf'
system="$pam"'
/etc/profile
/etc/bash.bashrc
/etc/zsh/zshenv
/etc/nccl.conf'
files='TMPDIR|SSL_CERT_FILE|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|PIP_CERT|NODE_EXTRA_CA_CERTS|LD_PRELOAD'
sets='^[^#]*('$files')([+]?=|[[:space:]]+(DEFAULT|OVERRIDE)=)|^[^#]*(PATH|CUDA_[A-Z_]+|XLA_FLAGS)[+]?=.*cuda|^(export |declare -x )?CUDA_VISIBLE_DEVICES[ =]|^[^#]*(LD_LIBRARY_PATH|LD_PRELOAD|PYTHONPATH|PYTHONHOME)([+]?=|[[:space:]]+(DEFAULT|OVERRIDE)=)'
nccl='NCCL_((P2P|SHM|IB|NVLS)_DISABLE|NET|P2P_LEVEL|NVLS_ENABLE|ALGO|PROTO)'
sets="$sets|^[[:space:]]*(export |declare -x )?$nccl"'([[:space:]]*=|[[:space:]]+(DEFAULT|OVERRIDE)=)'
small() { find -L "$@" -exec grep -anHsE -m 20 "$sets" -- {} +; }
# shellcheck disable=SC2086  # a path a line
lines=$({
  grep -anHsE -m 20 '^[[:space:]]*(export[[:space:]]+)?PATH([[:space:]]+(DEFAULT|OVERRIDE))?=' $pam | grep -v cuda
  grep -anHsE -m 20 '^[[:space:]]*cert[[:space:]]*=' /etc/pip.conf /etc/xdg/pip/pip.conf
  small $system /etc/profile.d/*.sh "$@" -maxdepth 0 -type f -size -2049
  [ -z "$links" ] || small $links -maxdepth 0 -type f -size -2049 ! -uid 0
} 2>/dev/null | cut -c1-500 | head -n "$most")
[ -n "$lines" ] || exit 0
printf '%s\n' "$lines"
set -f
for line in $lines; do
  case $line in
    *LD_LIBRARY_PATH*) look=has rest=${line#*LD_LIBRARY_PATH} ;;
    *PYTHONPATH*) look=shadows rest=${line#*PYTHONPATH} ;;
    *TMPDIR[=\ ]* | *SSL_CERT_FILE* | *_CA_BUNDLE* | *PIP_CERT* | *_CA_CERTS* | *LD_PRELOAD*) look=gone rest=${line#*[A-Z]=} ;;
    *pip.conf:*) look=gone rest=${line#*=} ;;
    *) continue ;;
  esac
  file=${line%%:*}
  IFS='=:;"'\''	 '
  for part in $rest; do
    # shellcheck disable=SC2088,SC2016  # as they are written there
    case $part in
      '$HOME'/* | '~'/*) $look "${file%/*}/${part#*/}" ;;
      '${HOME}'/*) $look "${file%/*}/${part#*/}" ;;
      /*) part=${part%%\$*} && $look "${part%/}" ;;  # of /opt/lib${PYTHONPATH:+:$PYTHONPATH} the directory
    esac
  done
  IFS=$nl
done
exit 0

# "USER GROUP MODE PATH", with tabs, of each of root's $places, and of what lies directly in $folders, that somebody else
# owns or may write to. Whoever may write there decides what root runs, or trusts. A link counts as what it leads to;
# that of a masked unit leads to /dev/null, where everybody writes and nobody reads anything.
# Debian's group staff may write to /usr/local, by its policy: who is in it is root.
: "${places:?}"
: "${folders:?}"
others() {
  find -L "$@" \( -type f -o -type d \) \( ! -uid 0 -o -perm -002 -o -perm -020 ! -gid 0 \) \
    -printf '%u\t%g\t%m\t%p\n' 2>/dev/null
}
eval "set -- $places"
others "$@" -maxdepth 0 ! -group staff
eval "set -- $folders"
others "$@" -maxdepth 1
exit 0

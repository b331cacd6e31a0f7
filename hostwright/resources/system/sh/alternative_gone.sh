# Takes the choice $target from the name $name; the name leads where it led before, if that is still a choice, else
# where the system chooses. A link of others that was no alternative, and what was moved aside, come back to $link where
# nothing is now. $choices and $chosen: where the system keeps the name's choices, and which one that is; $kept…: their
# copies, and the link's, of before. Needs oldest_back and forget.
: "${name:?}"
: "${link:?}"
: "${target:?}"
: "${choices:?}"
: "${chosen:?}"
: "${kept_choices:?}"
: "${kept_chosen:?}"
: "${kept_link:?}"
is_choice() {
  { update-alternatives --list "$name" 2>/dev/null || true; } | grep -qxF -e "$1"
}
if is_choice "$target"; then
  update-alternatives --remove "$name" "$target"
  by=$(sed -n 1p "$kept_choices" 2>/dev/null || true)
  was=$(readlink -- "$kept_chosen" || true)
  if [ "$by" = manual ] && is_choice "$was"; then
    update-alternatives --set "$name" "$was"
  fi
fi
# Another choice of ours, of a former stack, may have the name yet: whoever takes that puts the link back.
forgotten=yes
case $(readlink -- "$kept_link" || true) in
  ''|"$chosen") ;;
  *) if [ -e "$link" ] || [ -L "$link" ]; then forgotten=; else cp -aT -- "$kept_link" "$link"; fi ;;
esac
oldest_back "$link"
if [ -n "$forgotten" ]; then
  forget "$link"
  forget "$choices"
  forget "$chosen"
fi

# What there is of the choice $target for the name $name, a word a line: `registered`, `kept` (at $link was a link of
# others, $kept, which was no alternative), `aside` (something at $link was moved aside). The last two where nothing is
# at $link now. The choice is another's where the host's original state is recorded ($record) and
# we never changed $link (then $mark were there): it was right when we came.
: "${name:?}"
: "${link:?}"
: "${target:?}"
: "${kept:?}"
: "${chosen:?}"
: "${mark:?}"
: "${record:?}"
if update-alternatives --list "$name" | grep -qxF -e "$target"; then
  if [ -e "$mark" ] || [ ! -e "$record" ]; then echo registered; fi
fi
if [ -e "$link" ] || [ -L "$link" ]; then exit 0; fi
case $(readlink -- "$kept") in ''|"$chosen") ;; *) echo kept ;; esac
for old in "$link".before-hostwright.*; do
  if [ -e "$old" ] || [ -L "$old" ]; then echo aside; break; fi
done
exit 0

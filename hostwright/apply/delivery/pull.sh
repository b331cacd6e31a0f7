# The host fetches one file from this machine or from another host into $folder/$file.part, and gives it its name once it
# has the sum. It can be run again after any interruption: what has arrived is continued, from whichever source. Standard
# input is that of $program (pull.pl): first the token, and its end calls everything off.
# It prints "at BYTES" and "alive", and as its last line "done", "wrong SUM", "failed WORD …" or "called off".
: "${program:?}"
: "${folder:?}"
: "${file:?}"
: "${sum:?}"
: "${size:?}"
: "${address:?}"
: "${port:?}"
set -eu; umask 022
if ! command -v perl >/dev/null; then echo 'failed perl it has no perl'; exit 0; fi
mkdir -p "$folder"; cd "$folder"; file=./$file part=$file.part
# openssl has the processor's instructions for it, Debian's sha256sum has not: 2 to 4 times as fast
hash=sha256sum; if command -v openssl >/dev/null; then hash='openssl dgst -sha256 -r'; fi
bytes() { stat -c %s -- "$part" 2>/dev/null || echo 0; }
# What an earlier connection left behind may still fetch this file, and nobody can tell it to stop: let it.
exec 9<.
before=-1 same=0
until flock -n 9; do
  at=$(bytes)
  if [ "$at" = "$before" ]; then same=$((same + 1)); else before=$at same=0; fi
  if [ "$same" -ge 30 ]; then echo 'failed locked something else on it holds this file'; exit 0; fi
  echo "at $at"
  sleep 1
done
fetched=$part
if [ -f "$file" ]; then
  fetched=$file
else
  status=0
  perl -e "$program" -- "$address" "$port" "$sum" "$part" "$size" || status=$?
  case $status in
    0) ;;
    10) exit 0 ;;
    142) echo 'failed connect no name server answers'; exit 0 ;;
    *) echo 'called off'; exit 0 ;;
  esac
fi
(while sleep 5 >/dev/null 2>&1; do echo alive; done) 9<&- </dev/null & beat=$!
trap 'kill $beat 2>/dev/null || :' EXIT
found=$($hash <"$fetched"); found=${found%% *}
if [ "$found" != "$sum" ]; then rm -f -- "$fetched"; echo "wrong $found"; exit 0; fi
if [ "$fetched" = "$part" ]; then
  chmod 0644 -- "$part"
  sync -- "$part"
  mv -f -- "$part" "$file"
  sync .
fi
echo 'done'

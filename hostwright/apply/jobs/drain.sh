# Its standard input to its standard output, as it comes; of more than $1 bytes the beginning and the last $2. It reads
# on when nothing can be written. stdbuf: head would hand on nothing before it has 4 KiB.
stdbuf -o0 head -c "$(($1 - $2))"
rest=$(tail -c "$(($2 + 1))"; echo .)
rest=${rest%.}
if [ "${#rest}" -gt "$2" ]; then
  rest=${rest#?}
  printf '\nhostwright: %s bytes of this output are kept: those above, and its last %s:\n' "$1" "$2"
fi
printf %s "$rest"

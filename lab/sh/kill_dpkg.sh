# Waits (60 s) until the process in $! has come to the point, and kills its session.
: "${work:?}"
count=0
until [ -e "$work/begun" ] && [ -n "$(ls /var/lib/dpkg/updates)" ]; do
    count=$((count + 1))
    if [ "$count" -gt 3000 ] || ! kill -0 $!; then cat "$work/log" >&2; kill -KILL -$! || true; exit 1; fi
    sleep 0.02
done
kill -KILL -$!

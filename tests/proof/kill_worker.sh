# Waits until this host's worker of the proof has sent $bytes to another one on $port, in the middle of its training,
# and kills it. Prints how many steps of the wait it took.
: "${port:?}"
: "${bytes:?}"
worker() { pgrep -o -f '[w]orkers[.]py'; }
sent() { ss -tinH "( sport = :$port or dport = :$port )" | grep -o 'bytes_acked:[0-9]*' | cut -d : -f 2 | sort -n | tail -n 1; }
n=0
until pid=$(worker) && most=$(sent) && [ "${most:-0}" -ge "$bytes" ]; do
  n=$((n + 1))
  [ "$n" -le 12000 ] || { echo "no worker sent $bytes bytes"; exit 1; }
  sleep 0.02
done
kill -9 "$pid"
echo "killed after $n looks"

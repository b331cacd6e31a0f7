# Each cache entry for this machine's architecture in the cache's order, then each directory with its links resolved, except
# a link at /usr/local itself. It fails if the cache cannot be read, which must not count as an empty cache.
all=$(/sbin/ldconfig -p) || exit 1
entries=$(printf '%s\n' "$all" | sed -nE \
's/^[[:space:]]*(lib(cuda|cudart|cublas|cublasLt|cufft|curand|cusolver|cusparse|cudnn[a-z_]*|cupti)\.so\.[0-9.]+)'\
' \(libc6,x86-64[^)]*\) => (.*)$/entry\t\1\t\3/p')
printf '%s\n' "$entries"
usr_local=$(readlink -m -- /usr/local)
printf '%s\n' "$entries" | sed -nE 's,^entry\t[^\t]*\t(/.*)/[^/]*$,\1,p' | sort -u | while read -r directory; do
  real=$(cd -P -- "$directory" && pwd)
  case $real in "$usr_local"/*) real=/usr/local${real#"$usr_local"} ;; esac
  printf 'directory\t%s\t%s\n' "$directory" "$real"
done
exit 0

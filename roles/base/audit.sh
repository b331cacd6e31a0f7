cpu=; microcode=
while IFS=: read -r name value; do
  case $name in "model name"*) cpu=${value# } ;; microcode*) microcode=${value# }; break ;; "") break ;; esac
done </proc/cpuinfo
say cpu "$cpu"; say microcode "$microcode"
read -r _ kilobytes _ </proc/meminfo
say memory "$(((kilobytes + 524288) / 1048576)) GiB"
value=off; f=/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c
if [ -r $f ]; then case $(od -An -tu1 -j4 -N1 $f) in *1*) value=on ;; esac; fi
say 'secure boot' $value

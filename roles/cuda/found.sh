for home in /usr/local/cuda-[0-9]* /opt/cuda-[0-9]* /usr/local/cuda /opt/cuda /usr/lib/cuda; do
  [ -d "$home" ] && [ ! -h "$home" ] || continue
  [ -x "$home/bin/nvcc" ] || [ -d "$home/targets" ] || [ -f "$home/version.json" ] || continue
  version=; of_cuda=; lines=0
  for file in "$home/version.json" "$home/version.txt"; do
    [ -f "$file" ] && [ -r "$file" ] && [ -z "$version" ] || continue
    while [ $lines -lt 40 ] && IFS= read -r line; do
      lines=$((lines + 1))
      case $line in
        *'"cuda"'*) of_cuda=1 ;;
        *'"version"'*) if [ -n "$of_cuda" ]; then version=${line#*:}; break; fi ;;
        'CUDA Version '*) version=${line#CUDA Version }; break ;;
      esac
    done <"$file"
  done
  row toolkit "$home" "$version"
done

# The conflicts of apt's last run of dpkg, at most eight, each with the line before it, which names the archive.
tail -c 262144 /var/log/apt/term.log 2>/dev/null | awk '
  /^Log started: / { count = 0 }
  / trying to overwrite / { lines[++count] = last $0 }
  { last = $0 }
  END { for (n = 1; n <= count && n <= 8; n++) print lines[n] }'

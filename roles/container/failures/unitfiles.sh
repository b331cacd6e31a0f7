# What systemd reads of $units: "unit NAME FILE" for each file of theirs in /etc, with "of FILE" after it where the file covers
# the package's; "gone NAME PATH FILE" of each file that one needs to start (EnvironmentFile=, the program of ExecStart=) and
# that is not there, with the files that name it; and "replaced NAME PATH" where a unit runs from a program that was
# replaced on the disk since. One systemctl, whose output the shell reads alone: this runs in every audit.
: "${units:?}"
eval "set -- $units"
newline='
'
unit() { # NAME PROPERTIES
  files='' needs='' main=0
  IFS=$newline; set -f
  for line in $2; do
    value=${line#*=}
    case $line in
      FragmentPath=* | DropInPaths=*) files="$files $value" ;;
      EnvironmentFiles=/*' (ignore_errors=no)') needs=$needs$newline${value% (*} ;;
      ExecStart='{ path=/'*) value=${value#*=}; needs=$needs$newline${value%% ;*} ;;
      MainPID=*) main=$value ;;
    esac
  done
  unset IFS
  for file in $files; do
    case $file in /etc/systemd/system/*) ;; *) continue ;; esac
    below=
    for place in /lib/systemd/system /usr/lib/systemd/system; do
      if [ "$file" = "/etc/systemd/system/$1" ] && [ -f "$place/$1" ]; then below=" of $place/$1"; fi
    done
    echo "unit $1 $file$below"
  done
  IFS=$newline
  for path in $needs; do
    case $path in *[\ \*?]*) continue ;; esac
    [ -e "$path" ] || gone "$1" "$path" "$files"
  done
  unset IFS; set +f
  program=$(readlink "/proc/$main/exe") || return 0
  case $program in /*' (deleted)') echo "replaced $1 ${program% (deleted)}" ;; esac
}
gone() { # NAME PATH FILES
  unset IFS
  # shellcheck disable=SC2086 # a name each
  echo "gone $1 $2 $(grep -lsF -- "$2" $3 | tr '\n' ' ')"
  IFS=$newline
}
block=
while IFS= read -r line && [ $# -gt 0 ]; do
  case $line in
    '') unit "$1" "$block"; block=; shift ;;
    *) block=$block$newline$line ;;
  esac
done <<END
$(systemctl show -p FragmentPath -p DropInPaths -p EnvironmentFiles -p ExecStart -p MainPID -- "$@")

END
exit 0

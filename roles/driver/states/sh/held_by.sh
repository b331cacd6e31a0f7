# held_by PREFIX: the modules of others that use the driver's $modules, which cannot be unloaded while one is loaded.
: "${modules:?}"
held_by() {
  before=$1
  eval "set -- $modules"
  for module; do
    for other in "/sys/module/$module/holders"/*; do
      case " $* * " in *" ${other##*/} "*) ;; *) echo "$before${other##*/}" ;; esac
    done
  done
}

# What the link $link and those of the venvs $homes that have a $marker hold, one thing a line, its words between tabs.
# Needs users_files. Nothing is imported and nothing is hashed but $constraints, a file in each venv. Its status is $no_perl
# where the files of a venv cannot be compared: perl, which every Debian has, does that in half the time of awk and stat.
# shellcheck disable=SC2016  # the program is perl's
: "${link:?}"
: "${homes?}"
: "${marker:?}"
: "${constraints:?}"
: "${stem:?}"
: "${no_perl:?}"
target=$(readlink -- "$link")
printf 'link\t%s\n' "$target"
if [ -d "$link" ] && [ ! -L "$link" ]; then printf 'instead\ta directory\n'
elif [ -e "$link" ] && [ ! -L "$link" ]; then printf 'instead\ta file\n'; fi
# pip's RECORDs are rows of path, hash and size; headers, caches and files outside of site-packages and bin/ are left out.
# Of each package the first file that is missing or of another size is named; one in bin/ may be longer by the venv's path.
damage='
  my $longer = shift;
  chdir shift or exit 1;
  for my $record (@ARGV) {
    open(my $rows, "<:raw", $record) or next;
    local $/;
    my $text = <$rows>;
    while ($text =~ /^([^",\n]*),sha256=[^,\n]*,?(\d*)/gm) {
      my ($path, $size) = ($1, $2 || 0);
      next if index($path, "include/") >= 0 && $path =~ m{(?:^|/)include/};
      next if index($path, "__pycache__/") >= 0 && $path =~ m{(?:^|/)__pycache__/};
      my $script = 0;
      if (index($path, "../") == 0) { $script = index($path, "../../../bin/") == 0 or next }
      lstat $path;
      next if -f _ && (-s _ == $size || $script && -s _ == $size + $longer);
      print "damage\t", $record =~ m{^([^/]*)}, "\t$path\n";
      last;
    }
  }
'
# What people put into the venvs $stem-pyX.Y-KEY that a new link leaves, or that are built anew; where the link leads to a
# whole one that is wanted, that is neither.
for home in "$stem"-py3.*-????????????; do
  if [ "$home" = "$target" ]; then
    set -- "$home"/lib/python3*/site-packages
    [ ! -d "$1" ] || case " $homes " in *[\ \']"$home"[\ \']*) continue ;; esac
  fi
  [ ! -d "$home" ] || users_files "$home" | while IFS= read -r path; do printf 'added\t%s\t%s\n' "$home" "$path"; done
done
audited() {
  [ -e "$1/$marker" ] || return 0
  home=$1
  set -- "$home"/lib/python3*/site-packages
  site=$1
  printf 'home\t%s\n' "$home"
  [ -x "$home/bin/python" ] || printf 'gone\tinterpreter\n'
  [ -d "$site/pip" ] || printf 'gone\tpip\n'
  [ -x "$site/." ] || { printf 'gone\tsite-packages\n'; return 0; }
  sum=$(sha256sum <"$home/$constraints") && printf 'constraints\t%s\n' "${sum%% *}"
  set --
  for dist in "$site"/*.dist-info; do
    dist=${dist##*/}
    if [ -s "$site/$dist/RECORD" ]; then
      set -- "$@" "$dist/RECORD"
      printf 'dist\t%s\trecorded\n' "$dist"
    else
      printf 'dist\t%s\tbare\n' "$dist"
    fi
  done
  [ $# -eq 0 ] || perl -e "$damage" "$((${#home} + 5))" "$site" "$@" || return "$no_perl"
}
each() { for home; do audited "$home" || return; done; }
eval "set -- $homes"
each "$@"

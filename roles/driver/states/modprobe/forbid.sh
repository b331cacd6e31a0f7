# The lines that we commented out are read again, and what we put in the place of a file elsewhere goes.
: "${etc:?}"
: "${mark:?}"
set -eu
grep -ls "^$mark" "$etc"/*.conf | while IFS= read -r file; do
  if head -n 1 -- "$file" | grep -q "^${mark}in place of "; then
    rm -f -- "$file"
  else
    sed -i "s/^$mark//" -- "$file"
  fi
done

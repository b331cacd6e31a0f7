# Whether the kernel would load what DKMS builds: `off`, `enrolled FILE` (Secure Boot is on, and the firmware knows the
# certificate of dkms's signing key), `pending FILE` (it waits to be confirmed at the console), `made FILE`, or `on` where
# there is no key.
# The variable's fifth byte is its value, after four bytes of attributes. MOK.der is Ubuntu's key, mok.pub that of dkms 3.
: "${variable:?}"
: "${keys:?}"
state=off
if [ -e "$variable" ] && [ "$(od -An -tu1 -j4 -N1 "$variable" | tr -d ' ')" = 1 ]; then
  state=on
  eval "set -- $keys"
  for key; do
    [ -e "$key" ] || continue
    case $(mokutil --test-key "$key") in
      *'already enrolled'*) state="enrolled $key"; break ;;
      *'enrollment request'*) state="pending $key" ;;
      *) state="made $key" ;;
    esac
  done
fi
echo "$state"

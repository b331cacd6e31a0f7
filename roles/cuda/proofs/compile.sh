# Compiles the program of a proof: $1 is its source, $2 the program. The host compiler is $compiler; where that is empty,
# nvcc's own choice, and where nvcc refuses this as too new for it, the newest g++ that it takes. Needs older_gcc.
# nvcc's own choice of architecture is its lowest: the driver compiles that for the card, before anything is timed.
: "${toolkit:?}"
: "${compiler?}"
: "${libraries?}"
source=$1
program=$2
build() {
    "$toolkit/bin/nvcc" -std=c++14 -O2 -Xcompiler -pthread "$@" -o "$program" "$source" ${libraries:+"$libraries"} \
        >"$program.log" 2>&1
}

build ${compiler:+-ccbin "$compiler"} && exit
newest=$(sed -n 's/.*gcc versions later than \([0-9]*\) are not supported.*/\1/p' "$program.log" | head -n 1)
if [ -z "$compiler" ] && [ -n "$newest" ]; then
    version=$(older_gcc "$newest") || { echo "error: nvcc takes gcc up to $newest, and there is none"; exit 1; }
    build -ccbin "g++-$version" && exit
fi
cat "$program.log"
exit 1

# Compiles a kernel and a program around it, which calls the runtime that is linked into it, and runs the program. The
# host compiler is $compiler; where that is empty, nvcc's own choice, as a user gets it. Where nvcc refuses this as too
# new, it prints "NEWEST HAVE" and exits with $refused.
: "${toolkit:?}"
: "${compiler?}"
: "${refused:?}"
work=$(mktemp -d) || exit; trap 'rm -rf "$work"' EXIT
cat >"$work/probe.cu" <<'END'
#include <cstdio>
#include <cuda_runtime.h>
__global__ void add(int *value) { *value += 1; }
int main() { cudaGetErrorString(cudaSuccess); std::printf("%d\n", CUDART_VERSION); }
END
compile() { "$toolkit/bin/nvcc" "$@" -o "$work/probe" "$work/probe.cu" 2>"$work/errors"; }

compile ${compiler:+-ccbin "$compiler"}; status=$?
newest=$(sed -n 's/.*gcc versions later than \([0-9]*\) are not supported.*/\1/p' "$work/errors" | head -n 1)
if [ -z "$compiler" ] && [ "$status" -ne 0 ] && [ -n "$newest" ]; then
    echo "$newest $(gcc -dumpversion)"; exit "$refused"
fi
cat "$work/errors" >&2
[ "$status" -eq 0 ] && "$work/probe"

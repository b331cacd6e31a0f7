"""Host compilers for nvcc. Each CUDA toolkit rejects gcc newer than some version."""

from __future__ import annotations

from dataclasses import dataclass

from hostwright.resources import Facts, Probe, Resource
from hostwright.roles import sh_file, whole

#: whether an older g++ is ``installed``, or ``offered`` by apt → advice for the operator
_OLDER = {
    "installed": "{0} is installed here; for nvcc to use it, set `compiler: {0}` in the stack's `cuda`, or make it "
    "the host's default (update-alternatives --set g++ /usr/bin/{0}, and gcc alike)",
    "offered": "apt offers {0}; to install it for nvcc, set `compiler: {0}` in the stack's `cuda`",
}

#: shell function ``older_gcc NEWEST`` that prints the newest installed g++ that nvcc accepts
OLDER_GCC = sh_file(__file__, "older_gcc.sh")
REFUSED = 80  #: exit status for a host compiler that nvcc rejects (our choice)


def compile_script(toolkit: str, compiler: str) -> str:
    """Return a script that compiles and runs a CUDA program, and prints the version of the toolkit's headers.

    ``compiler``: path of nvcc's host compiler; empty: nvcc's own choice.
    """
    values = {"toolkit": toolkit, "compiler": compiler, "refused": REFUSED}
    return sh_file(__file__, "compile.sh", **values)


@dataclass(frozen=True, slots=True)
class HostCompiler(Resource):
    """The host has a gcc that nvcc accepts. A newer gcc only adds a note to the plan."""

    cuda: str
    newest: int  #: major version of the newest gcc that nvcc accepts
    compiler: str = ""  #: package of the compiler that the stack declares for nvcc; empty without a declaration

    def probes(self) -> tuple[Probe, ...]:
        script = sh_file(__file__, "compilers.sh", newest=self.newest, compiler=self.compiler)
        return (Probe(OLDER_GCC + script, shared=True),)

    def plan(self, _facts: Facts) -> None:
        return None

    def removal(self) -> tuple[Resource, ...]:
        return ()

    def notes(self, facts: Facts) -> tuple[str, ...]:
        rows = (line.partition(" ")[::2] for line in facts[self.probes()[0]].text.splitlines())
        versions = {key: number for key, value in rows if (number := whole(value)) is not None}
        if "missing" in versions:
            return (
                f"the stack names {self.compiler} for nvcc, which is neither installed on the host nor offered by apt",
            )
        have = versions.get("gcc", 0)
        if have <= self.newest:
            return ()
        sentence = f"nvcc of CUDA {self.cuda} accepts gcc up to {self.newest}, and this host has gcc {have}"
        for key, remedy in _OLDER.items():
            if key in versions:
                return (f"{sentence}; {remedy.format(f'g++-{versions[key]}')}",)
        return (f"{sentence}; apt offers no older one, so nvcc cannot compile here",)

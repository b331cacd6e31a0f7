"""The compilers of a host that nvcc works with: each toolkit takes gcc up to some version, and refuses newer ones."""

from __future__ import annotations

from dataclasses import dataclass

from hostwright.resources import Facts, Probe, Resource
from hostwright.roles import sh_file, whole

#: what can be done where an older g++ is there, or is to be had
_OLDER = {
    "installed": "{0} is installed here, and nvcc uses it once the stack's `cuda` has `compiler: {0}`, or once it is"
    " the host's own (update-alternatives --set g++ /usr/bin/{0}, and gcc alike)",
    "offered": "apt offers {0}, which is installed, and which nvcc uses, once the stack's `cuda` has `compiler: {0}`",
}

#: ``older_gcc NEWEST``: the newest installed g++ that nvcc takes
OLDER_GCC = sh_file(__file__, "older_gcc.sh")
REFUSED = 80  #: our choice of an exit status: nvcc does not take the host's own compiler


def compile_script(toolkit: str, compiler: str) -> str:
    """A script that compiles a CUDA program and runs it, which prints the version of the toolkit's headers."""
    values = {"toolkit": toolkit, "compiler": compiler, "refused": REFUSED}
    return sh_file(__file__, "compile.sh", **values)


@dataclass(frozen=True, slots=True)
class HostCompiler(Resource):
    """The host has a gcc that nvcc works with. Nothing is changed for that: what is missing is a note of the plan.

    The stack says which compiler nvcc gets where the distribution's own is too new, and that is installed.
    """

    cuda: str  #: the toolkit's version
    newest: int  #: the newest gcc that it takes
    compiler: str = ""  #: the package that the stack names

    def probes(self) -> tuple[Probe, ...]:
        script = sh_file(__file__, "compilers.sh", newest=self.newest, compiler=self.compiler)
        return (Probe(OLDER_GCC + script, shared=True),)

    def plan(self, _facts: Facts) -> None:
        return None

    def removal(self) -> tuple[Resource, ...]:
        return ()

    def notes(self, facts: Facts) -> tuple[str, ...]:
        """Which gcc is too new, and what can be done about it."""
        rows = (line.partition(" ")[::2] for line in facts[self.probes()[0]].text.splitlines())
        versions = {key: number for key, value in rows if (number := whole(value)) is not None}
        if "missing" in versions:
            return (
                f"the stack names {self.compiler} for nvcc: it is not installed here, nor does apt offer it so far",
            )
        have = versions.get("gcc", 0)
        if have <= self.newest:
            return ()
        sentence = f"nvcc of CUDA {self.cuda} compiles with gcc up to {self.newest}, and this host's is {have}"
        for key, remedy in _OLDER.items():
            if key in versions:
                return (f"{sentence}; {remedy.format(f'g++-{versions[key]}')}",)
        return (f"{sentence}; as long as apt offers no older one, nvcc compiles nothing here",)

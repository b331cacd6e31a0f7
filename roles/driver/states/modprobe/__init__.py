"""Lines of ``modprobe.d`` and of the kernel's command line that block the driver's modules, and how to remove them.

Lines in files in /etc are commented out. A file elsewhere is overridden by a file of the same name in /etc/modprobe.d
(modprobe.d(5)).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from hostwright.resources import (
    DPKG_LOCK,
    NO_IDENTITY,
    UPDATE_INITRAMFS,
    Change,
    Facts,
    Probe,
    Resource,
    Step,
    few,
    words_set,
)
from hostwright.roles import Pattern, sh, sh_file

ETC = "/etc/modprobe.d"
#: directories in modprobe.d(5)'s order. A file hides files of the same name in later directories.
DIRECTORIES = (ETC, "/run/modprobe.d", "/usr/local/lib/modprobe.d", "/usr/lib/modprobe.d", "/lib/modprobe.d")
NEEDED = ("nvidia", "nvidia_uvm")  #: names of the kernel modules that CUDA needs
#: kernel modules of the driver; the last two are for displays
FAMILY = (*NEEDED, "nvidia_modeset", "nvidia_drm")
#: prefix of a commented-out line, without special characters of sed and grep
MARK = "# commented out by Hostwright: "

#: shell function ``unmasked``, which omits lines of configuration files that another file of the same name overrides
UNMASKED = sh_file(__file__, "unmasked.sh")
MODPROBE = Probe(UNMASKED + sh_file(__file__, "modprobe.sh", directories=" ".join(DIRECTORIES)), shared=True)
_MARKED = Probe(sh("grep -ls %s %s/*.conf; :", f"^{MARK}", ETC), shared=True)

_ROW = Pattern(r"(/[^:\n]{1,300}):([0-9]{1,7}):\s*(alias|blacklist|install|remove)\s+(nvidia\S*)\s*(.*)")
_OPTIONS = Pattern(r"/[^:\n]{1,300}:[0-9]{1,7}:\s*options\s+nvidia\s(.*)")
_MODE = Pattern(r"\bNVreg_DeviceFileMode=(0[xX][0-9a-fA-F]{1,4}|[0-9]{1,6})\b")
_EXCLUDED = Pattern(r"\bNVreg_(?:ExcludedGpus|AssignGpus|GpuBlacklist)=\S")
_WORD = Pattern(r"kernel ((?:module_|modprobe\.)blacklist=\S+)")
#: pattern of commands in modprobe.d that load no module
_LOADS_NOTHING = Pattern(r"(?:/usr)?(?:/bin/)?(?:false|true|:|exit|echo|logger)\b.*|:")
#: file name prefixes of Debian's open and proprietary modules
_ON_DISK = ("nvidia_current_open", "nvidia_current")
_FAILS = Pattern(r".*(?:;|&&)\s*(?:(?:/usr)?/bin/)?false\s*")


@dataclass(frozen=True, slots=True)
class ConfigLine:
    """Line in ``modprobe.d``: ``alias nvidia off`` has the pattern ``nvidia`` and the value ``off``."""

    path: str
    number: int
    keyword: str
    pattern: str
    value: str

    def concerns(self, module: str) -> bool:
        """Return whether the line applies to the module ``module``. In a blacklist line, the name is not a pattern."""
        pattern = as_module(self.pattern)
        return pattern == module if self.keyword == "blacklist" else fnmatchcase(module, pattern)

    def __str__(self) -> str:
        return f"{self.path}:{self.number}: {self.keyword} {self.pattern} {self.value}".rstrip()


def as_module(name: str) -> str:
    """Return ``name`` with underscores in place of hyphens, as the kernel spells module names."""
    return name.replace("-", "_")


def forbidding(text: str, *, renamed: bool = False) -> tuple[ConfigLine, ...]:
    """Return the ``modprobe.d`` lines that block the driver's modules. ``text``: output of ``MODPROBE``.

    Only files that block a module in ``NEEDED`` count. ``renamed``: whether the driver is Debian's, whose ``install``
    lines load modules.
    """
    rows = [ConfigLine(m[1], int(m[2]), m[3], m[4], m[5].strip()) for m in map(_ROW.fullmatch, text.splitlines()) if m]
    # modprobe reads files in the order of the file names
    rows.sort(key=lambda row: (row.path.rpartition("/")[2], row.number))
    needed = {row.path for module in NEEDED for row in _against(module, rows, renamed) if row.keyword != "remove"}
    against = {row: None for module in FAMILY for row in _against(module, rows, renamed) if row.path in needed}
    return tuple(row for row in rows if row in against)


def private_devices(text: str) -> tuple[str, ...]:
    """Return the ``modprobe.d`` lines in ``text`` that restrict /dev/nvidia* to root or a group."""
    found = []
    for line in text.splitlines():
        row = _OPTIONS.fullmatch(line)
        mode = _MODE.search(row[1]) if row else None
        if mode and int(mode[1], 16 if mode[1][:2] in ("0x", "0X") else 8 if mode[1][:1] == "0" else 10) & 0o6 != 0o6:
            found.append(line)
    return tuple(found)


def excluded(text: str) -> tuple[str, ...]:
    """Return the ``modprobe.d`` lines in ``text`` that exclude GPUs from the driver."""
    rows = ((line, _OPTIONS.fullmatch(line)) for line in text.splitlines())
    return tuple(line for line, row in rows if row and _EXCLUDED.search(row[1]))


def _against(module: str, rows: Sequence[ConfigLine], renamed: bool) -> Iterator[ConfigLine]:
    commands = 0
    for row in rows:
        if row.concerns(module):
            commands += row.keyword == "install"
            match row.keyword:
                case "alias":
                    # An alias for another module blocks this module.
                    against = _called(row.value, renamed) != module
                case "install":
                    against = commands == 1 and bool(_LOADS_NOTHING.fullmatch(row.value))
                    against = against or _for_another(row.value, module, renamed)
                case "remove":
                    against = _for_another(row.value, module, renamed)
                case _:
                    against = True
            if against:
                yield row


def _called(name: str, renamed: bool) -> str:
    module = as_module(name)
    found = [name for name in _ON_DISK if renamed and module.startswith(name)]
    return f"nvidia{module.removeprefix(found[0])}" if found else module


def _for_another(value: str, module: str, renamed: bool) -> bool:
    if _FAILS.fullmatch(value):
        return True
    commands = [command.split() for command in value.translate({ord(sign): ";" for sign in "&|"}).split(";")]
    if not all(command[0].rpartition("/")[2] == "modprobe" for command in commands if command):
        return False
    return bool(value) and module not in {_called(word, renamed) for command in commands for word in command[1:]}


def blacklisted_by(words: Sequence[str]) -> tuple[str, ...]:
    """Return words of a kernel command line that block a module in ``NEEDED``, such as
    ``modprobe.blacklist=nvidia``.
    """
    pairs = ((word, word.partition("=")) for word in words)
    return tuple(
        word
        for word, (key, _, names) in pairs
        if key in {"module_blacklist", "modprobe.blacklist"} and {*map(as_module, names.split(","))} & {*NEEDED}
    )


def at_this_boot(text: str) -> tuple[str, ...]:
    """Return words of the running kernel's command line that block a module in ``NEEDED``. ``text``: output of
    ``MODPROBE``.
    """
    return blacklisted_by([match[1] for match in map(_WORD.fullmatch, text.splitlines()) if match])


@dataclass(frozen=True, slots=True)
class ModulesAllowed(Resource):
    """No line in ``modprobe.d`` blocks nvidia or nvidia-uvm."""

    renamed: bool = field(default=False, metadata=NO_IDENTITY)

    def probes(self) -> tuple[Probe, ...]:
        return (MODPROBE,)

    def plan(self, facts: Facts) -> Change | None:
        rows = forbidding(facts[MODPROBE].text, renamed=self.renamed)
        if not rows:
            return None
        paths = tuple(dict.fromkeys(row.path for row in rows))
        script = sh_file(__file__, "allow.sh", etc=ETC, mark=MARK) + "".join(
            sh("allow %s %s\n", path, "\n".join(_comment_out(row) for row in rows if row.path == path))
            for path in paths
        )
        steps = (Step(script), Step(UPDATE_INITRAMFS, lock=DPKG_LOCK))
        have = few([str(row) for row in rows])
        return Change("modules at boot", have, "nvidia and nvidia-uvm may be loaded", steps, warnings=_warnings(paths))

    def notes(self, facts: Facts) -> tuple[str, ...]:
        """Return notes about words on the kernel's command line, or in GRUB's configuration, that block the modules."""
        text = facts[MODPROBE].text
        return (
            *(f"the kernel's command line has {word}, which blocks the driver's module; remove it from "
              "/etc/default/grub or /etc/default/grub.d, run update-grub and reboot"
              for word in at_this_boot(text)),
            *(f"{where} has {' '.join(words)}, which blocks the driver's module at the next boot after update-grub; "
              "remove it and run update-grub"
              for where, all_words in words_set(text) if (words := blacklisted_by(all_words))),
        )  # fmt: skip

    def removal(self) -> tuple[Resource, ...]:
        return (LinesBack(),)


def _comment_out(row: ConfigLine) -> str:
    return rf"{row.number}s/^[[:space:]]*{row.keyword}[[:space:]]/{MARK}&/"


def _warnings(paths: Sequence[str]) -> tuple[str, ...]:
    inside = [path for path in paths if path.rpartition("/")[0] == ETC]
    outside = [path for path in paths if path not in inside]
    return (
        *([f"comments out lines in {few(inside)}, which Hostwright did not write"] if inside else []),
        *([f"leaves {few(outside)} unchanged and overrides it with a file of the same name in {ETC}"]
          if outside else []),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class LinesBack(Resource):
    """No line in ``modprobe.d`` remains commented out by Hostwright."""

    def probes(self) -> tuple[Probe, ...]:
        return (_MARKED,)

    def plan(self, facts: Facts) -> Change | None:
        paths = facts[_MARKED].text.splitlines()
        if not paths:
            return None
        script = sh_file(__file__, "forbid.sh", etc=ETC, mark=MARK)
        return Change("modules at boot", f"our changes to {few(paths)}", "as before them", (Step(script),))

    def removal(self) -> tuple[Resource, ...]:
        return ()

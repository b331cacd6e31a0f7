"""Parser for the configuration of GRUB and systemd-boot: the kernel that a host boots next, and its command line.

GRUB boots ``next_entry`` of its environment block once, afterwards the menu's ``default``: usually a constant or
``saved_entry``. Both values are a number, a title or an id, with ``>`` before an entry of a submenu. If no entry
matches, GRUB boots the first entry. GRUB reads only the menu that ``update-grub`` generates from /etc/default/grub and
/etc/default/grub.d.

systemd-boot boots the entry in the firmware's variables, else the first that matches ``default`` of loader.conf (a
pattern of file names), else the first of all. Entries are sorted by sort-key, then by version, newest first
(loader.conf(5), Boot Loader Specification). systemd-boot's files are read here only if GRUB has no menu.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from hostwright.common.quoting import sh_file
from hostwright.common.untrusted import Match, Pattern
from hostwright.plan.model import Probe

BOOT_LOADER = Probe(sh_file(__file__, "sh/bootloader.sh"), root=True)

_NUMBERED = Pattern(r"([0-9]{1,7}):\s*(.*)")
_SETTING = Pattern(r"(/[^:\n]{1,200}:[0-9]{1,7}):\s*(?:export\s+)?(GRUB_\w{1,40})=(.*)")
_DEFAULT = Pattern(r"set\s+default=(?:\"([^\"]*)\"|'([^']*)'|(\S*))\s*;?\s*")
_ENTRY = Pattern(r"(menuentry|submenu)\s+(?:'([^']*)'|\"([^\"]*)\"|([^\s{'\"]+))(.*)")
_ID = Pattern(r"(?:--id|\$\{?menuentry_id_option\}?)[=\s]\s*(?:'([^']*)'|\"([^\"]*)\"|([^\s{'\"]+))")
_LINUX = Pattern(r"(?:^|\s)linux(?:16|efi)?\s+(\S+)([^;]*)")
#: kernel version in a menu entry's title or id, such as ``Debian GNU/Linux, with Linux 6.1.0-9-amd64``
_VERSION = Pattern(r"[0-9]{1,3}\.[0-9]{1,4}[\w.+~-]{0,80}")
#: line of systemd-boot's settings with path, line number, key and value
_ROW = Pattern(r"(/[^:\n]{1,300}):([0-9]{1,7}):([a-z-]{1,20})\s+(.*)")
MOST_DIGITS = 6
NO_LOADER = "/boot/grub has no configuration of GRUB"


@dataclass(frozen=True, slots=True)
class NextBoot:
    """The next boot of a host. ``kernel`` is a version as in ``uname -r``; if it is empty, ``unknown`` has the
    reason.
    """

    kernel: str = ""
    words: tuple[str, ...] = ()  #: words of the kernel's command line at the next boot
    where: str = ""  #: position (``FILE:LINE``) of the setting for the kernel and the command line
    why: str = ""  #: reason why the host will boot this kernel
    unknown: str = ""  #: reason why the kernel of the next boot is unknown


@dataclass(slots=True)
class _Entry:
    title: str
    id: str
    number: int = 0
    kernel: str = ""  #: path of the entry's kernel image
    words: tuple[str, ...] = ()
    entries: list[_Entry] = field(default_factory=list)


def next_boot(text: str, kernels: Iterable[str]) -> NextBoot:
    """Find the next boot in the output ``text`` of ``BOOT_LOADER``. ``kernels`` are versions, newest first."""
    rows = [line.partition(" ")[::2] for line in text.splitlines()]
    of = {kind: [value for key, value in rows if key == kind] for kind in ("config", "grub", "env", "default", "link")}
    env = dict(value.partition("=")[::2] for value in of["env"])
    settings = {match[2]: (match[1], _unquoted(match[3])) for match in map(_SETTING.fullmatch, of["default"]) if match}
    others = [value for key, value in rows if key == "other"]
    if not of["config"] and (entries := _systemd_entries([value for key, value in rows if key == "entry"])):
        return _by_systemd_boot(rows, entries)
    if of["config"]:
        return _by_menu(
            of["config"][0], of["grub"], env, dict(row.partition(" ")[::2] for row in of["link"]), tuple(kernels)
        )
    # GRUB's menu may be on a file system that is not mounted, and GRUB_DEFAULT then names the entry
    if "GRUB_DEFAULT" in settings and not others:
        where, value = settings["GRUB_DEFAULT"]
        chosen = _chosen([value], env)
        words = " ".join(settings.get(name, ("", ""))[1] for name in _CMDLINES).split()
        return _named(chosen, tuple(kernels), where, tuple(words))
    return NextBoot(
        unknown=f"the host uses {others[0]}, whose configuration Hostwright cannot read" if others else NO_LOADER
    )


_CMDLINES = ("GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_LINUX_DEFAULT")


def words_set(text: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Words of the kernel's command line that /etc/default/grub and grub.d set: pairs of ``FILE:LINE`` and words.

    Empty if another boot loader is in use.
    """
    lines = text.splitlines()
    if any(line.startswith("other ") for line in lines) and not any(line.startswith("config ") for line in lines):
        return ()
    rows = (line.removeprefix("default ") for line in lines)
    kept: list[Match] = []
    for row in (match for match in map(_SETTING.fullmatch, rows) if match and match[2] in _CMDLINES):
        added = Pattern(rf"\$\{{?{row[2]}\b").search(row[3])
        kept = [*(kept if added else (one for one in kept if one[2] != row[2])), row]
    return tuple((row[1], tuple(_unquoted(row[3]).split())) for row in kept)


def _by_menu(
    file: str, lines: Sequence[str], env: Mapping[str, str], links: Mapping[str, str], kernels: tuple[str, ...]
) -> NextBoot:
    numbered = [(int(match[1]), match[2].strip()) for match in map(_NUMBERED.fullmatch, lines) if match]
    menu, chosen = _menu(numbered), _chosen(_defaults(numbered), env)
    if any(line.startswith("blscfg") for _, line in numbered):
        return NextBoot(unknown=f"{file} loads its entries from /boot/loader/entries, which Hostwright cannot read")
    if not menu:
        return _named(chosen, kernels, file, ())
    entry = _entry(menu, chosen)
    where = f"{file}:{entry.number}"
    name = links.get(entry.kernel, links.get(f"/boot{entry.kernel}", entry.kernel)).rpartition("/")[2]
    kernel = name.removeprefix("vmlinuz-")
    if kernel == name:
        return NextBoot(where=where, unknown=f"GRUB's default entry '{entry.title}' ({where}) has no Linux kernel")
    return NextBoot(kernel, entry.words, where, f"GRUB's default entry is '{entry.title}' ({where})")


@dataclass(slots=True)
class _File:
    path: str
    values: dict[str, str] = field(default_factory=dict)
    line: int = 0

    @property
    def id(self) -> str:
        """Remove boot counters from the file name: ``x+3-1.conf`` becomes ``x.conf``."""
        return Pattern(r"\+[0-9]{1,4}(?:-[0-9]{1,4})?\.conf$").sub(".conf", self.path.rpartition("/")[2])

    @property
    def kernel(self) -> str:
        found = _VERSION.search(self.values.get("version", "")) or _VERSION.search(self.values.get("linux", ""))
        return found[0] if found else ""

    def key(self) -> tuple[object, ...]:
        sort = self.values.get("sort-key", "")
        newest = tuple(-int(part[0]) for part in Pattern("[0-9]{1,9}").finditer(self.values.get("version", self.id)))
        return (not sort, sort, self.values.get("machine-id", ""), newest)


def _systemd_entries(rows: Sequence[str]) -> list[_File]:
    files: dict[str, _File] = {}
    for match in filter(None, map(_ROW.fullmatch, rows)):
        entry = files.setdefault(match[1], _File(match[1]))
        entry.values.setdefault(match[3], match[4].strip())
        if match[3] == "linux":
            entry.line = int(match[2])
    return sorted((entry for entry in files.values() if entry.line), key=_File.key)


def _by_systemd_boot(rows: Sequence[tuple[str, str]], entries: Sequence[_File]) -> NextBoot:
    names = dict(value.partition(" ")[::2] for key, value in rows if key == "chosen")
    for name in ("LoaderEntryOneShot", "LoaderEntryDefault"):
        if value := names.get(name, "").strip():
            return _of_systemd(entries, value, f"the firmware's variable {name} is '{value}'")
    lines = [match for key, value in rows if key == "loader" and (match := _ROW.fullmatch(value))]
    if not lines:
        return _of_systemd(entries, "*", "systemd-boot uses its first entry")
    where, value = f"{lines[-1][1]}:{lines[-1][2]}", lines[-1][4].strip()
    return _of_systemd(entries, value, f"systemd-boot's default is '{value}' ({where})")


def _of_systemd(entries: Sequence[_File], pattern: str, why: str) -> NextBoot:
    if pattern.startswith("@"):  # @saved means a firmware variable, and Hostwright does not read firmware variables
        pattern = "*"
    exact = pattern.lower().removesuffix(".conf")
    found = [one for one in entries if fnmatchcase(one.id.lower(), pattern.lower())
             or one.id.lower().removesuffix(".conf") == exact]  # fmt: skip
    if not found and "/" not in pattern and pattern.endswith(".efi"):
        return NextBoot(unknown=f"{why}, a unified kernel image, which Hostwright cannot read")
    entry = (found or list(entries))[0]
    unknown = "" if entry.kernel else f"{entry.path} has no kernel version"
    words = tuple(entry.values.get("options", "").split())
    return NextBoot(entry.kernel, words, f"{entry.path}:{entry.line}", f"{why}: {entry.path}", unknown)


def _named(chosen: str, kernels: tuple[str, ...], where: str, words: tuple[str, ...]) -> NextBoot:
    name, why = chosen.rpartition(">")[2], f"GRUB's default is '{chosen}' ({where})"
    match = _VERSION.search(name)
    version = match[0].partition("-advanced-")[0].partition("-recovery-")[0] if match else ""
    kernel = (
        kernels[0] if chosen == "0" and kernels else max((k for k in kernels if k in name), key=len, default=version)
    )
    return NextBoot(kernel, words, where, why, "" if kernel else f"{why}, and GRUB's menu is missing")


def _chosen(defaults: Sequence[str], env: Mapping[str, str]) -> str:
    if once := env.get("next_entry"):
        return once
    last = defaults[-1] if defaults else ""
    return (env.get("saved_entry", "") if last in {"saved", "${saved_entry}", "$saved_entry"} else last) or "0"


def _defaults(lines: Sequence[tuple[int, str]]) -> list[str]:
    values = (match[1] or match[2] or match[3] or "" for _, line in lines if (match := _DEFAULT.fullmatch(line)))
    return [value for value in values if "next_entry" not in value]


def _menu(lines: Sequence[tuple[int, str]]) -> list[_Entry]:
    menu: list[_Entry] = []
    open_: list[_Entry] = []
    for number, line in lines:
        if match := _ENTRY.fullmatch(line):
            title, found = match[2] or match[3] or match[4] or "", _ID.search(match[5])
            entry = _Entry(title, (found[1] or found[2] or found[3] or title) if found else title, number)
            (open_[-1].entries if open_ else menu).append(entry)
            inside = match[5].partition("{")[2].strip()
            if inside.endswith("}"):
                _start(entry, number, inside.removesuffix("}"))
            else:
                open_.append(entry)
        elif line.startswith("}") and open_:
            open_.pop()
        elif open_:
            _start(open_[-1], number, line)
    return menu


def _start(entry: _Entry, number: int, line: str) -> None:
    if not entry.kernel and (match := _LINUX.search(line)):
        entry.kernel, entry.number, entry.words = match[1], number, tuple(match[2].split())


def _entry(menu: Sequence[_Entry], chosen: str) -> _Entry:
    path = [part.replace("\0", ">").strip() for part in chosen.replace(">>", "\0").split(">")]
    entry = _pick(menu, path.pop(0))
    while entry.entries:
        entry = _pick(entry.entries, path.pop(0) if path else "0")
    return entry


def _pick(menu: Sequence[_Entry], name: str) -> _Entry:
    if name.isascii() and name.isdigit():
        return menu[int(name)] if len(name) < MOST_DIGITS and int(name) < len(menu) else menu[0]
    return next((entry for entry in menu if name in {entry.title, entry.id}), menu[0])


def _unquoted(value: str) -> str:
    text = value.strip()
    if text[:1] in {"'", '"'}:
        return text[1:].partition(text[0])[0]
    return text.partition(" ")[0].partition("#")[0]

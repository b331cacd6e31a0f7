"""Lines of modprobe.d that keep the driver's module away: found where modprobe reads them, and taken out of the way."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostwright.plan.model import Answer, Change, Facts
from hostwright.resources.system.bootloader import BOOT_LOADER, next_boot
from hostwright.standard.roles.driver.states.modprobe import (
    DIRECTORIES,
    ETC,
    MODPROBE,
    LinesBack,
    ModulesAllowed,
    at_this_boot,
    blacklisted_by,
    forbidding,
)
from tests.unit.support.forks import forks
from tests.unit.support.shell import ask

PRIME = "blacklist nvidia\nalias nvidia off\nalias nvidia-drm off\nalias nvidia-modeset off\n"
PRIME_LINES = [f"/lib/modprobe.d/prime.conf:{n}: {line}" for n, line in enumerate(PRIME.splitlines(), 1)]
#: Debian's nvidia-kernel-common, which leaves its file behind
DEBIAN = """\
install nvidia modprobe -i nvidia-current $CMDLINE_OPTS
install nvidia_modeset modprobe nvidia ; modprobe -i nvidia-current-modeset $CMDLINE_OPTS
remove nvidia modprobe -r -i nvidia-current
"""
OWN = "/etc/modprobe.d/a.conf"  #: a file of somebody's


def there(folder: Path, files: dict[str, str]) -> dict[str, str]:
    """These files below a folder; what has no text is a link to /dev/null. By their names, their paths there."""
    for name, text in files.items():
        path = folder / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        if text:
            path.write_text(text)
        else:
            path.symlink_to("/dev/null")
    return {name: str(folder / name.lstrip("/")) for name in files}


def below(folder: Path, script: str) -> str:
    """A script with the directories of modprobe.d below a folder."""
    for directory in DIRECTORIES:
        script = script.replace(directory, f"{folder}{directory}") if directory != "/lib/modprobe.d" else script
    return script.replace(" /lib/modprobe.d", f" {folder}/lib/modprobe.d")


def found(folder: Path, files: dict[str, str]) -> list[str]:
    """What keeps a module away on a host with these files."""
    there(folder, files)
    status, text = ask(below(folder, MODPROBE.script))
    assert status == 0
    return [str(row).removeprefix(str(folder)) for row in forbidding(text)]


@pytest.mark.parametrize(
    "files, lines",
    [
        ({}, []),
        ({"/lib/modprobe.d/prime.conf": PRIME}, PRIME_LINES),
        ({OWN: "\tinstall nvidia-uvm /bin/false\n"}, [f"{OWN}:1: install nvidia-uvm /bin/false"]),
        (
            {"/run/modprobe.d/a.conf": "x\ninstall   nvidia  /usr/bin/true # no\n"},
            ["/run/modprobe.d/a.conf:2: install nvidia /usr/bin/true # no"],
        ),
        ({OWN: "alias nvidia nvidia-current\n"}, [f"{OWN}:1: alias nvidia nvidia-current"]),
        ({OWN: "alias nvidia* off\n"}, [f"{OWN}:1: alias nvidia* off"]),
        # another driver's modules, and commands that fail in the end
        ({OWN: DEBIAN}, [f"{OWN}:{n}: {line}" for n, line in enumerate(DEBIAN.splitlines(), 1)]),
        ({OWN: "install nvidia /opt/load\n" + DEBIAN[:56]}, [f"{OWN}:2: {DEBIAN[:55]}"]),
        ({OWN: "install nvidia modprobe i2c && /bin/false\n"}, [f"{OWN}:1: install nvidia modprobe i2c && /bin/false"]),
        (
            {OWN: "install nvidia-uvm modprobe -i nvidia-uvm; false\n"},
            [f"{OWN}:1: install nvidia-uvm modprobe -i nvidia-uvm; false"],
        ),
        ({OWN: "install nvidia modprobe i2c-dev; modprobe -i nvidia $CMDLINE_OPTS || /bin/false\n"}, []),
        ({OWN: "install nvidia [ -e /etc/x ] && modprobe y\nremove nvidia modprobe -r -i nvidia-uvm nvidia\n"}, []),
        # a display's modules, which no CUDA program needs, and words that load or only set something
        ({OWN: "blacklist nvidia_drm\nblacklist nvidiafb\nblacklist nouveau\n"}, []),
        ({OWN: "options nvidia a=1\nsoftdep nvidia pre: i2c\nalias char-major-195* nvidia\n"}, []),
        ({OWN: "install nvidia /sbin/modprobe --ignore-install nvidia; /bin/true\n"}, []),
        ({OWN: "# blacklist nvidia\n#install nvidia /bin/false\n"}, []),
        ({OWN: "alias nvidia_uvm nvidia-uvm\n"}, []),
        # what modprobe does not read
        ({"/etc/modprobe.d/a.conf.off": PRIME, "/etc/modprobe.d/b": PRIME}, []),
        ({"/usr/lib/modprobe.d/a.conf": PRIME, OWN: ""}, []),
        ({"/usr/lib/modprobe.d/a.conf": PRIME, "/run/modprobe.d/a.conf": "# ours\n"}, []),
        ({OWN: "install nvidia /opt/load\n", "/lib/modprobe.d/b.conf": "install nvidia /bin/false\n"}, []),
        (
            {
                "/etc/modprobe.d/b.conf": "install nvidia /opt/load\n",
                "/lib/modprobe.d/a.conf": "install nvidia /bin/false\n",
            },
            ["/lib/modprobe.d/a.conf:1: install nvidia /bin/false"],
        ),
    ],
)
def test_what_keeps_the_module_away_is_found(tmp_path: Path, files: dict[str, str], lines: list[str]) -> None:
    """canonical/nvidia-prime#20; modprobe.d(5) on which of several files of a name is read."""
    assert found(tmp_path, files) == lines


#: /etc/modprobe.d/nvidia.conf as Debian 13's nvidia-alternative 550.163.01-2 with its open module has it, in part
DEBIAN_OPEN = """\
install nvidia modprobe -i nvidia-current-open $CMDLINE_OPTS
install nvidia-uvm modprobe nvidia ; modprobe -i nvidia-current-open-uvm $CMDLINE_OPTS
remove nvidia modprobe -r -i nvidia-drm nvidia-modeset nvidia-peermem nvidia-uvm nvidia
alias char-major-195* nvidia
"""


@pytest.mark.parametrize("text", [DEBIAN, DEBIAN_OPEN, "alias nvidia nvidia-current\n"])
def test_debians_own_driver_is_loaded_by_lines_of_its_own(tmp_path: Path, text: str) -> None:
    there(tmp_path, {OWN: text})
    answer = Answer(*ask(below(tmp_path, MODPROBE.script)))
    assert ModulesAllowed(renamed=True).plan(Facts({MODPROBE: answer})) is None
    assert ModulesAllowed(renamed=False).plan(Facts({MODPROBE: answer})) is not None


def test_lines_that_keep_debians_own_driver_away_are_told(tmp_path: Path) -> None:
    there(tmp_path, {OWN: "install nvidia modprobe -i nvidia-legacy-390xx\ninstall nvidia-uvm /bin/false\n"})
    answer = Answer(*ask(below(tmp_path, MODPROBE.script)))
    planned = ModulesAllowed(renamed=True).plan(Facts({MODPROBE: answer}))
    assert planned is not None and planned.have.count("install") == 2


def test_a_plan_pays_one_process_for_it(tmp_path: Path) -> None:
    there(tmp_path, {OWN: "options nvidia a=1\n"})
    assert forks(below(tmp_path, MODPROBE.script)) <= 2  # a subshell, which is grep


def change(folder: Path, files: dict[str, str]) -> Change:
    """What is planned on a host with these files."""
    there(folder, files)
    planned = ModulesAllowed().plan(Facts({MODPROBE: Answer(*ask(below(folder, MODPROBE.script)))}))
    assert isinstance(planned, Change)
    return planned


def apply(folder: Path, planned: Change) -> None:
    script = planned.steps[0].script.replace(f"etc={ETC}", f"etc={folder}{ETC}")
    assert ask(script) == (0, "")


def test_nothing_keeps_it_away_afterwards_and_no_file_of_others_is_lost(tmp_path: Path) -> None:
    files = {
        "/usr/lib/modprobe.d/prime.conf": PRIME,
        "/etc/modprobe.d/own.conf": "options nvidia a=1\nblacklist nvidia\n",
    }
    planned = change(tmp_path, files)
    for _ in range(2):  # cut off, and run again
        apply(tmp_path, planned)
    assert found(tmp_path, {}) == []
    assert (tmp_path / "usr/lib/modprobe.d/prime.conf").read_text() == PRIME
    own = (tmp_path / "etc/modprobe.d/own.conf").read_text()
    assert own == "options nvidia a=1\n# commented out by Hostwright: blacklist nvidia\n"
    assert [path.name for path in (tmp_path / "etc/modprobe.d").iterdir()] == ["own.conf", "prime.conf"]


def test_a_plan_says_whose_lines_they_are() -> None:
    text = f"{OWN}:1:blacklist nvidia\n/lib/modprobe.d/prime.conf:1:alias nvidia off\n"
    planned = ModulesAllowed().plan(Facts({MODPROBE: Answer(0, text)}))
    assert isinstance(planned, Change)
    assert planned.have == f"{OWN}:1: blacklist nvidia; /lib/modprobe.d/prime.conf:1: alias nvidia off"
    assert planned.warnings == (
        f"comments out lines in {OWN}, which Hostwright did not write",
        "leaves /lib/modprobe.d/prime.conf unchanged and overrides it with a file of the same name in /etc/modprobe.d",
    )


def test_without_the_role_all_is_as_before(tmp_path: Path) -> None:
    files = {"/lib/modprobe.d/prime.conf": PRIME, "/etc/modprobe.d/own.conf": "\tblacklist nvidia\n"}
    apply(tmp_path, change(tmp_path, files))
    (probe,) = LinesBack().probes()
    status, text = ask(probe.script.replace(ETC, f"{tmp_path}{ETC}"))
    assert (status, len(text.splitlines())) == (0, 2)
    planned = LinesBack().plan(Facts({probe: Answer(0, text)}))
    assert planned is not None
    apply(tmp_path, planned)
    assert (tmp_path / "etc/modprobe.d/own.conf").read_text() == "\tblacklist nvidia\n"
    assert not (tmp_path / "etc/modprobe.d/prime.conf").exists()
    assert LinesBack().plan(Facts({probe: Answer(0, "")})) is None


def test_the_kernels_command_line_is_told_with_its_word() -> None:
    words = [
        "modprobe.blacklist=nouveau,nvidia_drm,nvidia",
        "module_blacklist=nvidiafb",
        "nvidia.x=1",
        "blacklist=nvidia",
    ]
    assert blacklisted_by(words) == ("modprobe.blacklist=nouveau,nvidia_drm,nvidia",)
    text = "kernel module_blacklist=nvidia-uvm\nkernel modprobe.blacklist=floppy\n"
    assert at_this_boot(text) == ("module_blacklist=nvidia-uvm",)
    assert ModulesAllowed().plan(Facts({MODPROBE: Answer(0, text)})) is None
    (note,) = ModulesAllowed().notes(Facts({MODPROBE: Answer(0, text)}))
    assert note.startswith("the kernel's command line has module_blacklist=nvidia-uvm, which blocks")


def test_the_boot_loaders_files_are_read_by_the_machines_own_shell(tmp_path: Path) -> None:
    """As update-grub of Debian 12 writes them."""
    menu = """\
if [ "${next_entry}" ] ; then
   set default="${next_entry}"
   set next_entry=
else
   set default="${saved_entry}"
fi
function savedefault {
  if [ -z "${boot_once}" ]; then
    saved_entry="${chosen}"
  fi
}
menuentry 'Debian GNU/Linux' --class debian $menuentry_id_option 'gnulinux-simple-1f' {
\tinsmod gzio
\tif [ x$grub_platform = xxen ]; then insmod xzio; insmod lzopio; fi
\tlinux\t/boot/vmlinuz-6.1.0-18-amd64 root=UUID=1f ro  quiet
\tinitrd\t/boot/initrd.img-6.1.0-18-amd64
}
submenu 'Advanced options for Debian GNU/Linux' $menuentry_id_option 'gnulinux-advanced-1f' {
\tmenuentry 'Debian GNU/Linux, with Linux 6.1.0-9-amd64' --class debian --id 'gnulinux-6.1.0-9-amd64-advanced-1f' {
\t\techo\t'Loading Linux 6.1.0-9-amd64 ...'
\t\tlinux\t/boot/vmlinuz-6.1.0-9-amd64 root=UUID=1f ro  quiet module_blacklist=nvidia
\t}
}
"""
    environment = (
        "# GRUB Environment Block\nsaved_entry=gnulinux-advanced-1f>gnulinux-6.1.0-9-amd64-advanced-1f\n" + "#" * 900
    )
    there(
        tmp_path,
        {"/boot/grub/grub.cfg": menu, "/boot/grub/grubenv": environment, "/etc/default/grub": "GRUB_DEFAULT=saved\n"},
    )
    script = BOOT_LOADER.script.replace("/boot/", f"{tmp_path}/boot/").replace("/etc/", f"{tmp_path}/etc/")
    status, text = ask(script)
    boot = next_boot(text, ())
    assert (status, boot.kernel, boot.words[-1]) == (0, "6.1.0-9-amd64", "module_blacklist=nvidia")
    assert boot.where == f"{tmp_path}/boot/grub/grub.cfg:21"
    (tmp_path / "boot/grub/grub.cfg").unlink()
    settled = next_boot(ask(script)[1], ("6.1.0-9-amd64",))
    assert (settled.kernel, settled.where) == ("6.1.0-9-amd64", f"{tmp_path}/etc/default/grub:1")
    assert next_boot(ask(script.replace(str(tmp_path), f"{tmp_path}/none"))[1], ()).unknown


def test_words_that_update_grub_will_put_on_the_command_line_are_told(tmp_path: Path) -> None:
    there(
        tmp_path,
        {
            "/etc/default/grub": 'GRUB_CMDLINE_LINUX_DEFAULT="quiet modprobe.blacklist=nvidia"\n'
            "GRUB_CMDLINE_LINUX=module_blacklist=nvidia\n#GRUB_CMDLINE_LINUX=module_blacklist=nvidia_uvm\n",
            "/etc/default/grub.d/10-a.cfg": 'GRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT splash"\n',
            "/etc/default/grub.d/20-b.cfg": "GRUB_CMDLINE_LINUX=\n",  # the former value is gone
        },
    )
    script = below(tmp_path, MODPROBE.script).replace("/etc/default", f"{tmp_path}/etc/default")
    (note,) = ModulesAllowed().notes(Facts({MODPROBE: Answer(0, ask(script)[1])}))
    assert note.startswith(f"{tmp_path}/etc/default/grub:1 has modprobe.blacklist=nvidia, which blocks")

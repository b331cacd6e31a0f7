"""Failures of apt and dpkg, and of the disks and networks that they need."""

from __future__ import annotations

from hostwright.failures import Covers, FailureRule, ForPeople, NoRoom, Variant
from hostwright.standard.roles.base.failures.apt import (
    APT_RULES,
    AT_WORK,
    CONFLICTING,
    GRUB_DEVICE,
    INTERRUPTED,
    LOCKED,
    MODULES_DEP,
    NOT_REMOVED,
    OVERWRITES,
    SCRIPT_FAILED,
    grub_device,
    modules_dep,
    not_removed,
    packages_of,
)
from hostwright.standard.roles.base.failures.disks import BOOT_IS_FULL, DISK_RULES, FULL
from hostwright.standard.roles.base.failures.hardware import HARDWARE
from hostwright.standard.roles.base.failures.host import HOST_RULES
from hostwright.standard.roles.base.failures.journal import UNIT_RULES
from hostwright.standard.roles.base.failures.kernel import BUILD_KILLED, KERNEL, KERNEL_FAULTS, KILLED
from hostwright.standard.roles.base.failures.network import HANDSHAKE, NETWORK, PLAIN, WAY
from hostwright.standard.roles.base.failures.rpm import RPM_RULES
from hostwright.standard.roles.base.failures.trust.signatures import SIGNATURES

#: pattern of an output line with the reason why a package script failed
WHY = (
    r"[^\n]*(?:[Ee]rror(?: |:)|ERROR|FATAL|[Ff]ailed|not found|No such |[Cc]annot|[Uu]nable to|denied|[Yy]ou must "
    r"|invalid (?:spec|user|group)|ungültige|"
    r"does not exist|exists during|already exists"
    r"|[Pp]lease |workaround is)[^\n]*"
)

#: pattern of dpkg's message about a failed removal script
REMOVAL_ENDED = (
    r"(?:pre|post)-removal (?:package )?script (?:subprocess )?returned error exit status"
    r"|script pre-removal install[^\n]*erreur"
)

#: pattern of dpkg's message about a failed package script
SCRIPT_ENDED = (
    r"(?:pre|post)-(?:installation|removal) (?:package )?script (?:subprocess )?returned error exit status"
    r"|subprocess (?:new|installed|old) \S+ script returned error exit status"
)

_DRIVER = r"(?:lib)?(?:nvidia|cuda-drivers|xserver-xorg-video-nvidia)[\w.+-]{0,60}(?::\w{1,10})?"

#: pattern of messages about lack of space that are not about a full disk
_NOT_FULL = r"directory watch|inotify|failed to watch|watcher|posix_fallocate failed|/dev/shm|</torch_|/sys/fs/cgroup"

#: failure rules for a full disk, first in order of precedence, because every tool then also prints another message
DISK = (
    FailureRule(
        "no-space",
        r"no space left on device|[Yy]ou (?:don't|do not) have enough free space|[Dd]isk quota exceeded"
        r"|[Nn]ot enough (?:free )?(?:disk space|space (?:in temporary|in /|on (?:device|disk|pari?t?ition)))"
        r"|[Ii]nsufficient disk space|(?:not|n't|no) (?:have )?enough space in /tmp|kein Speicherplatz mehr verf"
        r"|Aucun espace disponible sur|No queda espacio en el dispositivo|Spazio esaurito sul|Não há (?:mais )?espaço"
        r"|на устройстве не осталось свободного места|Brak miejsca na urz|设备上没有空间|デバイスに空き領域がありません"
        r"|Geen ruimte meer over op|low on resource: ephemeral-storage|out of disk space"
        r"|more space needed (?:in \S+ )?than available|\[Errno 28\]|\bENOSPC\b"
        r"|disk (?:is full|space is insufficient)|insufficient (?:free )?space|no (?:free )?disk space"
        r"|(?:not enough|no more|lack of) (?:free )?space (?:left )?on (?:the )?dis[ck]"
        r"|ran out of (?:disk )?space",
        "a filesystem is full",
        "Free space (df -h shows the filesystem, df -i one without free inodes; start with apt-get clean) and "
        "provision again",
        "dpkg, apt, pip",
        unless=_NOT_FULL,
        narrower=BOOT_IS_FULL,
        beside=r"error processing (?:archive|package) ",
        variants=(
            Variant(
                r"Could not install packages due to an",
                "pip has no space left: in its temporary directory (TMPDIR, else /tmp, often a small one in memory), "
                "in its cache, or in the environment's directory",
                "Find the full one (df -h /tmp ~/.cache PATH, df -i): give pip another temporary directory of "
                "several GB (TMPDIR=/var/tmp), empty its cache (pip cache purge), or free space there, and repeat "
                "the command; a framework with CUDA takes up to 10 GB",
            ),
        ),
        transient=False,
        sign=FULL,
        treatment=NoRoom(),
        weight="root cause",
    ),
    BUILD_KILLED,
    *HOST_RULES,
    *HARDWARE,
    *KERNEL,
    *DISK_RULES,
    *UNIT_RULES,
)

PACKAGES = (
    *RPM_RULES,
    FailureRule(
        "apt-lock",
        r"(?:^|[^ \n]|[^:\n] |[^k\n]: )Could not get lock /var/(?:lib|cache)/(?:dpkg|apt)"
        r"|(?:waiting for cache lock: [^\n]+[\r\n]{0,2}){2}"
        r"|Unable to acquire the dpkg frontend lock.*is another process using it"
        r"|dpkg (?:frontend|(?:status )?database) (?:lock was|is) locked by another process"
        r"|Unable to lock (?:the administration directory|directory /var/(?:lib|cache)/apt).*another process"
        r"|Failed to lock apt for exclusive operation"
        r"|dpkg (?:frontend|(?:status )?database) (?:lock )?was locked by|is locked by process",
        "{PROGRAM (PID)|another process} held apt's lock for longer than the ten minutes that a run waits",
        "Check {PROGRAM|the process} (fuser -v /var/lib/dpkg/lock-frontend; ps -p {PID|with its number} -o "
        "pid,etime,args), wait until it ends, and provision again; never delete the lock",
        "Azure/aks-engine#1538, #3068",
        names=(
            r"held by process (?P<pid>[0-9]{1,10}) \((?P<program>[^)\n]{1,60})\)",
            r"is held by (?P<program>\S{1,60}) \((?P<pid>[0-9]{1,10})\)",
        ),
        transient=True,
        sign=LOCKED,
    ),
    FailureRule(
        "apt-at-work",
        "",
        "apt or dpkg is at work on the host: the audit may read the middle of a change of packages, and a run waits "
        "for it, up to ten minutes",
        "Wait until it ends, or provision now: the run waits and reports the process. Never kill it, and never "
        "delete the lock",
        "dpkg(1), /var/lib/dpkg/lock-frontend; Azure/aks-engine#1538",
        sign=AT_WORK,
    ),
    FailureRule(
        "dpkg-interrupted",
        r"dpkg was interrupted|very bad inconsistent state"
        r"|must manually run '(?:sudo )?dpkg --configure|parsing file '/var/lib/dpkg/(?:status"
        r"|updates)\S*' near line"
        r"|[^\n]*needs to be reinstalled, but I can't find an archive",
        "dpkg was killed during its work, or failed on a package that a role of the host installs or removes",
        "Provision again: the base role first removes packages that a role of the host does not want, then finishes "
        "the pending ones. The plan lists each package whose scripts may restart a service with running work, and "
        "that work. If a package then still fails, it is reported: fix the error of its script",
        "apt",
        sign=INTERRUPTED,
        names=(r"package (?P<package>\S{1,100}) needs to be reinstalled",),
        variants=(
            Variant(
                r"needs to be reinstalled, but I can't find an archive",
                "PACKAGE is half installed, and dpkg must install it again before anything else; no repository of "
                "the host has its archive",
                "Get the archive: run apt-get update, then apt-get install --reinstall PACKAGE, or dpkg -i with its "
                ".deb. If nobody needs the package, dpkg --remove --force-remove-reinstreq PACKAGE removes it. Then "
                "provision again",
            ),
        ),
    ),
    FailureRule(
        "dpkg-database-damaged",
        r"files list file for package [^\n]+ (?:is missing final newline|contains empty filename)"
        r"|reading files list for package [^\n]+: (?:Is a directory|Input/output error)"
        r"|files list file for package [^\n]+ is truncated",
        "dpkg's own records are damaged, as after a power failure or a full disk",
        "First check the disk (dmesg). Move the package's /var/lib/dpkg/info/NAME.list aside and install it again; "
        "compare the status file with /var/backups/dpkg.status.0",
        "dpkg lib/dpkg/db-fsys-files.c",
    ),
    FailureRule(
        "apt-method-missing",
        r"The method driver \S+ could not be found|Unable to find expected method"
        r"|the package apt-transport-\w{1,12} installed",
        "an apt repository uses a transport (https, tor, s3) for which this apt has no program",
        "Install the package with the transport (apt-transport-https before apt 1.5, ca-certificates with it), or "
        "change the repository's address to http or file",
        "apt acquire-worker.cc",
    ),
    FailureRule(
        "signed-by-conflict",
        r"Conflicting values set for option Signed-By",
        "the same repository is configured twice with different keys",
        "Find both files (grep -rn ADDRESS /etc/apt/sources.list /etc/apt/sources.list.d), and delete the one that is"
        " not Hostwright's",
        "NVIDIA/nvidia-docker#1631",
        names=(r"regarding source (?P<address>[^\s:]{1,9}://[^\s'\"]{1,200})",),
        sign=CONFLICTING,
        treatment=ForPeople(),
    ),
    *WAY,
    PLAIN,
    HANDSHAKE,
    *SIGNATURES,
    FailureRule(
        "package-file-conflict",
        r"trying to overwrite (?:shared |directory )?'|Versuch, .+ zu überschreiben, welches"
        r"|tentative de remplacement de"
        r"|intentando sobre?escribir|tentata sovrascrittura|tenta(?:ndo|tiva de) sobre?escrever|попытка перезаписать"
        r"|próba nadpisania|正试图覆盖|poging tot overschrijven|(?:file"
        r"|dosya) \S+ from install of \S+ conflicts with",
        "two packages contain the same file, and dpkg does not let one overwrite the other's: ARRIVING, which was to "
        "be installed, and OWNER, which is installed",
        "Decide which of the two is needed (apt-mark showmanual, apt-get -s remove: other packages may depend on "
        "either), remove the other one, then run apt-get --fix-broken install. If both are needed, install a release "
        "of one without the file",
        "dpkg lib/dpkg and src/main/archives.c",
        beside=r"\.deb\b",
        variants=(
            Variant(
                rf"also in package {_DRIVER}|/lib/firmware/nvidia/",
                "two packages of the driver contain the same file: ARRIVING, which was to be installed, and OWNER, "
                "which is installed. They come from two sources (Ubuntu's or Debian's own driver, and NVIDIA's CUDA "
                "repository), or from two branches",
                "First find the source of each (apt-cache policy ARRIVING OWNER) and choose one for the whole "
                "driver; exclude the other by a pin (/etc/apt/preferences.d, Pin-Priority: -1), then run apt-get "
                "update. Then remove the packages of the other (dpkg --remove --force-depends OWNER if apt refuses), "
                "and run apt-get --fix-broken install, which completes the chosen set. provision does that for the "
                "stack's driver; --force-overwrite only hides the conflict until the next upgrade",
            ),
        ),
        names=(
            r"(?P<arriving>[a-z0-9][a-z0-9.+-]{1,80})(?:_[^/\s]{0,120})?\.deb\b",
            r"(?:also in package|auch im Paket|dans le paquet) [»«\"']?(?P<owner>[a-z0-9][a-z0-9.+:-]{1,80})",
            r"from install of (?P<arriving>\S{1,100}) conflicts with",
            r"with file from package (?P<owner>[^\s\\]{1,100})",
        ),
        sign=OVERWRITES,
        treatment=ForPeople(),
    ),
    FailureRule(
        "diversion-clash",
        r"dpkg-divert: (?:error: )?.?(?:local )?diversion of [^\n]+ clashes with",
        "a package needs to divert a file that another package, or a removed one, has already diverted, as two kinds "
        "of driver do with libGL: WHOSE",
        "If the package at the end of the message is no longer installed, remove its diversion (dpkg-divert "
        "--package NAME --rename --remove FILE). If it is installed, decide which of the two the host needs (apt-get "
        "-s purge shows dependent packages; of two drivers, the driver role removes the one that is not the "
        "stack's). Then run apt-get --fix-broken install",
        "dpkg-divert(1); src/divert/main.c",
        names=(r"clashes with ['`‘]?(?P<whose>[^\n'’]{1,200})",),
        transient=False,
    ),
    FailureRule(
        "package-unknown",
        r"Unable to locate package|has no installation candidate|kein(?:en)? Installationskandidat"
        r"|\b(?:E|Error): Version '[^'\n]+' for '[^'\n]+' was not"
        r" found|Couldn't find any package by (?:glob|regex)|No package matching '[^'\n]+' is available"
        r"|Impossible de trouver le paquet|Paket \S+ kann nicht gefunden werden"
        r"|No se ha podido localizar el paquete"
        r"|Impossibile trovare il pacchetto|(?:possível|posible) (?:encontrar|localizar) o pacote"
        r"|Не удалось найти пакет|无法定位软件包"
        r"|is not available, but is referred to by another|Couldn't find package"
        r"|Can't select [a-z ]{0,20}version from package"
        r"|No match for argument"
        r"|Unable to find a match:|PackagesNotFoundError|ResolvePackageNotFound",
        "no repository of the host has this package at this version",
        "Run apt-cache policy PACKAGE on the host: a repository is missing, or a pin forbids it",
        "apt-get(8)",
        names=(
            r"locate package (?P<package>[\w.+:-]{1,100})",
            r"(?i:package) '?(?P<package>[\w.+:-]{1,100})'? (?:has no installation candidate|is not available)",
            r"for '(?P<package>[\w.+:-]{1,100})' was not",
            r"(?:find a match|No match for argument): (?P<package>[\w.+:-]{1,100})",
        ),
        variants=(
            Variant(
                r"nvidia-(?:docker2?|container-runtime)(?:['\s,=]|$)",
                "PACKAGE is discontinued: NVIDIA's container toolkit has replaced it, as one package, "
                "nvidia-container-toolkit",
                "Provision again (the container role). By hand, add the toolkit's repository "
                "(nvidia.github.io/libnvidia-container/stable/deb, with its key), install nvidia-container-toolkit, "
                "run nvidia-ctk runtime configure --runtime=docker and restart Docker",
            ),
            Variant(
                r"(?:package '?|find a match: |for argument: )"
                r"(?:cuda(?:-[a-z-]{2,30})?(?:-[0-9-]{1,6})?"
                r"|nvidia-(?:open|container-toolkit|fabricmanager|imex|driver-pinning)\S*|(?:lib)?cudnn[0-9]\S*"
                r"|libnccl\S*"
                r"|libnv(?:infer|sdm|idia-nscq)\S*|nvlsm|tensorrt|datacenter-gpu-manager\S*)(?:['\s,]|$)",
                "PACKAGE comes from NVIDIA's own repository, and this host does not have that repository, or has the "
                "one for another release of the distribution; or the package was never published for this one "
                "(Ubuntu 24.04 begins with CUDA 12.5)",
                "If a role of the host installs it, provision again, which adds the repository. By hand: install "
                "cuda-keyring from NVIDIA's CUDA repository for this release (debian12, ubuntu2404; the container "
                "toolkit has its own list), then run apt-get update; apt-cache policy PACKAGE shows whether it is "
                "there. If that release of CUDA was never published for this distribution, choose another release "
                "(apt-cache search cuda-toolkit), an image of the older distribution, or the .run, not the older "
                "distribution's repository. Debian's and Ubuntu's own toolkit is nvidia-cuda-toolkit (non-free, "
                "multiverse)",
            ),
            Variant(
                r"PackagesNotFoundError|ResolvePackageNotFound",
                "no channel that conda uses has a package of this name, version and system",
                "Name the channel that has it (conda install -c conda-forge -c nvidia NAME; conda search -c conda-forge"
                " NAME lists its versions). cudatoolkit ends with CUDA 11.8: from 12 on it is cuda-toolkit and"
                " cuda-version; PyTorch's own channel has no build after 2.5, conda-forge and pip have",
            ),
            Variant(
                r"No match for argument|Unable to find a match",
                "no enabled repository of dnf has PACKAGE",
                "Find its name and repository: dnf provides '*/PACKAGE', dnf search PACKAGE, dnf repolist --all. "
                "Enable that repository (EPEL, CRB, NVIDIA's CUDA repository for this release), or use PACKAGE's "
                "name in this release of the distribution",
            ),
        ),
        weight="consequence",
    ),
    FailureRule(
        "apt-default-release",
        r"The value '[^'\n]{1,100}' is invalid for APT::Default-Release",
        "APT::Default-Release is RELEASE, and no source of this host has that release, as after an upgrade of the "
        "distribution or a change of the mirror: apt rejects every installation",
        "Remove the line, or name the host's release (grep -rn Default-Release /etc/apt/apt.conf "
        "/etc/apt/apt.conf.d; lsb_release -sc), then provision again",
        "apt apt-pkg/policy.cc; apt.conf(5)",
        transient=False,
        names=(r"The value '(?P<release>[^'\n]{1,100})' is invalid",),
    ),
    FailureRule(
        "packages-on-hold",
        r"(?:The following held packages will be changed:\s+[^\n]+(?:\n[^\n]*){0,20}?\n[^\n]*)?"
        r"Held packages were changed and",
        "PACKAGES: on hold on this host (apt-mark hold), so apt does not change them without permission",
        "Keep their versions, or run apt-mark unhold PACKAGES on the host and try again; apt-mark showhold lists all",
        "vanzod/ccslurm4ai#5; apt private-install.cc",
        names=(r"held packages will be changed:\s+(?P<packages>[^\n]*[^\s])",),
    ),
    FailureRule(
        "held-packages",
        r"packages have unmet dependencies(?::?\n[^\n]{1,160} (?:Pre)?Depends: ?[^\n]{1,160}){0,3}"
        r"|Packages were downgraded and"
        r"|Unsatisfied dependencies:|Unable to satisfy dependencies"
        r"|[Dd]epends: \S+ .*but it is not (?:installable|going to be installed)"
        r"|(?:[Dd]epends|Conflicts|Breaks): \S+ .*but \S+ is (?:to be )?installed|has unmet dependencies"
        r"|haben unerfüllte Abhängigkeiten|dépendances non satisfaites"
        r"|dependencias incumplidas|dipendenze non soddisfatte|dependências desencontradas"
        r"|неудовлетворённые зависимости"
        r"|有未满足的依赖关系",
        "{PACKAGE needs NEEDED|a package lacks one that it depends on}, which apt does not install, or the requested "
        "packages conflict with held or installed ones",
        "Packages of one driver or one kernel (linux-modules-nvidia-…) must be upgraded together: apt-get -s "
        "--fix-broken install shows apt's solution, and without -s applies it. apt-mark showhold and apt-cache "
        "policy {NEEDED|with the package that is missing} show what prevents it. Purge packages that nobody needs "
        "any more",
        "NVIDIA/ansible-role-nvidia-driver#33; elementary/settings-system#233",
        names=(
            r"(?P<package>[\w.+-]{2,100}(?::\w{1,10})?) ?: (?:Pre)?Depends: ",
            r"(?:Pre)?Depends: ?(?P<needed>[\w.+-]{2,100}(?::\w{1,10})?)(?: \([^)\n]{1,60}\))?"
            r" but it is not installable",
            r"(?:Pre)?Depends: ?(?P<needed>[\w.+-]{2,100}(?::\w{1,10})?(?: \([^)\n]{1,60}\))?)",
            r" but (?P<have>[0-9]\S{0,60}) is (?:to be )?installed",
            r"(?:(?:Pre)?Depends|Conflicts|Breaks): ?(?P<other>[\w.+-]{2,100})",
        ),
        beside=r" (?:(?:Pre)?Depends|Conflicts|Breaks): ?\S",
        closing=r"you have held broken packages|[Uu]nmet dependencies\. Try|may be caused by held packages"
        r"|Resolve generated breaks",
        variants=(
            Variant(
                r"xorg-video-abi-[0-9]{1,2} but"
                r"|^ ?cuda(?:-runtime|-demo-suite)?(?:-[0-9]{1,2}-[0-9])? : (?:Pre)?Depends: ",
                "an NVIDIA package for all of CUDA (cuda, cuda-11-5) also requires its own driver, which does not "
                "match this release of the distribution or the installed driver: {PACKAGE needs NEEDED|see the lines}",
                "Install only the toolkit (apt-get install cuda-toolkit-X-Y), never cuda or cuda-X-Y, and use "
                "NVIDIA's repository for this release of the distribution (ubuntu2204 for 22.04; "
                "/etc/apt/sources.list.d). Keep the installed driver and X",
            ),
            Variant(
                rf"{_DRIVER} : (?:Conflicts|Breaks): \S|{_DRIVER} : (?:Pre)?Depends: \S[^\n]* but [0-9]\S{{0,60}} is"
                rf"|Depends: {_DRIVER} [^\n]* but [0-9]\S{{0,60}} is ",
                "{PACKAGE needs NEEDED|packages of the driver exclude each other}{, and HAVE is installed or "
                "chosen|}: packages of the driver from two sources or two branches are mixed. Ubuntu's or Debian's "
                "own and those of NVIDIA's CUDA repository have the same names, and each set matches only itself, at "
                "one version",
                "First find the source of each version: apt-cache policy {PACKAGE OTHER|with the packages of the "
                "message}. Choose one source for the whole driver and exclude the other by a pin "
                "(/etc/apt/preferences.d: Package: *nvidia* *cuda-drivers*, Pin: release o=NAME of the other, "
                "Pin-Priority: -1), then run apt-get update. Then remove the packages of the other (apt-get -s purge "
                "shows dependent packages), or let apt change all to the chosen one's version (apt-get -s install "
                "--allow-downgrades {PACKAGE|NAME}=VERSION with the packages that it lists; without -s it installs "
                "them). At the end, apt-get -s --fix-broken install must list nothing. provision does that for the "
                "stack's driver",
            ),
            Variant(
                r"but it is not installable",
                "{PACKAGE needs NEEDED|a package needs another}, and no repository of the host has that: a component "
                "(Debian: contrib, non-free; Ubuntu: universe, restricted, multiverse), an architecture (i386) or a "
                "whole repository is missing in apt's sources, or a pin forbids it",
                "Check apt-cache policy {NEEDED|with that package} and the components of the sources "
                "(/etc/apt/sources.list, sources.list.d); add the missing one, run apt-get update and try again. If "
                "the package is for another release, use this release's",
            ),
            Variant(
                rf"{_DRIVER} : (?:Pre)?Depends: \S[^\n]* but it is not going to be installed"
                rf"|Depends: {_DRIVER} [^\n]* but it is not going to be installed",
                "{PACKAGE needs NEEDED|a package of the driver needs another}, which apt does not select: a package "
                "of another branch, or of a driver from another source (the distribution's own, NVIDIA's CUDA "
                "repository), is installed, held or pinned",
                "Run apt-get -s install {PACKAGE|NAME}{ OTHER|}, then the same for the next dependency, until apt "
                "prints the reason. Check dpkg -l '*nvidia*' | grep ^ii for another branch, apt-mark showhold and "
                "apt-cache policy {PACKAGE|NAME} for holds and the source of each version. Remove the other branch "
                "or source (apt-get -s purge shows dependent packages), release the holds, and install the whole set "
                "from one source; provision does that for the stack's driver",
            ),
            Variant(
                r"Depends: \S{3,80} \(= [0-9]\S{0,40}\+cuda[0-9.]{1,6}\) but [0-9]\S{0,60} is to be installed",
                "PACKAGE needs its parts at exactly its own version ({NEEDED|see the line}), and apt selects "
                "{HAVE|another} for the part: only PACKAGE was given with a version, so for the rest apt selects the "
                "newest, or a held or pinned one",
                "Name all parts in one command with that version, which must be for one CUDA (apt-get install "
                "PACKAGE=VERSION {OTHER|NAME}=VERSION …; --allow-downgrades if a newer one is installed), or pin "
                "them in a file of /etc/apt/preferences.d: Package: with their names (libnvinfer* libnvonnxparsers* "
                "tensorrt* for TensorRT), Pin: version VERSION, Pin-Priority: 1001. apt-mark showhold lists holds; "
                "--fix-broken does not help",
            ),
            Variant(
                r" but [0-9]\S{0,60} is (?:to be )?installed",
                "{PACKAGE needs NEEDED|a package needs another}, and {HAVE|another version of it} is installed or "
                "selected: packages of two sources, or of two versions of one set, are mixed",
                "Find the source of each version (apt-cache policy of both packages; apt-mark showhold lists holds). "
                "Install the whole set from one source at one version (apt-get -s --fix-broken install shows apt's "
                "solution, and without -s applies it), or downgrade the single newer one (apt-get install "
                "PACKAGE=VERSION of the intended source)",
            ),
        ),
    ),
    FailureRule(
        "package-conflict",
        r"(?:^[^\n]* conflicts with [^\n]*\n(?:[^\n]*\n){0,6}?)?[^\n]*conflicting packages - not installing \S+",
        "ARRIVING and {PRESENT|a package that is installed} exclude each other, and dpkg installs only one of them",
        "Decide which one the host needs: dpkg -s {PRESENT|with the installed one} and apt-cache rdepends "
        "--installed {PRESENT|with it} show dependent packages. Let apt replace it (apt-get -s install ARRIVING "
        "lists what it would remove), do not use dpkg -i. For containers: containerd.io belongs to Docker's own "
        "docker-ce, containerd to the distribution's docker.io; do not mix the two sets",
        "dpkg src/main/depcon.c; replicatedhq/kURL#3839",
        names=(
            r"conflicting packages - not installing (?P<arriving>\S{2,100})",
            r"^ *(?P<arriving>[a-z0-9]\S{1,100}) conflicts with (?P<present>[a-z0-9]\S{1,100})",
        ),
        transient=False,
    ),
    FailureRule(
        "package-triggers-loop",
        r"cycle found while processing triggers[^\n]*(?:\n[^\n]*){0,2}|(?:^dpkg: error processing [^\n]*\n)?"
        r"[^\n]*triggers looping, abandoned",
        "the triggers of {PACKAGE|a package}, which run its script whenever others change certain files, start each "
        "other endlessly: dpkg stopped and left the package unfinished",
        "Run dpkg --configure -a once more, which is enough if an upgrade had changed the files. If they loop again, "
        "upgrade {PACKAGE|the package} or remove it, and report it to its maintainer",
        "dpkg src/main/trigproc.c; zentyal/zentyal#1978, #2045; dracut-ng/dracut#1420",
        names=(
            r"error processing (?:package )?(?P<package>[a-z0-9][\w.+-]{1,100})",
            r"responsible:\n[^\n]*?(?P<package>[a-z0-9][\w.+-]{1,100})(?::\w{1,10})? -> ",
        ),
    ),
    *APT_RULES,
    *NETWORK,
    FailureRule(
        "no-root",
        r"\bare you root\?|must be run (?:as|with) (?:root|superuser)|(?:please|must) run (?:\w{1,20} ){1,3}(?:as"
        r"|with) (?:root|sudo)\b"
        r"|(?:must|need to) be root\b|root privileges are required|requires root\b"
        r"|(?:requires|with) superuser privileges?",
        "the program was started by a user other than root, and needs root",
        "Start it with sudo, or give the host's user the rights in the documentation",
        "apt debsystem.cc; dpkg; nvidia-installer nvidia-installer.c",
        unless=r"^\s*(?:-|#)",
    ),
    KILLED,
    *KERNEL_FAULTS,
    FailureRule(
        "chroot-without-mounts",
        r"grub-probe: error: cannot find a device for / \(is /dev mounted",
        "a package's script runs in a chroot or a container without /dev, /proc and /sys, and has no access to the "
        "host's disks",
        "Mount them first (mount --rbind /dev, /proc and /sys below the chroot, and /dev/pts), then run"
        " dpkg --configure -a there",
        "GNU GRUB util/grub-probe.c",
        weight="consequence",
    ),
    FailureRule(
        "etckeeper-uncommitted",
        r"etckeeper detected uncommitted changes in /etc|etckeeper (?:aborted|failed) [^\n]{0,40}(?:commit|apt)"
        r"|Aborting apt run\. Manually commit",
        "etckeeper blocks apt while /etc has uncommitted changes (AVOID_COMMIT_BEFORE_INSTALL)",
        "Check and commit them on the host (cd /etc; git status; etckeeper commit), then provision again. Files that "
        "Hostwright writes to /etc count too: while AVOID_COMMIT_BEFORE_INSTALL is set in "
        "/etc/etckeeper/etckeeper.conf, each run stops like this",
        "etckeeper pre-install.d/50uncommitted-changes; SoftCreatR/imei#102",
        transient=False,
    ),
    FailureRule(
        "apt-hook-failed",
        # the hook that Hostwright itself sets begins with ``exec`` and prints its own error
        r"Problem executing scripts (?:DPkg|APT|AptCli)::[\w:-]{1,60} '|E: Failure running script (?:[^e]|e[^x])",
        "a program that the host's apt configuration runs at each call failed, and apt stopped: HOOK",
        "Fix the cause, which is in the lines above; grep -r Invoke /etc/apt/apt.conf.d finds the file that sets the "
        "program. Then provision again",
        "apt apt-pkg/contrib/fileutl.cc and deb/dpkgpm.cc, RunScripts",
        names=(
            r"Problem executing scripts (?P<hook>[\w:-]{1,80} '[^'\n]{1,200}')",
            r"Failure running script (?P<hook>[^\n]{1,200})",
        ),
        weight="consequence",
    ),
    FailureRule(
        "kernel-config-missing",
        r"grep: /boot/config-[^\s:]{1,80}: No such file[^\n]*(?:\n[^\n]*){0,4}?\nE: \w{1,10} compression"
        r" \(CONFIG_RD_\w{1,10}\) not supported by kernel",
        "the file /boot/config-RELEASE of that kernel's package is missing, so no initramfs can be created and the "
        "package stays unconfigured",
        "Restore the file with apt-get install --reinstall linux-image-RELEASE, then run dpkg --configure -a",
        "initramfs-tools mkinitramfs; dkms-project/dkms#302",
        names=(r"/boot/config-(?P<release>[^\s:]{1,80}): No such",),
    ),
    FailureRule(
        "initramfs-modules-dep",
        r"mkinitramfs: failed to determine device for [^\n]*|mkinitramfs: workaround is:? MODULES=most[^\n]*",
        "no initramfs could be created: with MODULES=dep in /etc/initramfs-tools it contains only the modules for "
        "the device of /, and mkinitramfs cannot determine that device (an overlay, tmpfs, ZFS, a container)",
        "Change MODULES=dep to MODULES=most (grep -r ^MODULES /etc/initramfs-tools/initramfs.conf "
        "/etc/initramfs-tools/conf.d), then run update-initramfs -u -k all and dpkg --configure -a",
        "initramfs-tools, hook-functions, dep_add_modules_mount; remusmp/rpi-rt-kernel#27",
        transient=False,
        sign=MODULES_DEP,
        treatment=ForPeople(),
        covers=Covers(("package-script-failed",), lambda ctx: packages_of(modules_dep(ctx))),
        weight="consequence",
    ),
    FailureRule(
        "grub-install-device",
        r"[Yy]ou must correct your GRUB install devices before proceeding[^\n]*"
        r"|grub-install: error: cannot find a GRUB drive for [^\n]*|grub-pc[^\n]*(?:install_devices|GRUB install"
        r" devices)[^\n]*",
        "grub-pc is not configured: the disks for the boot loader, which debconf stores by name, are not in this "
        "machine, as after a disk's replacement or in a copied image",
        "Set the boot disk: dpkg-reconfigure grub-pc prompts for it; unattended, echo 'grub-pc "
        "grub-pc/install_devices multiselect /dev/DISK' | debconf-set-selections (lsblk lists the disks, "
        "/dev/disk/by-id their persistent names). Then run dpkg --configure -a",
        "Debian grub2, debian/postinst.in; osism/openstack-image-manager#161",
        transient=False,
        sign=GRUB_DEVICE,
        treatment=ForPeople(),
        covers=Covers(("package-script-failed",), lambda ctx: packages_of(grub_device(ctx))),
        weight="consequence",
    ),
    FailureRule(
        "initramfs-build-failed",
        rf"(?:^{WHY}\n(?:[^\n]*\n){{0,5}}?)?[^\n]*"
        r"(?:update-initramfs: failed for |Failed to create initrd image|mkinitramfs: [^\n]*: not found"
        r"|mkinitramfs failure|dracut(?:\[[0-9]{1,9}\])?: FAILED)",
        "the initramfs of a kernel could not be created, so this kernel may not boot, or boots without its modules",
        "Fix the cause, which is in the lines above (a missing program or file, a hook in "
        "/etc/initramfs-tools/hooks), then run update-initramfs -u -k all and dpkg --configure -a",
        "initramfs-tools, update-initramfs; dracut",
        weight="consequence",
    ),
    FailureRule(
        "package-asks",
        r"end of file on stdin at conffile prompt|^\*\*\* \S{1,200} \(Y/I/N/O/D/Z\)",
        "a configuration file with a new version in its package was changed on the host: dpkg prompts for a choice, "
        "and nobody answers",
        "Compare the two (FILE and FILE.dpkg-new or .dpkg-dist); dpkg --force-confdef --force-confold --configure -a "
        "keeps the host's, as provision does, --force-confnew installs the package's",
        "dpkg src/main/configure.c; mail-in-a-box/mailinabox#270",
        names=(r"^\*\*\* (?P<file>[\w.+-]{1,100}) \(Y/I", r"[Cc]onfiguration file ['‘](?P<file>/[^'’\s]{1,200})['’]"),
        beside=r"[Cc]onfiguration file ['‘]/",
        transient=False,
    ),
    FailureRule(
        "package-alternative",
        r"update-alternatives: error: alternative [^\n]*(?: managed by | exists but | doesn't exist)[^\n]*"
        r"|update-alternatives: error: [^\n]*(?:not a symlink|unable to make|not exist)[^\n]*",
        "a package registers a program or library with update-alternatives, and another name has that link, or the "
        "files are missing: its script fails",
        "Find the owner of the link (update-alternatives --display NAME, dpkg -S with the path that it prints). If "
        "no package has it any more, run update-alternatives --remove-all NAME; if one has, install that one again, "
        "or remove it if nobody needs it; then run dpkg --configure -a",
        "dpkg utils/update-alternatives.c",
        transient=False,
        names=(
            r"alternative (?P<name>[\w.+-]{1,60}) can't be",
            r"alternative link \S{1,200} is already managed by (?P<name>[\w.+-]{1,60})",
            r"alternative name (?P<name>[\w.+-]{1,60})",
        ),
    ),
    FailureRule(
        "package-script-program",
        r"/info/[\w.+:-]{1,100}\.(?:pre|post)(?:inst|rm): (?:line )?[0-9]{1,6}: [^\n]*not found",
        "the script of PACKAGE calls PROGRAM, which is not installed, or not on root's PATH",
        "Install its package (update-initramfs: initramfs-tools; update-grub: grub2-common; dkms: dkms; else dpkg -S "
        "and apt-file search bin/PROGRAM print the package), then run dpkg --configure -a",
        "Debian policy, maintainer scripts; webanck/docker-wine-steam#6",
        transient=False,
        names=(
            r"/info/(?P<package>[\w.+-]{1,100})(?::\w{1,10})?\.(?:pre|post)(?:inst|rm): ",
            r": (?P<program>[\w.+-]{1,60}): (?:command )?not found",
        ),
    ),
    FailureRule(
        "package-script-python",
        rf"^(?:ModuleNotFoundError|ImportError): [^\n]*\n(?:[^\n]*\n){{0,5}}?[^\n]*(?:{SCRIPT_ENDED})",
        "the script of PACKAGE is Python, and python3 does not find the module MODULE: usually python3 is not the "
        "distribution's (another in /usr/bin or /usr/local/bin, an alternative)",
        "Find the python3 (readlink -f /usr/bin/python3; dpkg -S prints its package). Link /usr/bin/python3 to the "
        "distribution's, or install that package again, then run dpkg --configure -a",
        "dpkg lib/dpkg/subproc.c; NVIDIA/nvidia-installer#17",
        names=(
            r"error processing (?:package )?(?P<package>[\w.+-]{2,100})",
            r"installed (?P<package>\S{2,100}) package",
            r"(?:No module named|cannot import name) '?(?P<module>[\w.]{1,60})",
        ),
        weight="consequence",
    ),
    FailureRule(
        "package-removal-failed",
        rf"(?:^{WHY}\n(?:[^\n]*\n){{0,3}}?)?(?:^dpkg: [^\n]*\(--(?:remove|purge)\)[^\n]*\n)?[^\n]*(?:{REMOVAL_ENDED})",
        "PACKAGE is not removed: its removal script, /var/lib/dpkg/info/PACKAGE.prerm, fails{ with status STATUS|}{ "
        "(WHY)|}. The package is unchanged, each further try fails at the same script, and dpkg --configure -a does "
        "not help",
        "Provide what the script needs during the removal (a daemon, a file, a program). If that is gone for good, "
        "correct the failing line in /var/lib/dpkg/info/PACKAGE.prerm, or move the script away (mv "
        "/var/lib/dpkg/info/PACKAGE.prerm /var/backups/): dpkg then removes the package without it. Or install a "
        "release of PACKAGE with a fixed script. Then repeat the failed command (provision, apt-get remove), and "
        "undo by hand what the script would have undone",
        "dpkg src/main/remove.c; dpkg(1); NVIDIA/nvidia-docker#272; ntop/n2disk#8",
        unless=r"error while cleaning up|\bnew \S{2,100} (?:package )?(?:pre|post)-removal",
        names=(
            r"error processing (?:package )?(?P<package>[a-z0-9][\w.+-]{1,100})",
            r"traitement du paquet (?P<package>[a-z0-9][\w.+-]{1,100})",
            r"installed (?P<package>\S{2,100}) package (?:pre|post)-removal",
            r"exit status (?P<status>[0-9]{1,3})",
            r"sortie d'état (?P<status>[0-9]{1,3})",
            r"^(?:[^\n;]*: ii; |[^\n;]*: \w\w; )?(?P<why>[^\n]{1,200}?)(?:; dpkg: |\n(?:[^\n]*\n){0,3}?dpkg: )",
        ),
        variants=(
            Variant(
                r"post-removal",
                "PACKAGE is half removed: its files are gone, and its script for the rest, "
                "/var/lib/dpkg/info/PACKAGE.postrm, fails{ with status STATUS|}{ (WHY)|}. Each further try fails at "
                "the same script, and dpkg --configure -a does not help",
                "Provide what the script needs (a file, a program, an account that was removed). If that is gone for "
                "good, correct the failing line in /var/lib/dpkg/info/PACKAGE.postrm, or move the script away (mv "
                "/var/lib/dpkg/info/PACKAGE.postrm /var/backups/), then repeat the failed command (provision, "
                "apt-get remove), and undo by hand what the script would have undone",
            ),
        ),
        transient=False,
        sign=NOT_REMOVED,
        treatment=ForPeople(),
        covers=Covers(("package-script-failed", "dpkg-interrupted"), lambda ctx: packages_of(not_removed(ctx))),
        weight="consequence",
    ),
    FailureRule(
        "package-script-failed",
        rf"(?:^{WHY}\n(?:[^\n]*\n){{0,5}}?)?(?:^dpkg: error processing [^\n]*\n)?"
        rf"[^\n]*(?:{SCRIPT_ENDED}"
        r"|脚本 ?(?:子进程 ?)?返回"
        r"|Unterprozess[^\n]*Skript[^\n]*Fehler"
        r"|sous-processus[^\n]*script[^\n]*erreur"
        r"|subproceso[^\n]*script[^\n]*error"
        r"|sottoprocesso[^\n]*script[^\n]*errore"
        r"|subprocesso[^\n]*script[^\n]*erro"
        r"|подпроцесс[^\n]*сценари)",
        "a script of PACKAGE failed, and dpkg left the package unfinished",
        "Fix the cause, which is in the lines above dpkg's error (also in /var/log/apt/term.log; dpkg --configure -a "
        "prints them again), then provision again, which runs dpkg --configure -a",
        "dpkg lib/dpkg/subproc.c; NVIDIA/nvidia-installer#17",
        names=(
            r"error processing (?:package )?(?P<package>[\w.+-]{2,100})",
            r"installed (?P<package>\S{2,100}) package",
            r"^(?P<package>[a-z0-9][\w.+-]{1,100})(?::\w{1,10})? \S{1,80}: iF",
            r"invalid (?:spec|user|group): ['`‘\"»]?(?P<account>[\w.-]{1,60})",
            r"ungültige \S{1,20}: [»«„\"]?(?P<account>[\w.-]{1,60})",
            r"no such (?:user|group):? ['`‘\"]?(?P<account>[\w.-]{1,60})",
            r"Job for (?P<unit>[\w@.-]{1,100}) failed",
            r"invoke-rc\.d: initscript (?P<unit>[\w@.-]{1,60}), action",
            r"Failed to (?:re)?start (?P<unit>[\w@.-]{1,100}\.(?:service|socket))",
        ),
        variants=(
            Variant(
                r"invalid (?:spec|user|group): |ungültige |no such (?:user|group)",
                "the script of PACKAGE uses an account that does not exist on the host: {ACCOUNT|see the line}",
                "Create the account as the package does (adduser --system --group --no-create-home {ACCOUNT|NAME}; "
                "its scripts in /var/lib/dpkg/info/PACKAGE.* have home and shell), then run dpkg --configure -a. If "
                "an older release of it was half removed, install its newest one instead",
            ),
            Variant(
                r"Job for \S{1,100} failed|invoke-rc\.d: initscript|Failed to (?:re)?start \S{1,100}\.(?:service"
                r"|socket)",
                "the script of PACKAGE starts {UNIT|a service}, which fails, so the package stays unconfigured",
                "Check the service's log (journalctl -u UNIT -n 50 --no-pager) and fix the cause; when systemctl "
                "start UNIT works, dpkg --configure -a finishes the package",
            ),
        ),
        sign=SCRIPT_FAILED,
        treatment=ForPeople(),
        weight="consequence",
    ),
    FailureRule(
        "dpkg-failed",
        r"Errors were encountered while processing:\n[^\n]*(?:\n [^\n]*){0,5}"
        r"|Sub-process /usr/bin/dpkg returned an error code",
        "dpkg failed on {PACKAGE|a package}; this part of its output has no reason",
        "Find the reason above, at the first line with the package's name (dpkg: error processing …), or in "
        "/var/log/apt/term.log. dpkg --configure -a prints it again; for a package that was to be removed, apt-get "
        "remove {PACKAGE|with its name} does",
        "apt apt-pkg/deb/dpkgpm.cc; dpkg src/main/errors.c",
        names=(
            r"while processing:\s{1,9}(?:/\S*/)?(?P<package>[a-z0-9][\w.+-]{1,60})",
            r"while processing:\n [^\n]*/(?:[0-9]{1,4}-)?(?P<package>[a-z0-9][\w.+-]{1,80})_[^\n]*\.deb",
        ),
        weight="wrapper",
    ),
    FailureRule(
        "apt-update-failed",
        r"Failed to update apt cache(?:: unknown reason)?[.\"]|(?:Some index files failed to download"
        r"|Failed to fetch some)",
        "apt could not read all of its repositories; the calling tool does not report which one, or why",
        "Run apt-get update on the host as root: its lines that begin with Err, W: and E: have the repository and "
        "the reason (a key, a name, a proxy, a wrong address)",
        "Ansible modules/apt.py; apt apt-pkg/update.cc",
        weight="wrapper",
    ),
    FailureRule(
        "dependency-unconfigured",
        r"dpkg: dependency problems(?::| prevent configuration of)|dependency problems - leaving unconfigured"
        r"|Abhängigkeitsprobleme verhindern|problèmes de dépendances empêchent|problemas de dependencias impiden"
        r"|依赖关系问题 - 仍未被配置|依赖关系问题使得",
        "a package that another depends on is not installed or not configured, so this one is not configured either",
        "Let apt install the missing packages (apt-get -f install). If a package's own script failed, its message is "
        "above this one",
        "dpkg src/main/packages.c",
        beside=r"depends on .*; however|^ {1,4}(?:Package|Version) .* is (?:not|to be)|however:$",
        weight="consequence",
    ),
)

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

#: a line that says why a package's script failed
WHY = (
    r"[^\n]*(?:[Ee]rror(?: |:)|ERROR|FATAL|[Ff]ailed|not found|No such |[Cc]annot|[Uu]nable to|denied|[Yy]ou must "
    r"|invalid (?:spec|user|group)|ungültige|"
    r"does not exist|exists during|already exists"
    r"|[Pp]lease |workaround is)[^\n]*"
)

#: dpkg's words about a script that is run when a package is removed
REMOVAL_ENDED = (
    r"(?:pre|post)-removal (?:package )?script (?:subprocess )?returned error exit status"
    r"|script pre-removal install[^\n]*erreur"
)

#: dpkg's words about a package's script
SCRIPT_ENDED = (
    r"(?:pre|post)-(?:installation|removal) (?:package )?script (?:subprocess )?returned error exit status"
    r"|subprocess (?:new|installed|old) \S+ script returned error exit status"
)

#: a package of the driver's
_DRIVER = r"(?:lib)?(?:nvidia|cuda-drivers|xserver-xorg-video-nvidia)[\w.+-]{0,60}(?::\w{1,10})?"

#: The limit of watches, a small /dev/shm and the limits of control groups are also reported as a full device.
_NOT_FULL = r"directory watch|inotify|failed to watch|watcher|posix_fallocate failed|/dev/shm|</torch_|/sys/fs/cgroup"

#: A full disk makes every tool fail with a message of its own, so this rule comes before all others.
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
        "Free space (df -h names the filesystem, df -i one that is out of inodes; apt-get clean is a start) and"
        " provision again",
        "dpkg, apt, pip",
        unless=_NOT_FULL,
        narrower=BOOT_IS_FULL,
        beside=r"error processing (?:archive|package) ",
        variants=(
            Variant(
                r"Could not install packages due to an",
                "pip has no space left: where it unpacks (TMPDIR, else /tmp, often a small one in memory), in its"
                " cache, or where the environment is",
                "See which of them is full (df -h /tmp ~/.cache PATH, df -i): give pip another directory of several GB"
                " for unpacking (TMPDIR=/var/tmp), empty its cache (pip cache purge), or free space there, and do it"
                " again; a framework with CUDA takes up to 10 GB",
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
        "See {what PROGRAM is at|who it is} (fuser -v /var/lib/dpkg/lock-frontend; ps -p {PID|with its number} -o"
        " pid,etime,args), let it end, provision again; never delete the lock",
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
        "apt or dpkg is at work on the host: what is read of its packages may be half of a change, and a run waits for"
        " it, up to ten minutes",
        "Wait until it has ended, or provision all the same: the run waits and says for whom. Never end it, and never"
        " delete the lock",
        "dpkg(1), /var/lib/dpkg/lock-frontend; Azure/aks-engine#1538",
        sign=AT_WORK,
    ),
    FailureRule(
        "dpkg-interrupted",
        r"dpkg was interrupted|very bad inconsistent state"
        r"|must manually run '(?:sudo )?dpkg --configure|parsing file '/var/lib/dpkg/(?:status"
        r"|updates)\S*' near line"
        r"|[^\n]*needs to be reinstalled, but I can't find an archive",
        "dpkg was killed in the middle of its work, or failed on a package that a role of the host wants or takes away",
        "Provision again: the base role finishes what waits, and first takes away what a role of the host does not"
        " want. The plan names each package whose scripts may restart a service with running work, and that work. A"
        " package that still fails then is named: fix what its script says",
        "apt",
        sign=INTERRUPTED,
        names=(r"package (?P<package>\S{1,100}) needs to be reinstalled",),
        variants=(
            Variant(
                r"needs to be reinstalled, but I can't find an archive",
                "PACKAGE is half installed, and dpkg wants to install it again before anything else; no repository of"
                " the host has its archive",
                "Bring the archive: apt-get update, then apt-get install --reinstall PACKAGE, or dpkg -i with its .deb."
                " Where nobody needs the package, dpkg --remove --force-remove-reinstreq PACKAGE takes it away. Then"
                " provision again",
            ),
        ),
    ),
    FailureRule(
        "dpkg-database-damaged",
        r"files list file for package [^\n]+ (?:is missing final newline|contains empty filename)"
        r"|reading files list for package [^\n]+: (?:Is a directory|Input/output error)"
        r"|files list file for package [^\n]+ is truncated",
        "dpkg's own records are damaged, as after a power failure or a full disk",
        "Look at the disk first (dmesg). Move the package's /var/lib/dpkg/info/NAME.list aside and install it again;"
        " for the status file, compare with /var/backups/dpkg.status.0",
        "dpkg lib/dpkg/db-fsys-files.c",
    ),
    FailureRule(
        "apt-method-missing",
        r"The method driver \S+ could not be found|Unable to find expected method"
        r"|the package apt-transport-\w{1,12} installed",
        "an apt repository is reached in a way (https, tor, s3) for which this apt has no program",
        "Install the package that brings it (apt-transport-https before apt 1.5, ca-certificates with it), or name the"
        " repository by http or file",
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
        "two packages bring the same file, and dpkg does not let one overwrite the other's: ARRIVING, which was to be"
        " installed, and OWNER, which is there",
        "See which of the two somebody needs (apt-mark showmanual, apt-get -s remove: either may be somebody's, and"
        " take others along), do without the other one, then run apt-get --fix-broken install; where both are needed,"
        " take a release of one that no longer brings the file",
        "dpkg lib/dpkg and src/main/archives.c",
        beside=r"\.deb\b",
        variants=(
            Variant(
                rf"also in package {_DRIVER}|/lib/firmware/nvidia/",
                "two packages of the driver bring the same file: ARRIVING, which was to be installed, and OWNER, which"
                " is there. They are of two sources, Ubuntu's or Debian's own driver and that of NVIDIA's CUDA"
                " repository, or of two branches",
                "First see which source each is from (apt-cache policy ARRIVING OWNER) and choose one for the whole"
                " driver; keep the other out by a pin (/etc/apt/preferences.d, Pin-Priority: -1), then apt-get update."
                " Then take away what is there of the other (dpkg --remove --force-depends OWNER where apt refuses),"
                " and run apt-get --fix-broken install, which finishes the chosen set. provision does that for the"
                " stack's driver; --force-overwrite only hides it until the next upgrade",
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
        "a package wants to divert a file that another package, or a removed one, has diverted already, as drivers of"
        " two kinds do with libGL: WHOSE",
        "Where the package that the message names last is gone already, take its diversion away (dpkg-divert --package"
        " NAME --rename --remove FILE); where it is there, decide which of the two the host needs (apt-get -s purge"
        " shows what would go along; of two drivers, the driver role removes the one that is not the stack's). Then run"
        " apt-get --fix-broken install",
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
        "Look at apt-cache policy PACKAGE on the host: a repository is missing, or a pin forbids it",
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
                "PACKAGE is no longer made: NVIDIA's container toolkit has replaced it, as one package,"
                " nvidia-container-toolkit",
                "Provision again (the container role), or by hand add the toolkit's repository"
                " (nvidia.github.io/libnvidia-container/stable/deb, with its key), install nvidia-container-toolkit,"
                " run nvidia-ctk runtime configure --runtime=docker and restart Docker",
            ),
            Variant(
                r"(?:package '?|find a match: |for argument: )"
                r"(?:cuda(?:-[a-z-]{2,30})?(?:-[0-9-]{1,6})?"
                r"|nvidia-(?:open|container-toolkit|fabricmanager|imex|driver-pinning)\S*|(?:lib)?cudnn[0-9]\S*"
                r"|libnccl\S*"
                r"|libnv(?:infer|sdm|idia-nscq)\S*|nvlsm|tensorrt|datacenter-gpu-manager\S*)(?:['\s,]|$)",
                "PACKAGE comes from NVIDIA's own repository, and this host has none of that, or the one of another"
                " release of the distribution; or it was never published for this one (Ubuntu 24.04's begins with CUDA"
                " 12.5)",
                "Provision again where a role of the host installs it, which adds the repository. By hand: install"
                " cuda-keyring from NVIDIA's CUDA repository for this release (debian12, ubuntu2404; the container"
                " toolkit has a list of its own), then apt-get update. apt-cache policy PACKAGE shows whether it is"
                " there. A release of CUDA that was never published for this distribution: take one that is (apt-cache"
                " search cuda-toolkit), an image of the older distribution, or the .run, not that one's repository."
                " Debian's and Ubuntu's own toolkit is nvidia-cuda-toolkit (non-free, multiverse)",
            ),
            Variant(
                r"PackagesNotFoundError|ResolvePackageNotFound",
                "no channel that conda was told to ask has a package of this name, version and system",
                "Name the channel that has it (conda install -c conda-forge -c nvidia NAME; conda search -c conda-forge"
                " NAME lists its versions). cudatoolkit ends with CUDA 11.8: from 12 on it is cuda-toolkit and"
                " cuda-version; PyTorch's own channel has no build after 2.5, conda-forge and pip have",
            ),
            Variant(
                r"No match for argument|Unable to find a match",
                "no enabled repository of dnf's has PACKAGE",
                "See how it is called and who has it: dnf provides '*/PACKAGE', dnf search PACKAGE, dnf repolist --all."
                " Enable the repository that has it (EPEL, CRB, NVIDIA's CUDA repository for this release), or take"
                " PACKAGE's name in this release of the distribution",
            ),
        ),
        weight="consequence",  # also after an update that found no mirror
    ),
    FailureRule(
        "apt-default-release",
        r"The value '[^'\n]{1,100}' is invalid for APT::Default-Release",
        "APT::Default-Release is RELEASE, and no source of this host offers that release, as after an upgrade of the"
        " distribution or a change of the mirror: apt refuses every installation",
        "Take the line out, or name the release that the host has (grep -rn Default-Release /etc/apt/apt.conf"
        " /etc/apt/apt.conf.d; lsb_release -sc), then provision again",
        "apt apt-pkg/policy.cc; apt.conf(5)",
        transient=False,
        names=(r"The value '(?P<release>[^'\n]{1,100})' is invalid",),
    ),
    FailureRule(
        "packages-on-hold",
        # the list alone stands where our own flag for held packages lets them change
        r"(?:The following held packages will be changed:\s+[^\n]+(?:\n[^\n]*){0,20}?\n[^\n]*)?"
        r"Held packages were changed and",
        "PACKAGES: on hold on this host (apt-mark hold), so that apt does not change them unasked",
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
        "{PACKAGE needs NEEDED|a package lacks one that it depends on}, which apt does not bring, or the packages asked"
        " for clash with what is held or installed",
        "Packages of one driver or one kernel (linux-modules-nvidia-…) go to a version together: apt-get -s"
        " --fix-broken install shows what apt would do, and without -s does it; apt-mark showhold and apt-cache policy"
        " {NEEDED|with the package that is missing} say what keeps it back; a package that nobody needs any more is"
        " purged",
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
                "a package of NVIDIA's that stands for CUDA as a whole (cuda, cuda-11-5) drags a driver of its own in,"
                " which does not fit this release of the distribution or the driver that is installed: {PACKAGE needs"
                " NEEDED|see the lines}",
                "Install the toolkit alone (apt-get install cuda-toolkit-X-Y), never cuda or cuda-X-Y, and take"
                " NVIDIA's repository for this release of the distribution (ubuntu2204 for 22.04;"
                " /etc/apt/sources.list.d). The driver and X that are installed stay as they are",
            ),
            Variant(
                rf"{_DRIVER} : (?:Conflicts|Breaks): \S|{_DRIVER} : (?:Pre)?Depends: \S[^\n]* but [0-9]\S{{0,60}} is"
                rf"|Depends: {_DRIVER} [^\n]* but [0-9]\S{{0,60}} is ",
                "{PACKAGE needs NEEDED|packages of the driver exclude each other}{, and HAVE is installed or chosen|}:"
                " packages of the driver from two sources or of two branches are mixed. Ubuntu's or Debian's own and"
                " those of NVIDIA's CUDA repository have the same names, and each set fits only itself, at one version",
                "First see which source each version is from: apt-cache policy {PACKAGE OTHER|with the packages of the"
                " message}. Choose one source for the whole driver and keep the other out by a pin"
                " (/etc/apt/preferences.d: Package: *nvidia* *cuda-drivers*, Pin: release o=NAME of the other,"
                " Pin-Priority: -1), then apt-get update. Then take away what came from the other (apt-get -s purge"
                " shows what goes along), or let apt bring all to the chosen one's version (apt-get -s install"
                " --allow-downgrades {PACKAGE|NAME}=VERSION with the packages it names; without -s it does it). Last,"
                " apt-get -s --fix-broken install has nothing left to do. provision does that for the stack's driver",
            ),
            Variant(
                r"but it is not installable",
                "{PACKAGE needs NEEDED|a package needs another}, and no repository of the host has that: a component"
                " (Debian: contrib, non-free; Ubuntu: universe, restricted, multiverse), an architecture (i386) or a"
                " whole repository is missing among apt's sources, or a pin forbids it",
                "Look at apt-cache policy {NEEDED|with that package} and at the components of the sources"
                " (/etc/apt/sources.list, sources.list.d); add what is missing, run apt-get update and try again. Of a"
                " package for another release, take this release's",
            ),
            Variant(
                rf"{_DRIVER} : (?:Pre)?Depends: \S[^\n]* but it is not going to be installed"
                rf"|Depends: {_DRIVER} [^\n]* but it is not going to be installed",
                "{PACKAGE needs NEEDED|a package of the driver needs another}, which apt does not choose: a package of"
                " another branch, or of the driver of another source (the distribution's own, NVIDIA's CUDA"
                " repository), is installed, held or pinned",
                "Ask apt for the next one down until it names the reason: apt-get -s install {PACKAGE|NAME}{ OTHER|}."
                " See dpkg -l '*nvidia*' | grep ^ii for another branch, apt-mark showhold and apt-cache policy"
                " {PACKAGE|NAME} for what is held and from where each version comes. Take away the other branch or"
                " source (apt-get -s purge shows what goes along), release what is held, and install the whole set from"
                " one source; provision does that for the stack's driver",
            ),
            Variant(
                r"Depends: \S{3,80} \(= [0-9]\S{0,40}\+cuda[0-9.]{1,6}\) but [0-9]\S{0,60} is to be installed",
                "PACKAGE needs its parts at exactly its own version ({NEEDED|see the line}), and apt takes"
                " {HAVE|another} for the part: only PACKAGE was named with a version, for the rest apt takes the"
                " newest, or what is held or pinned",
                "Name all parts in one command with that version, which has to be for one CUDA (apt-get install"
                " PACKAGE=VERSION {OTHER|NAME}=VERSION …; --allow-downgrades where a newer one is there), or pin them:"
                " in a file of /etc/apt/preferences.d Package: with their names (libnvinfer* libnvonnxparsers*"
                " tensorrt* for TensorRT), Pin: version VERSION, Pin-Priority: 1001. apt-mark showhold says what is"
                " held; there is nothing for --fix-broken to do",
            ),
            Variant(
                r" but [0-9]\S{0,60} is (?:to be )?installed",
                "{PACKAGE needs NEEDED|a package needs another}, and {HAVE|another version of it} is installed or"
                " chosen: packages of two sources, or of two versions that belong together, are mixed",
                "See which source each version is from (apt-cache policy of both packages; apt-mark showhold says what"
                " is held): let all of one set come from one source at one version (apt-get -s --fix-broken install"
                " shows what apt would do, and without -s does it), or take back the single newer one (apt-get install"
                " PACKAGE=VERSION of the source that is meant)",
            ),
        ),
    ),
    FailureRule(
        "package-conflict",
        r"(?:^[^\n]* conflicts with [^\n]*\n(?:[^\n]*\n){0,6}?)?[^\n]*conflicting packages - not installing \S+",
        "ARRIVING and {PRESENT|a package that is installed} exclude each other, and dpkg installs only one of them",
        "Decide which one the host needs: dpkg -s {PRESENT|with the installed one} and apt-cache rdepends --installed"
        " {PRESENT|with it} show what goes along. Let apt exchange them (apt-get -s install ARRIVING names what it"
        " would take away), and not dpkg -i. Of containers: containerd.io belongs to Docker's own docker-ce, containerd"
        " to the distribution's docker.io, and the two sets are not mixed",
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
        "the triggers of {PACKAGE|a package}, which run its script whenever others change certain files, start each"
        " other without end: dpkg gave up and left the package unfinished",
        "Run dpkg --configure -a once more, which is enough where an upgrade had changed the files. Where they loop"
        " again, upgrade {PACKAGE|the package} or remove it, and report it to whoever makes it",
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
        "the program was started by a user who is not root, and needs to be",
        "Start it with sudo, or give the host's user the rights that the documentation names",
        "apt debsystem.cc; dpkg; nvidia-installer nvidia-installer.c",
        unless=r"^\s*(?:-|#)",
    ),
    KILLED,
    *KERNEL_FAULTS,
    FailureRule(
        "chroot-without-mounts",
        r"grub-probe: error: cannot find a device for / \(is /dev mounted",
        "a package's script runs in a chroot or a container without /dev, /proc and /sys, and cannot see the host's"
        " disks",
        "Mount them first (mount --rbind /dev, /proc and /sys below the chroot, and /dev/pts), then run"
        " dpkg --configure -a there",
        "GNU GRUB util/grub-probe.c",
        weight="consequence",
    ),
    FailureRule(
        "etckeeper-uncommitted",
        r"etckeeper detected uncommitted changes in /etc|etckeeper (?:aborted|failed) [^\n]{0,40}(?:commit|apt)"
        r"|Aborting apt run\. Manually commit",
        "etckeeper lets no apt run begin while /etc has changes that nobody committed (AVOID_COMMIT_BEFORE_INSTALL)",
        "Read and commit them on the host (cd /etc; git status; etckeeper commit), then provision again. Files that"
        " Hostwright writes to /etc count too: where AVOID_COMMIT_BEFORE_INSTALL stays set in"
        " /etc/etckeeper/etckeeper.conf, each run stops like this",
        "etckeeper pre-install.d/50uncommitted-changes; SoftCreatR/imei#102",
        transient=False,
    ),
    FailureRule(
        "apt-hook-failed",
        r"Problem executing scripts (?:DPkg|APT|AptCli)::[\w:-]{1,60} '|E: Failure running script ",
        "a program that the host's apt configuration runs with each call failed, and apt stopped: HOOK",
        "The lines above say what that program wants; grep -r Invoke /etc/apt/apt.conf.d names the file that sets it."
        " Fix its cause, then provision again",
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
        "the file /boot/config-RELEASE, which that kernel's package brings, is missing, so that no initramfs can be"
        " made and the package stays unconfigured",
        "Install the package again, which brings the file back: apt-get install --reinstall linux-image-RELEASE, then"
        " dpkg --configure -a",
        "initramfs-tools mkinitramfs; dkms-project/dkms#302",
        names=(r"/boot/config-(?P<release>[^\s:]{1,80}): No such",),
    ),
    FailureRule(
        "initramfs-modules-dep",
        r"mkinitramfs: failed to determine device for [^\n]*|mkinitramfs: workaround is:? MODULES=most[^\n]*",
        "no initramfs could be made: MODULES=dep in /etc/initramfs-tools is to hold only the modules of the device that"
        " has /, and mkinitramfs cannot find out which one that is (an overlay, tmpfs, ZFS, a container)",
        "Set MODULES=most where it says dep (grep -r ^MODULES /etc/initramfs-tools/initramfs.conf"
        " /etc/initramfs-tools/conf.d), then run update-initramfs -u -k all and dpkg --configure -a",
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
        "grub-pc is not configured: the disks on which it is to put the boot loader, which debconf keeps by name, are"
        " not in this machine, as after a disk's replacement or in the copy of an image",
        "Name the disk that the machine boots from: dpkg-reconfigure grub-pc asks for it; unattended, echo 'grub-pc"
        " grub-pc/install_devices multiselect /dev/DISK' | debconf-set-selections (lsblk shows the disks,"
        " /dev/disk/by-id their lasting names). Then run dpkg --configure -a",
        "Debian grub2, debian/postinst.in; osism/openstack-image-manager#161",
        transient=False,
        sign=GRUB_DEVICE,
        treatment=ForPeople(),
        covers=Covers(("package-script-failed",), lambda ctx: packages_of(grub_device(ctx))),
        weight="consequence",
    ),
    FailureRule(
        "initramfs-build-failed",
        # the line that says why, where one of the six before it does: it leads the evidence
        rf"(?:^{WHY}\n(?:[^\n]*\n){{0,5}}?)?[^\n]*"
        r"(?:update-initramfs: failed for |Failed to create initrd image|mkinitramfs: [^\n]*: not found"
        r"|mkinitramfs failure|dracut(?:\[[0-9]{1,9}\])?: FAILED)",
        "the initramfs of a kernel could not be made, so that this kernel may not boot, or boots without its modules",
        "The lines above it say what failed (a program or file that is missing, a hook in /etc/initramfs-tools/hooks):"
        " fix that, then run update-initramfs -u -k all and dpkg --configure -a",
        "initramfs-tools, update-initramfs; dracut",
        weight="consequence",
    ),
    FailureRule(
        "package-asks",
        r"end of file on stdin at conffile prompt|^\*\*\* \S{1,200} \(Y/I/N/O/D/Z\)",
        "a configuration file that its package brings anew was changed on the host: dpkg asks which to keep, and nobody"
        " answers",
        "Compare the two (FILE and FILE.dpkg-new or .dpkg-dist); dpkg --force-confdef --force-confold --configure -a"
        " keeps the host's, as a run of provision does, --force-confnew takes the package's",
        "dpkg src/main/configure.c; mail-in-a-box/mailinabox#270",
        names=(r"^\*\*\* (?P<file>[\w.+-]{1,100}) \(Y/I", r"[Cc]onfiguration file ['‘](?P<file>/[^'’\s]{1,200})['’]"),
        beside=r"[Cc]onfiguration file ['‘]/",
        transient=False,
    ),
    FailureRule(
        "package-alternative",
        r"update-alternatives: error: alternative [^\n]*(?: managed by | exists but | doesn't exist)[^\n]*"
        r"|update-alternatives: error: [^\n]*(?:not a symlink|unable to make|not exist)[^\n]*",
        "a package registers a program or library with update-alternatives, and another name has that link, or the"
        " files are not there: its script fails",
        "See whose it is (update-alternatives --display NAME, dpkg -S with the path it shows): where no package has"
        " it any more, update-alternatives --remove-all NAME; where one has, install that one again, or do without it"
        " if nobody needs it; then dpkg --configure -a",
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
        "Install what brings it (update-initramfs: initramfs-tools; update-grub: grub2-common; dkms: dkms; else"
        " dpkg -S and apt-file search bin/PROGRAM name the package), then dpkg --configure -a",
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
        "the script of PACKAGE is Python, and python3 does not find the module MODULE: mostly python3 is not the"
        " distribution's (another in /usr/bin or /usr/local/bin, an alternative)",
        "See which python3 it is (readlink -f /usr/bin/python3; dpkg -S says whose): lead /usr/bin/python3 back to the"
        " distribution's, or install that package again, then dpkg --configure -a",
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
        "PACKAGE is not removed: its own script for that, /var/lib/dpkg/info/PACKAGE.prerm, fails{ with status STATUS|}"
        "{ (WHY)|}. The package is as it was, each further try ends at the same script, and dpkg --configure -a"
        " mends nothing",
        "Give the script what it asks for, for the moment of the removal (a daemon that it talks to, a file, a"
        " program). Where that is gone for good, correct the line in /var/lib/dpkg/info/PACKAGE.prerm that fails, or"
        " take the script away (mv /var/lib/dpkg/info/PACKAGE.prerm /var/backups/): dpkg then removes the package"
        " without it. Or install a release of PACKAGE whose script is mended. Then do again what failed (provision,"
        " apt-get remove); what the script should have undone is left to you",
        "dpkg src/main/remove.c; dpkg(1); NVIDIA/nvidia-docker#272; ntop/n2disk#8",
        # the script of a package that is just being installed cleans up after another failure
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
                "PACKAGE is half removed: its files are gone, and its own script that runs after that,"
                " /var/lib/dpkg/info/PACKAGE.postrm, fails{ with status STATUS|}{ (WHY)|}. Each further try ends at the"
                " same script, and dpkg --configure -a mends nothing",
                "Give the script what it asks for (a file, a program, an account that is gone already). Where that is"
                " gone for good, correct the line in /var/lib/dpkg/info/PACKAGE.postrm that fails, or take the script"
                " away (mv /var/lib/dpkg/info/PACKAGE.postrm /var/backups/), then do again what failed (provision,"
                " apt-get remove); what the script should have undone is left to you",
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
        # the line that says why, where one of the six before it does: it leads the evidence
        rf"(?:^{WHY}\n(?:[^\n]*\n){{0,5}}?)?(?:^dpkg: error processing [^\n]*\n)?"
        rf"[^\n]*(?:{SCRIPT_ENDED}"
        r"|脚本 ?(?:子进程 ?)?返回"
        r"|Unterprozess[^\n]*Skript[^\n]*Fehler"
        r"|sous-processus[^\n]*script[^\n]*erreur"
        r"|subproceso[^\n]*script[^\n]*error"
        r"|sottoprocesso[^\n]*script[^\n]*errore"
        r"|subprocesso[^\n]*script[^\n]*erro"
        r"|подпроцесс[^\n]*сценари)",
        "a script that PACKAGE brings failed, and dpkg left it unfinished",
        "The lines above dpkg's error say what failed (they are in /var/log/apt/term.log too, and dpkg --configure -a"
        " prints them again): fix that, then provision again, which runs dpkg --configure -a",
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
                "Make the account as the package does (adduser --system --group --no-create-home {ACCOUNT|NAME}; its"
                " scripts in /var/lib/dpkg/info/PACKAGE.* name home and shell), then dpkg --configure -a. Where an"
                " older release of it had been removed by half, take its newest one instead",
            ),
            Variant(
                r"Job for \S{1,100} failed|invoke-rc\.d: initscript|Failed to (?:re)?start \S{1,100}\.(?:service"
                r"|socket)",
                "the script of PACKAGE starts {UNIT|a service}, and that does not start, so that the package stays"
                " unconfigured",
                "Read the service's own lines (journalctl -u UNIT -n 50 --no-pager) and fix their cause; when"
                " systemctl start UNIT works, dpkg --configure -a finishes the package",
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
        "dpkg failed on {PACKAGE|a package}; this part of its output does not say why",
        "Its reason stands above, where the package's name comes first (dpkg: error processing …), and in"
        " /var/log/apt/term.log; dpkg --configure -a prints it again, of a package that was to be removed apt-get"
        " remove {PACKAGE|with its name} does",
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
        "apt could not read all of its repositories; the tool in front of it does not say which one, or why",
        "Run apt-get update on the host as root: its lines that begin with Err, W: and E: name the repository and the"
        " reason (a key, a name, a proxy, an address that is gone)",
        "Ansible modules/apt.py; apt apt-pkg/update.cc",
        weight="wrapper",
    ),
    FailureRule(
        "dependency-unconfigured",
        r"dpkg: dependency problems(?::| prevent configuration of)|dependency problems - leaving unconfigured"
        r"|Abhängigkeitsprobleme verhindern|problèmes de dépendances empêchent|problemas de dependencias impiden"
        r"|依赖关系问题 - 仍未被配置|依赖关系问题使得",
        "a package that another depends on is not installed or not configured, so that this one waits for it",
        "Let apt bring what is missing (apt-get -f install); where a package's own script failed, its message stands"
        " above this one",
        "dpkg src/main/packages.c",
        beside=r"depends on .*; however|^ {1,4}(?:Package|Version) .* is (?:not|to be)|however:$",
        weight="consequence",
    ),
)

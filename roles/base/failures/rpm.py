"""Messages of dnf, yum and rpm, which people bring from hosts of Red Hat's family: the roles themselves use apt."""

from __future__ import annotations

from hostwright.failures import FailureRule, Variant

#: a package of the driver's by NVIDIA, RPM Fusion or negativo17
_DRIVER = r"\S*(?:nvidia|cuda-drivers)\S*"

RPM_RULES = (
    FailureRule(
        "dnf-words-changed",
        r"Unknown argument \"[^\"\n]{1,60}\" for command \"(?:config-manager|module|repolist)\""
        r"|No such command: config-manager",
        "dnf 5 (Fedora 41 and later) has other words than dnf 4: {WORD is|this is} the form of the older one, as"
        " scripts and guides have it",
        "Write it in today's form: dnf config-manager addrepo --from-repofile=URL (for --add-repo), dnf config-manager"
        " setopt REPO.enabled=1 (for --set-enabled; 0 for --set-disabled); streams of modules are gone with Fedora 39."
        " Or take the script's newer release. Repositories and cards are not at fault",
        "dnf5's manual, changes from dnf 4; ollama/ollama#7336",
        names=(r"Unknown argument \"(?P<word>[^\"\n]{1,60})\"",),
        variants=(
            Variant(
                r"No such command: config-manager",
                "dnf has no config-manager on this host: it comes with a plug-in package of its own",
                "Install it (dnf install dnf-plugins-core, with dnf 5 dnf5-plugins) and do it again, or put the"
                " repository's .repo file into /etc/yum.repos.d by hand (curl -o)",
            ),
        ),
    ),
    FailureRule(
        "rpm-driver-sources-mixed",
        rf"package {_DRIVER} from \S+ (?:conflicts with|obsoletes) {_DRIVER}[^\n]*"
        rf"|package {_DRIVER} (?:from \S+ )?is filtered out by (?:modular|exclude) filtering"
        rf"|file \S+ from install of {_DRIVER} conflicts with file from package {_DRIVER}"
        rf"|file \S+ conflicts between attempted installs of {_DRIVER} and {_DRIVER}"
        rf"|cannot install both {_DRIVER} (?:from|and) |Processing Conflict: {_DRIVER} conflicts [^\n]*"
        rf"|{_DRIVER} does not belong to a distupgrade repository",
        "the driver's packages of two sources are mixed{, one of them SOURCE|}: NVIDIA's CUDA repository, RPM Fusion,"
        " negativo17 and the distribution have packages of the same purpose that exclude each other",
        "Keep one source for the driver (rpm -qa '*nvidia*' and dnf list --installed say from where each is). Disable"
        " the other one: enabled=0 in its file in /etc/yum.repos.d, or keep it for CUDA alone with exclude=*nvidia*"
        " there. Beside RPM Fusion's also run dnf module disable nvidia-driver, whose stream hides its packages. Take"
        " the repository for this release of the distribution. Then dnf distro-sync; --allowerasing and --skip-broken"
        " only take the working driver away, or hide it",
        "RPM Fusion's guide to CUDA; ollama/ollama#1593",
        names=(
            r"from (?P<source>cuda-\S{1,60})",
            rf"package {_DRIVER} from (?P<source>[^@\s]\S{{0,60}})",
        ),
        variants=(
            Variant(
                r"does not belong to a distupgrade repository",
                "the upgrade of the distribution stops at the driver's packages: they are of a repository that has none"
                " for the new release, or that is still the one of the old release",
                "Name the repository for the new release (RPM Fusion's release package, or the .repo file of NVIDIA's"
                " CUDA repository for it), or take the driver out for the upgrade (dnf remove '*nvidia*') and install"
                " it again after; --allowerasing removes it without saying what comes back",
            ),
            Variant(
                r"filtered out by exclude",
                "a line exclude= of dnf's (/etc/dnf/dnf.conf, or the repository's file) hides the package, so that what"
                " needs it cannot be installed",
                "See who wrote it and why (grep -rn exclude /etc/dnf /etc/yum.repos.d): it mostly keeps the driver of a"
                " second source out. Take it out where that is no longer meant, or for one call --disableexcludes=all",
            ),
            Variant(
                r"^[^\n]*filtered out by modular filtering$",
                "a stream of dnf's modules hides the package: while nvidia-driver of NVIDIA's CUDA repository is"
                " active, dnf takes the driver from there alone",
                "Choose one source for the driver: dnf module reset nvidia-driver, then dnf module disable"
                " nvidia-driver for the driver of RPM Fusion or the distribution, or dnf module install"
                " nvidia-driver:STREAM for NVIDIA's; disable the other repository. Where NVIDIA's repository is the"
                " only one, fetch its metadata anew (dnf clean metadata), and where the packages stay hidden, write"
                " module_hotfixes=1 into its file below /etc/yum.repos.d; --skip-broken does not help",
            ),
        ),
    ),
    FailureRule(
        "dnf-module-stream",
        r"not possible to switch enabled streams of a module|Cannot enable more streams from module[^\n]*"
        r"|missing groups or modules: [^\n]*"
        r"|(?:No match for argument|Unable to find a match): nvidia-driver:[^\n]*"
        r"|The operation would result in switching of module '[^'\n]*nvidia[^\n]*",
        "dnf does not take the module's stream{ STREAM|}: no repository of the host has it under this name",
        "See what there is (dnf module list nvidia-driver) and add NVIDIA's CUDA repository for this release where"
        " there is none. Without streams (Fedora, RHEL 10) install the packages themselves: nvidia-open, or"
        " cuda-drivers",
        "NVIDIA's driver installation guide, RHEL; dnf's manual, module",
        names=(r"(?:modules|argument|match): (?P<stream>[\w:.@/-]{3,60})",),
        variants=(
            Variant(
                r"switch|more streams",
                "another stream of the module is enabled already, and dnf changes it only when it is reset",
                "Run dnf module reset nvidia-driver, then dnf module install nvidia-driver:STREAM with the one that is"
                " wanted (dnf module list nvidia-driver)",
            ),
        ),
    ),
    FailureRule(
        "rpm-key-missing",
        r"Public key for \S+\.rpm is not installed|GPG check FAILED|OpenPGP check for package [^\n]+ failed"
        r"|GPG Keys are configured as: [^\n]*",
        "dnf has not the key with which the packages are signed, or the repository's file names an older one",
        "Import the key that the repository names today (gpgkey= in /etc/yum.repos.d; rpm --import URL), or install the"
        " repository's file again; NVIDIA's CUDA repositories are signed with D42D0685.pub since April 2022. Then dnf"
        " clean all. Not --nogpgcheck",
        "NVIDIA's notice on its repository keys, April 2022; dnf.conf(5), gpgkey",
    ),
    FailureRule(
        "dnf-metadata",
        r"Status code: [45][0-9]{2} for \S+/repodata/\S+[^\n]*|Curl error \([0-9]{1,2}\): [^\n]*for \S+/repodata/\S+"
        r"|\[Errno 14\][^\n]*repodata\S*[^\n]*",
        "dnf does not get a repository's lists{: URL|}",
        "Fetch the address by hand (curl -I) to see what keeps it: name resolution, a proxy (proxy= in"
        " /etc/dnf/dnf.conf), a certificate, or a mirror. A repository that is no longer needed: enabled=0 in its file",
        "librepo, downloader.c; dnf.conf(5)",
        names=(r"for (?P<url>https?://[^\s\]]{5,200})",),
        variants=(
            Variant(
                r"(?:Status code: |HTTP Error )404",
                "the address of a repository does not exist{: URL|}: it is not made for this release of the"
                " distribution (NVIDIA's CUDA repository has some releases of Fedora only), or its file was written for"
                " another one",
                "Correct the .repo file in /etc/yum.repos.d: name the nearest release that the address has (open it in"
                " a browser; for NVIDIA's driver and CUDA rhel9, fedora42 …), or disable it where it is not needed"
                " (enabled=0); then dnf clean all",
            ),
        ),
        closing=r"Failed to download metadata for repo [^\n]*|Cannot download repomd\.xml",
    ),
    FailureRule(
        "rpm-build-needs",
        r"error: Failed build dependencies:\n[^\n]* is needed by [^\n]*",
        "PACKAGE is built on this host (akmods builds the driver's module so) and needs NEEDED for that, which is not"
        " installed",
        "Install it (dnf install '{NEEDED|NAME}'), then build again: akmods --force --kernels $(uname -r), or rpmbuild."
        " Kernel, headers and driver fit",
        "rpm, build/parsePreamble.c",
        names=(r"\n\s*(?P<needed>[^\n]{1,100}?) is needed by (?P<package>\S{1,120})",),
    ),
    FailureRule(
        "rpm-unsolvable",
        r"package \S+ (?:from \S+ )?requires [^\n]{1,160}, but none of the providers can be installed"
        r"|package \S+ (?:from \S+ )?conflicts with [^\n]{1,160}|Problem(?: [0-9]{1,2})?: conflicting requests[^\n]*"
        r"|error: Failed dependencies:\n[^\n]+ is needed by [^\n]+|nothing provides [^\n]{1,100} needed by [^\n]+",
        "{PACKAGE needs NEEDED|packages that were asked for exclude each other}, and dnf finds no set of packages that"
        " fits together",
        "Read the lines of each Problem down to the last, which names the reason: a package of another source or"
        " release that is installed, a repository that is missing or disabled (EPEL, CRB), an exclude= or a stream of a"
        " module. dnf repoquery --whatprovides '{NEEDED|NAME}' and dnf list --showduplicates say who has what. Mend"
        " that; --skip-broken and --nobest leave it out, --allowerasing may remove what works",
        "libsolv, problems.c; dnf(8)",
        names=(
            r"nothing provides (?P<needed>[^\n]{1,100}?) needed by (?P<package>\S{1,120})",
            r"package (?P<package>\S{1,120}) (?:from \S+ )?requires (?P<needed>[^\n,]{1,120}),",
            r"dependencies:\n\s*(?P<needed>[^\n]{1,100}?) is needed by (?:\(installed\) )?(?P<package>\S{1,120})",
        ),
        beside=r"nothing provides |, but none of the providers can be installed",
        narrower=r"\b(?:conda|mamba|micromamba|LibMamba\w*|environment\.yml)\b",  # which has these words too
        variants=(
            Variant(
                r"(?:nothing provides|requires) '?dkms(?:\(\S{1,20}\))? ?>?= ?[0-9]",
                "PACKAGE builds its module with {NEEDED|a newer dkms}, and the enabled repositories have an older one"
                " or none: it comes from EPEL, or from a mirror or snapshot of it that is behind",
                "Enable EPEL, or bring the mirror or snapshot of it up to date (dnf list --showduplicates dkms; dnf"
                " clean metadata), then install again. NVIDIA's repository and the kernel are in order",
            ),
            Variant(
                r"nothing provides '?dkms|requires '?dkms",
                "PACKAGE builds its module with DKMS, and no enabled repository has that: it is in EPEL",
                "Enable EPEL (dnf install epel-release, on RHEL its rpm from the Fedora project, with CRB enabled),"
                " then install again; or take a stream with precompiled modules",
            ),
            Variant(
                r"package (?:cuda(?:-(?:runtime|demo-suite|drivers)\S{0,4})?-[0-9]\S*) (?:from \S+ )?requires",
                "PACKAGE stands for CUDA as a whole and needs NEEDED, with a driver of its own branch, which dnf does"
                " not take: a stream of the module nvidia-driver, a versionlock, an exclude= or a driver of another"
                " source holds another branch",
                "Install the toolkit alone (dnf install cuda-toolkit-X-Y), which needs no driver package. Or let both"
                " go together: the CUDA of the branch that is held (cuda-X-Y of its time), or that branch's stream (dnf"
                " module list nvidia-driver; dnf module reset nvidia-driver, then install nvidia-driver:BRANCH). The"
                " repository is not at fault",
            ),
            Variant(
                r"nothing provides ",
                "PACKAGE needs NEEDED, and no enabled repository has that",
                "See what would have it (dnf provides '{NEEDED|NAME}'): mostly a repository is missing or disabled"
                " (EPEL, CRB, the distribution's updates), or PACKAGE is from a repository for another release of the"
                " distribution, or for a newer kernel than the host's. Add it, or take PACKAGE's release for this host",
            ),
        ),
        weight="consequence",
    ),
)

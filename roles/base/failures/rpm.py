"""Failure messages of dnf, yum and rpm. Hostwright's roles use apt; these rules serve users who look up messages of Red
Hat's distributions.
"""

from __future__ import annotations

from hostwright.failures import FailureRule, Variant

_DRIVER = r"\S*(?:nvidia|cuda-drivers)\S*"  #: pattern of a driver package's name at NVIDIA, RPM Fusion and negativo17

RPM_RULES = (
    FailureRule(
        "dnf-words-changed",
        r"Unknown argument \"[^\"\n]{1,60}\" for command \"(?:config-manager|module|repolist)\""
        r"|No such command: config-manager",
        "dnf 5 (Fedora 41 and later) has another syntax than dnf 4: {WORD is|this is} the older form, as in older "
        "scripts and guides",
        "Use the current syntax: dnf config-manager addrepo --from-repofile=URL (for --add-repo), dnf config-manager "
        "setopt REPO.enabled=1 (for --set-enabled; 0 for --set-disabled); module streams do not exist since Fedora "
        "39. Or use a newer release of the script. Repositories and cards are not the cause",
        "dnf5's manual, changes from dnf 4; ollama/ollama#7336",
        names=(r"Unknown argument \"(?P<word>[^\"\n]{1,60})\"",),
        variants=(
            Variant(
                r"No such command: config-manager",
                "dnf has no config-manager on this host: it is in a separate plug-in package",
                "Install it (dnf install dnf-plugins-core, with dnf 5 dnf5-plugins) and repeat the command, or write "
                "the repository's .repo file to /etc/yum.repos.d by hand (curl -o)",
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
        "the driver's packages of two sources are mixed{, one of them SOURCE|}: NVIDIA's CUDA repository, RPM "
        "Fusion, negativo17 and the distribution have packages with the same purpose that exclude each other",
        "Keep one source for the driver (rpm -qa '*nvidia*' and dnf list --installed show the source of each "
        "package). Disable the other one: enabled=0 in its file in /etc/yum.repos.d, or keep it only for CUDA with "
        "exclude=*nvidia* there. With RPM Fusion's, also run dnf module disable nvidia-driver, whose stream hides "
        "its packages. Use the repository for this release of the distribution. Then run dnf distro-sync; "
        "--allowerasing and --skip-broken only remove the working driver, or hide the conflict",
        "RPM Fusion's guide to CUDA; ollama/ollama#1593",
        names=(
            r"from (?P<source>cuda-\S{1,60})",
            rf"package {_DRIVER} from (?P<source>[^@\s]\S{{0,60}})",
        ),
        variants=(
            Variant(
                r"does not belong to a distupgrade repository",
                "the upgrade of the distribution stops at the driver's packages: their repository has none for the "
                "new release, or is still the one for the old release",
                "Configure the repository for the new release (RPM Fusion's release package, or the .repo file of "
                "NVIDIA's CUDA repository for it), or remove the driver for the upgrade (dnf remove '*nvidia*') and "
                "install it again afterwards; --allowerasing removes it without listing a replacement",
            ),
            Variant(
                r"filtered out by exclude",
                "a line exclude= of dnf (/etc/dnf/dnf.conf, or the repository's file) hides the package, so packages "
                "that need it cannot be installed",
                "Find out who wrote it and why (grep -rn exclude /etc/dnf /etc/yum.repos.d): usually it excludes the "
                "driver of a second source. Remove it if that is no longer intended, or use --disableexcludes=all "
                "for one call",
            ),
            Variant(
                r"^[^\n]*filtered out by modular filtering$",
                "a module stream of dnf hides the package: while nvidia-driver of NVIDIA's CUDA repository is "
                "enabled, dnf installs the driver only from there",
                "Choose one source for the driver: dnf module reset nvidia-driver, then dnf module disable "
                "nvidia-driver for the driver of RPM Fusion or the distribution, or dnf module install "
                "nvidia-driver:STREAM for NVIDIA's; disable the other repository. If NVIDIA's repository is the only "
                "one, refresh its metadata (dnf clean metadata); if the packages stay hidden, write "
                "module_hotfixes=1 to its file in /etc/yum.repos.d; --skip-broken does not help",
            ),
        ),
    ),
    FailureRule(
        "dnf-module-stream",
        r"not possible to switch enabled streams of a module|Cannot enable more streams from module[^\n]*"
        r"|missing groups or modules: [^\n]*"
        r"|(?:No match for argument|Unable to find a match): nvidia-driver:[^\n]*"
        r"|The operation would result in switching of module '[^'\n]*nvidia[^\n]*",
        "dnf does not find the module stream{ STREAM|}: no repository of the host has it under this name",
        "List the streams (dnf module list nvidia-driver) and, if there are none, add NVIDIA's CUDA repository for "
        "this release. Without streams (Fedora, RHEL 10) install the packages themselves: nvidia-open, or "
        "cuda-drivers",
        "NVIDIA's driver installation guide, RHEL; dnf's manual, module",
        names=(r"(?:modules|argument|match): (?P<stream>[\w:.@/-]{3,60})",),
        variants=(
            Variant(
                r"switch|more streams",
                "another stream of the module is already enabled, and dnf changes it only after a reset",
                "Run dnf module reset nvidia-driver, then dnf module install nvidia-driver:STREAM with the intended "
                "stream (dnf module list nvidia-driver)",
            ),
        ),
    ),
    FailureRule(
        "rpm-key-missing",
        r"Public key for \S+\.rpm is not installed|GPG check FAILED|OpenPGP check for package [^\n]+ failed"
        r"|GPG Keys are configured as: [^\n]*",
        "dnf does not have the key with which the packages are signed, or the repository's file names an older one",
        "Import the repository's current key (gpgkey= in /etc/yum.repos.d; rpm --import URL), or install the "
        "repository's file again; NVIDIA's CUDA repositories are signed with D42D0685.pub since April 2022. Then run "
        "dnf clean all. Do not use --nogpgcheck",
        "NVIDIA's notice on its repository keys, April 2022; dnf.conf(5), gpgkey",
    ),
    FailureRule(
        "dnf-metadata",
        r"Status code: [45][0-9]{2} for \S+/repodata/\S+[^\n]*|Curl error \([0-9]{1,2}\): [^\n]*for \S+/repodata/\S+"
        r"|\[Errno 14\][^\n]*repodata\S*[^\n]*",
        "dnf cannot download a repository's lists{: URL|}",
        "Fetch the address by hand (curl -I) to find the reason: name resolution, a proxy (proxy= in "
        "/etc/dnf/dnf.conf), a certificate, or a mirror. For a repository that is no longer needed, set enabled=0 in "
        "its file",
        "librepo, downloader.c; dnf.conf(5)",
        names=(r"for (?P<url>https?://[^\s\]]{5,200})",),
        variants=(
            Variant(
                r"(?:Status code: |HTTP Error )404",
                "the address of a repository does not exist{: URL|}: it is not published for this release of the "
                "distribution (NVIDIA's CUDA repository has only some releases of Fedora), or its file was written "
                "for another one",
                "Correct the .repo file in /etc/yum.repos.d: name the nearest release at the address (open it in a "
                "browser; for NVIDIA's driver and CUDA rhel9, fedora42 …), or, if it is not needed, disable it "
                "(enabled=0); then run dnf clean all",
            ),
        ),
        closing=r"Failed to download metadata for repo [^\n]*|Cannot download repomd\.xml",
    ),
    FailureRule(
        "rpm-build-needs",
        r"error: Failed build dependencies:\n[^\n]* is needed by [^\n]*",
        "PACKAGE is built on this host (as akmods does with the driver's module) and needs NEEDED for that, which is "
        "not installed",
        "Install it (dnf install '{NEEDED|NAME}'), then build again: akmods --force --kernels $(uname -r), or "
        "rpmbuild. Kernel, headers and driver are not the cause",
        "rpm, build/parsePreamble.c",
        names=(r"\n\s*(?P<needed>[^\n]{1,100}?) is needed by (?P<package>\S{1,120})",),
    ),
    FailureRule(
        "rpm-unsolvable",
        r"package \S+ (?:from \S+ )?requires [^\n]{1,160}, but none of the providers can be installed"
        r"|package \S+ (?:from \S+ )?conflicts with [^\n]{1,160}|Problem(?: [0-9]{1,2})?: conflicting requests[^\n]*"
        r"|error: Failed dependencies:\n[^\n]+ is needed by [^\n]+|nothing provides [^\n]{1,100} needed by [^\n]+",
        "{PACKAGE needs NEEDED|requested packages exclude each other}, and dnf finds no set of packages without "
        "conflicts",
        "Find the reason in the last line of each Problem: an installed package of another source or release, a "
        "missing or disabled repository (EPEL, CRB), an exclude= or a module stream. dnf repoquery --whatprovides "
        "'{NEEDED|NAME}' and dnf list --showduplicates list the sources. Fix that; --skip-broken and --nobest only "
        "skip the package, --allowerasing may remove working packages",
        "libsolv, problems.c; dnf(8)",
        names=(
            r"nothing provides (?P<needed>[^\n]{1,100}?) needed by (?P<package>\S{1,120})",
            r"package (?P<package>\S{1,120}) (?:from \S+ )?requires (?P<needed>[^\n,]{1,120}),",
            r"dependencies:\n\s*(?P<needed>[^\n]{1,100}?) is needed by (?:\(installed\) )?(?P<package>\S{1,120})",
        ),
        beside=r"nothing provides |, but none of the providers can be installed",
        narrower=r"\b(?:conda|mamba|micromamba|LibMamba\w*|environment\.yml)\b",
        variants=(
            Variant(
                r"(?:nothing provides|requires) '?dkms(?:\(\S{1,20}\))? ?>?= ?[0-9]",
                "PACKAGE builds its module with {NEEDED|a newer dkms}, and the enabled repositories have an older "
                "one or none: it is in EPEL, or a mirror or snapshot of EPEL is outdated",
                "Enable EPEL, or update its mirror or snapshot (dnf list --showduplicates dkms; dnf clean metadata), "
                "then install again. NVIDIA's repository and the kernel are not the cause",
            ),
            Variant(
                r"nothing provides '?dkms|requires '?dkms",
                "PACKAGE builds its module with DKMS, and no enabled repository has DKMS: it is in EPEL",
                "Enable EPEL (dnf install epel-release; on RHEL, its rpm from the Fedora project, with CRB enabled), "
                "then install again; or use a stream with precompiled modules",
            ),
            Variant(
                r"package (?:cuda(?:-(?:runtime|demo-suite|drivers)\S{0,4})?-[0-9]\S*) (?:from \S+ )?requires",
                "PACKAGE covers all of CUDA and needs NEEDED, with a driver of its own branch, which dnf does not "
                "install: a stream of the module nvidia-driver, a versionlock, an exclude= or a driver of another "
                "source fixes another branch",
                "Install only the toolkit (dnf install cuda-toolkit-X-Y), which needs no driver package. Or choose "
                "matching branches: the CUDA of the fixed branch (cuda-X-Y of its time), or PACKAGE's own stream "
                "(dnf module list nvidia-driver; dnf module reset nvidia-driver, then install nvidia-driver:BRANCH). "
                "The repository is not the cause",
            ),
            Variant(
                r"nothing provides ",
                "PACKAGE needs NEEDED, and no enabled repository has it",
                "Find a package with it (dnf provides '{NEEDED|NAME}'): usually a repository is missing or disabled "
                "(EPEL, CRB, the distribution's updates), or PACKAGE is from a repository for another release of the "
                "distribution, or for a newer kernel than the host's. Add the repository, or use PACKAGE's release "
                "for this host",
            ),
        ),
        weight="consequence",
    ),
)

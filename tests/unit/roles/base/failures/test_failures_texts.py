"""Texts that people met are recognised in every wording, and others that only look like them are not."""

from __future__ import annotations

import pytest

from hostwright.audit.failures import Catalogue
from hostwright.standard.roles.base.failures import FAILURES
from tests.unit.support.known import KNOWN

#: pip 10 to 23: the sentence stands before every reason
CAUSED = (
    "Could not fetch URL https://a/simple/x/: There was a problem confirming the ssl certificate: HTTPSConnectionPool("
    "host='a', port=443): Max retries exceeded with url: /simple/x/ (Caused by {}) - skipping"
)
REFUSED = "NewConnectionError('<x.HTTPSConnection object>: Failed to establish a new connection: [Errno 111] refused')"
RETRIED = "WARNING: Retrying (Retry(total=4, connect=None)) after connection broken by"
GOT_IT = "Collecting x\n  Downloading https://pypi.example/x-1.0-py3-none-any.whl (10.1 MB)"

TEXTS = {
    "unit-ordering-cycle": (
        "systemd[1]: docker.service: Found ordering cycle on nvidia-cdi-refresh.service/start\n"
        "systemd[1]: docker.service: Found dependency on multi-user.target/start\n"
        "systemd[1]: docker.service: Unable to break cycle starting with docker.service/start",
        "systemd[1]: Breaking ordering cycle by deleting job rpcbind.service/start",
    ),
    "unit-dependency": (
        "systemd[1]: docker.socket: Failed with result 'exit-code'.\n"
        "systemd[1]: Dependency failed for Docker Application Container Engine.",
        "A dependency job for docker.service failed. See 'journalctl -xe' for details.",
    ),
    "sshd-config": ("/etc/ssh/sshd_config: terminating, 1 bad configuration options",),
    "locked-memory-limit": ("vfio_pin_pages_remote: RLIMIT_MEMLOCK (65536) exceeded",),
    "package-asks": ("*** bind9 (Y/I/N/O/D/Z) [default=N] ? ",),
    "tls-answered-plainly": ("http: server gave HTTP response to HTTPS client",),
    "no-space": (
        "failed to register layer: ApplyLayer exit status 1 stdout:  stderr: mkdir /x: no space left on device",
        "E: You don't have enough free space in /var/cache/apt/archives/.",
        "OSError: [Errno 122] Disk quota exceeded",
    ),
    "out-of-memory": (
        "Dec 11 10:48:09 host kernel: thrash invoked oom-killer: gfp_mask=0xd0, order=0, oom_score_adj=0",
        "Memory cgroup out of memory: Kill process 24572 (java) score 0 or sacrifice child",
        "Memory cgroup out of memory: Killed process 63214 (uwsgi) total-vm:3149468kB",
        "Out of memory (oom_kill_allocating_task): Kill process 9 (x) score 1 or sacrifice child",
        "Killed process 28438 (java) total-vm:20255636kB, anon-rss:466160kB, file-rss:13684kB",
        "Tasks state (memory values in pages):",
        "docker.service: Failed with result 'oom-kill'.",
        "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=12.0.",
        '            "OOMKilled": true,',
        "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 3.00 GiB for an array",
        "Traceback (most recent call last):\nMemoryError",
        "terminate called after throwing an instance of 'std::bad_alloc'",
        "[ 7097.005006]  oom_kill_process.cold+0xb/0x10",
        "[  pid  ]   uid  tgid total_vm      rss rss_anon pgtables_bytes swapents oom_score_adj name",
        "-bash: fork: retry: Cannot allocate memory",
        "OSError: [Errno 12] Cannot allocate memory",
    ),
    "build-out-of-memory": (
        "g++: internal compiler error: Killed (program cc1plus)",
        "cc1plus: out of memory allocating 65536 bytes after a total of 1 bytes\nERROR: Failed building wheel for x",
    ),
    "no-root": ("E: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), are you root?",),
    "killed-by-signal-9": ("Killed", "./run.sh: line 5:  1234 Killed                  python train.py"),
    "processor-stuck": (
        "BUG: soft lockup - CPU#6 stuck for 67s! [z_wr_iss/6:5856]",
        "NMI watchdog: Watchdog detected hard LOCKUP on cpu 3",
        "rcu: INFO: rcu_sched self-detected stall on CPU",
        "INFO: rcu_preempt detected stalls on CPUs/tasks:",
        "rcu: rcu_sched kthread starved for 5250 jiffies!",
    ),
    "hung-task": (
        "[ 6141.921740] INFO: task kworker/u8:0:5 blocked for more than 120 seconds.",
        '"echo 0 > /proc/sys/kernel/hung_task_timeout_secs" disables this message.',
        "INFO: task python:5 blocked in I/O wait for more than 122 seconds.",
    ),
    "memory-errors": (
        "EDAC MC1: 262 CE memory read error on CPU_SrcID#0_Ha#0_Chan#1_DIMM#0 (channel:1 slot:0",
        "EDAC sbridge MC1: HANDLING MCE MEMORY ERROR",
        "112 2023-05-31 10:06:19 -0400 error: MEMORY CONTROLLER RD_CHANNEL0_ERR",
        "{1}[Hardware Error]:   section_type: memory error",
        "Memory failure: 0x3fe1d5: Killing python:123 due to hardware memory corruption",
    ),
    "machine-check": ("Kernel panic - not syncing: Fatal machine check",),
    "disk-error": (
        "ata3.00: failed command: READ FPDMA QUEUED",
        "ata3.00: error: { UNC }",
        "sd 7:0:0:0: rejecting I/O to offline device",
        "EXT4-fs warning (device dm-1): ext4_end_bio:316: I/O error -19 writing to inode 10223621 (offset 1)",
        "nvme nvme3: I/O 193 (I/O Cmd) QID 14 timeout, aborting",
        "nvme nvme0: I/O tag 5 (5005) opcode 0x2 (I/O Cmd) QID 8 timeout, reset controller",
        "ata1.00: exception Emask 0x0 SAct 0x8060000 SErr 0x0 action 0x0",
        "nvme nvme0: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0xffff",
        "md/raid1:md0: Disk failure on sda1, disabling device.",
        "smartd[1]: Device: /dev/sda [SAT], 8 Currently unreadable (pending) sectors",
        "  40 51 00 ff ff ff 0f  Error: UNC at LBA = 0x0fffffff = 268435455",
        "Device: /dev/sg1 [cciss_disk_02] [SCSI], SMART Failure: HARDWARE IMPENDING FAILURE GENERAL HARD DRIVE FAILURE",
        "             State : active, degraded",
        "md1 : active raid1 sdb3[1] sda3[0](F)\n      41909248 blocks super 1.2 [2/1] [_U]",
        "Critical Warning:                   0x04",
    ),
    "filesystem-error": (
        "EXT4-fs error (device sda3): ext4_lookup:1701: inode #2: comm find: casefold flag without casefold feature",
        "EXT4-fs (sda3): Remounting filesystem read-only",
        "XFS: Internal error XFS_WANT_CORRUPTED_RETURN at line 342 of file fs/xfs/xfs_alloc.c.",
        "XFS (vda4): Metadata corruption detected at xfs_buf_ioend+0x162/0x570 [xfs], xfs_inode block 0x2f88e0",
        "BTRFS: error (device dm-0) in btrfs_commit_transaction:2234: errno=-5 IO failure",
        "BTRFS info (device dm-0): forced readonly",
        "ls: cannot access 'x': Structure needs cleaning",
        'XFS (vda4): metadata I/O error in "xfs_dquot_disk_read+0x14a/0x220 [xfs]" at daddr 0x1478 len 8 error 74',
    ),
    "mounted-read-only": ("OSError: [Errno 30] Read-only file system: '/opt/x'",),
    "pcie-error": ("pcieport 0000:00:02.0: PCIe Bus Error: severity=Uncorrectable (Fatal), type=Transaction Layer",),
    "tls-certificate": (
        "urllib.error.URLError: <urlopen error [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed",
        "Download failed, retrying: x509: certificate signed by unknown authority",
        "Certificate verification failed: The certificate is NOT trusted. The certificate issuer is unknown.",
        "fatal: unable to access 'https://x/': server certificate verification failed. CAfile: none CRLfile: none",
        "ERROR: cannot verify x.example's certificate, issued by 'CN=Proxy':",
    ),
    "proxy-refuses": (
        "Caused by ProxyError('Cannot connect to proxy.', OSError('Tunnel connection failed: 403 Forbidden'))",
        "curl: (56) CONNECT tunnel failed, response 407",
        "curl: (5) Could not resolve proxy: proxy.example",
        "proxyconnect tcp: dial tcp 192.0.2.1:3128: connect: connection refused",
        "E: Failed to fetch http://apt.example/InRelease  407  Proxy Authentication Required [IP: 192.0.2.1 3128]",
    ),
    "name-resolution": (
        "Failed to establish a new connection: [Errno -3] Temporärer Fehler bei der Namensauflösung",
        "W: Failed to fetch http://apt.example/InRelease  Could not resolve 'apt.example'",
        "curl: (6) Could not resolve host: mirror.example",
        "wget: unable to resolve host address 'mirror.example'",
        "dial tcp: lookup hub.example on 127.0.0.53:53: no such host",
        "dial tcp: lookup hub.example: Temporary failure in name resolution",
        "dial tcp: lookup hub.example on [::1]:53: read udp [::1]:4->[::1]:53: read: connection refused",
    ),
    "download-interrupted": (
        "socket.timeout: The read operation timed out",
        "E: Failed to fetch http://apt.example/x.deb  503  Service Unavailable [IP: 192.0.2.1 80]",
        "Cannot initiate the connection to apt.example:80 (2001:db8::1). - connect (101: Network is unreachable)",
        "Get https://hub.example/v2/: dial tcp 192.0.2.1:443: i/o timeout",
        "ERROR: Could not install: HTTPSConnectionPool(host='x', port=443): Read timed out.",
    ),
    "download-damaged": (
        "E: Failed to fetch http://apt.example/x.deb  File has unexpected size (5 != 6). Mirror sync in progress?",
        "dpkg-deb: error: '/tmp/x.deb' is not a Debian format archive",
        "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.",
    ),
    "download-missing": (
        "Err:10 http://apt2.example/ubuntu jammy-updates/universe amd64 vim amd64 2:8.2\n  404  Not Found",
        "2024-01-01 00:00:00 ERROR 404: Not Found.",
    ),
    "keyring-unreadable": (
        "W: The key(s) in the keyring /etc/apt/trusted.gpg.d/x.gpg are ignored as the file is not readable by user "
        "'_apt' executing apt-key.\nW: GPG error: http://apt.example jammy InRelease: NO_PUBKEY 871920D1991BC93C",
        "W: The key(s) in the keyring /etc/apt/keyrings/x.gpg are ignored as the file has an unsupported filetype.",
    ),
    "repository-key-expired": (
        "The following signatures were invalid: EXPKEYSIG 248BF9082524EEFD\nE: Repository 'x InRelease' is not signed.",
    ),
    "repository-signature-invalid": (
        "At least one invalid signature was encountered.\nE: The repository 'x InRelease' is not signed.",
        "E: Failed to fetch x  Clearsigned file isn't valid, got 'NOSPLIT' (does the network require authentication?)",
    ),
    "repository-without-release": (
        "E: The repository 'http://apt.example jammy Release' no longer has a Release file.\n  404  Not Found",
        "W: Unable to find expected entry 'main/binary-i386/Packages' in Release file (Wrong sources.list entry)",
        "W: Skipping acquire of configured file 'stable/binary-amd64/Packages' as repository 'https://apt.example jammy"
        " InRelease' doesn't have the component 'stable' (component misspelt in sources.list?)",
    ),
    "no-public-key": ("Missing key 871920D1991BC93C0000, which is needed to verify signature.",),
    "package-file-conflict": (
        "dpkg: error processing archive /var/cache/x.deb (--unpack):\n trying to overwrite shared '/usr/share/doc/x', "
        "which is different from other instances of package x",
        " tentando sobrescrever '/usr/share/doc/x/changelog.Debian.gz' compartilhado, que é diferente de outras",
        " tentative de remplacement de « /usr/bin/x », qui appartient aussi au paquet y 1.0",
    ),
    "dependency-unconfigured": (
        "dpkg: dependency problems:\n x depends on y; however:\n  Package y is not installed.",
        "dpkg: dependency problems prevent configuration of x:",
    ),
    "inotify-limit": ("Failed to add /run/systemd/ask-password to directory watch: No space left on device",),
    "held-packages": (
        "E: Unmet dependencies. Try 'apt --fix-broken install' with no packages (or specify a solution).",
        "E: Error, pkgProblemResolver::Resolve generated breaks, this may be caused by held packages.",
        " nvidia-docker2 : Depends: nvidia-container-runtime (>= 3.1.0) but it is not going to be installed",
        "Unsatisfied dependencies:",
    ),
    "package-unknown": ("E: Couldn't find any package by regex 'python3.99'",),
    "filesystem-features": ("XFS (sda1): Superblock has unknown read-only compatible features (0x8) enabled.",),
    "download-refused": (
        "Error response from daemon: pull access denied for x, repository does not exist or may require 'docker login'",
        "curl: (22) The requested URL returned error: 403 Forbidden",
    ),
    "apt-lock": (
        "dpkg: error: dpkg frontend lock was locked by another process with pid 5",
        "E: Unable to lock directory /var/lib/apt/lists/, is another process using it?",
    ),
    "clock-off": (
        "IMAGE2: Superblock last mount time (Tue Jan 16  1 17:32:48 2015,\n\tnow = Thu Jan 24 17:34:29 2015) is in the"
        " future.\n\nIMAGE2: UNEXPECTED INCONSISTENCY; RUN fsck MANUALLY.",
        "tar: x: time stamp 2026-01-01 00:00:00 is 12345.6 s in the future",
    ),
}

#: A cause, and what follows from it in the same text.
CAUSES = {
    "tls-certificate": (
        "Err:6 https://apt.example focal/ Release\n  Certificate verification failed: The certificate is NOT trusted.\n"
        "E: The repository 'https://apt.example focal/ Release' does not have a Release file.",
    ),
    "proxy-refuses": (
        "W: The repository 'https://apt.example xenial Release' does not have a Release file.\n"
        "E: Failed to fetch https://apt.example/Packages  Received HTTP code 403 from proxy after CONNECT",
    ),
    "package-script-failed": (
        " installed dbus package post-installation script subprocess returned error exit status 2\n"
        " policykit-1 depends on default-logind | logind; however:\n  Package default-logind is not installed.\n"
        "  Package libpam-systemd:armhf which provides default-logind is not configured yet.",
    ),
    "initramfs-build-failed": (
        "update-initramfs: failed for /boot/initrd.img-2.6.32-12-generic\n"
        "dpkg: subprocess installed post-installation script returned error exit status 1",
    ),
    "pcie-error": (
        "pcieport 0000:00:1b.0: DPC: containment event, status:0x1f01 source:0x0000\n"
        "nvme nvme0: frozen state error detected, reset controller",
    ),
    "download-interrupted": (
        f"{RETRIED} 'ReadTimeoutError(\"Read timed out. (read timeout=15)\")': /simple/x/",
        "Connecting to apt.example|192.0.2.1|:443... failed: Connection refused.",
    ),
}

#: Harmless, or of another cause.
OTHERS = (
    "ACPI BIOS Error (bug): Could not resolve symbol [\\_SB.PCI0.GPP0], AE_NOT_FOUND",
    "sudo: unable to resolve host gpu01: Name or service not known",
    "pcieport 0000:00:1c.5: AER: Corrected error received: id=00e5",
    "pcieport 0000:00:1c.5: PCIe Bus Error: severity=Corrected, type=Physical Layer, id=00e5(Receiver ID)",
    "integrity: Problem loading X.509 certificate -65",
    "mce: Using 22 MCE banks",
    "0 pages hwpoisoned",
    "blk_update_request: I/O error, dev fd0, sector 0 op 0x0:(READ) flags 0x0",
    '            "OOMKilled": false,',
    "RuntimeError: CUDA error: out of memory",
    "MemoryError: std::bad_alloc: out_of_memory: CUDA error at: /opt/include/rmm/mr.hpp:70",
    "    except MemoryError:",
    "Generating a self-signed certificate for module signing",
    "Failed to connect to bus: No such file or directory",
    "docker.errors.ImageNotFound: 404 Client Error: Not Found for url: http+docker://localhost/v1.41/images/create",
    "pci 0000:17:00.0: BAR 1: no space for [mem size 0x1000000000 64bit pref]",
    "Package 'cuda-drivers' is not installed, so not removed",
    "W: Skipping acquire of configured file 'main/source/Sources' as repository 'https://apt.example x InRelease' does"
    " not seem to provide it (sources.list entry misspelt?)",
    "      41909248 blocks super 1.2 [2/2] [UU]",
    "Critical Warning:                   0x00",
    f"{RETRIED} 'ReadTimeoutError(\"Read timed out. (read timeout=15)\")': /simple/x/\n{GOT_IT}",
    f"{RETRIED} 'NewConnectionError: [Errno -3] Temporary failure in name resolution': /simple/x/\n{GOT_IT}",
    f"{RETRIED} 'ProxyError('Cannot connect to proxy.', timeout('timed out'))': /simple/x/\n{GOT_IT}",
    "Connecting to apt.example|2001:db8::1|:443... failed: Connection refused.\n"
    "Connecting to apt.example|192.0.2.1|:443... connected.",
    "SMART Health Status: OK",
    "WARNING: No oom kill disable support",
    "W: http://apt.example/InRelease: Key is stored in legacy trusted.gpg keyring (/etc/apt/trusted.gpg)",
)


@pytest.mark.parametrize(
    ("name", "text"), [(name, text) for texts in (TEXTS, CAUSES) for name in texts for text in texts[name]]
)
def test_a_text_names_its_cause(name: str, text: str) -> None:
    failure = KNOWN.classify(f"before\n{text}\nafter\n")
    assert failure is not None
    assert failure.rule.name == name


@pytest.mark.parametrize("text", OTHERS)
def test_what_only_looks_like_it_is_not_blamed_on_it(text: str) -> None:
    failure = Catalogue(FAILURES).classify(text)
    assert failure is None, failure.rule.name


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("package-script-python", "ModuleNotFoundError: No module named 'Quirks'"),
        ("package-script-failed", 'invoke-rc.d: initscript site-gpu, action "start" failed.'),
        ("package-alternative", "update-alternatives: error: alternative link /usr/bin/a is already managed by b"),
        ("package-script-program", "/var/lib/dpkg/info/site-gpu.postinst: 213: update-initramfs: not found"),
    ],
)
def test_the_line_that_says_why_a_packages_script_failed_leads(name: str, why: str) -> None:
    failure = KNOWN.classify(
        f"Setting up site-gpu (1) ...\n{why}\ndpkg: error processing package site-gpu (--configure):\n"
        " installed site-gpu package post-installation script subprocess returned error exit status 1\n"
    )
    assert failure is not None and failure.rule.name == name
    assert failure.evidence.splitlines()[0] == why
    assert name == "package-alternative" or "site-gpu" in failure.cause


@pytest.mark.parametrize(
    "text",
    [
        "dpkg: cycle found while processing triggers:\n chain of packages whose triggers are or may be responsible:\n"
        "  security-misc -> security-misc\n packages' pending triggers which are or may be unresolvable:\n"
        "  security-misc: /usr\n",
        "dpkg: error processing package security-misc (--configure):\n triggers looping, abandoned\n",
    ],
)
def test_triggers_that_loop_are_the_packages_own(text: str) -> None:
    """Kicksecure/security-misc#196"""
    end = "Errors were encountered while processing:\n security-misc\nE: Sub-process /usr/bin/dpkg returned an error\n"
    failure = KNOWN.classify(f"Processing triggers for man-db (2.11.2-2) ...\n{text}{end}")
    assert failure is not None and failure.rule.name == "package-triggers-loop"
    assert failure.cause.startswith("the triggers of security-misc, which")
    assert "upgrade security-misc or remove it" in failure.cure


@pytest.mark.parametrize(
    ("reason", "rule"),
    [
        (
            "ProxyError('Cannot connect.', OSError('Tunnel connection failed: 407 Proxy Authentication'))",
            "proxy-refuses",
        ),
        (f"ProxyError('Cannot connect to proxy.', {REFUSED})", "proxy-refuses"),
        ("SSLError(SSLError(1, '[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1123)'))", "proxy-refuses"),
        (REFUSED, "download-interrupted"),
        (REFUSED.replace("111", "-2"), "name-resolution"),
        ("SSLError(SSLEOFError(8, 'EOF occurred in violation of protocol (_ssl.c:1131)'))", "download-interrupted"),
        ("SSLError(SSLError(1, '[SSL: TLSV1_ALERT_PROTOCOL_VERSION] tlsv1 alert (_ssl.c:590)'))", "tls-handshake"),
        ('SSLError("Can\'t connect to HTTPS URL because the SSL module is not available.")', "python-without-ssl"),
        ("SSLError(SSLCertVerificationError(1, 'certificate verify failed: self signed'))", "tls-certificate"),
        ("ProxyError('Cannot connect.', SSLError(1, '[SSL: CERTIFICATE_VERIFY_FAILED]'))", "tls-certificate"),
    ],
)
def test_of_pips_sentence_about_certificates_the_reason_behind_it_counts(reason: str, rule: str) -> None:
    failure = KNOWN.classify(f"{CAUSED.format(reason)}\nERROR: No matching distribution found for x")
    assert failure is not None
    assert failure.rule.name == rule

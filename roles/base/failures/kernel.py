"""Messages of the kernel about exhausted memory, waiting processes and stuck processors."""

from __future__ import annotations

from hostwright.failures import FailureRule
from hostwright.standard.roles.base.failures.journal import kernel_sign

#: pattern of kernel messages about lack of memory. CUDA also prints "out of memory", about a GPU.
_KERNEL_OOM = (
    r"invoked oom-killer|oom-kill:constraint=|oom_reaper: reaped process"
    r"|[Oo]ut of memory(?: \([a-z_]{1,40}\))?: (?:Kill|OOM victim)|[Oo]ut of memory and no killable processes"
    r"|System is deadlocked on memory|score [0-9]{1,5} or sacrifice child"
    r"|Killed process [0-9]{1,10}[ ,].*total-vm:"
    r"|\b(?:out_of_memory|oom_kill_process)(?:\.[a-z0-9.]{1,20})?\+0x|\] {1,4}uid {1,3}tgid total_vm"
    r"|memory: usage [0-9]{1,15}kB, limit|Tasks state \(memory values in pages\)"
    r"|killed as a result of limit of|due to memory\.oom\.group"
)
_USER_OOM = (
    r"killed by the OOM killer|with result 'oom-kill'|systemd-oomd killed|oom-kill event|oom_kill event"
    r"|OOMKilled|[Ee]xceeded (?:step|job) memory limit|exceeded memory limit \([0-9]"
    r"|fatal error: runtime: (?:out of memory|cannot allocate memory)|insufficient memory for the Java Runtime"
    r"|\[Errno 12\] Cannot allocate memory|fork(?:/exec)?\b.*[Cc]annot allocate memory"
    r"|std::bad_alloc|DefaultCPUAllocator: (?:can't allocate|not enough) memory"
    r"|(?:^|[\s'\".])(?:_Array)?MemoryError(?:: |$)"
)

KERNEL = (
    FailureRule(
        "out-of-memory",
        f"{_KERNEL_OOM}|{_USER_OOM}"
        r"|low on resource: memory|task [0-9]{1,6}: Out Of Memory|java\.lang\.OutOfMemoryError"
        r"|JavaScript heap out of memory",
        "the host, or a container or job with a memory limit, ran out of memory, and a process was killed or got none",
        "Find the process that used it (dmesg lists all processes before each kill; a line with memcg or cgroup "
        "names the limit that was reached), then run fewer processes at once, raise that limit, or give the host "
        "more memory or swap",
        "Linux mm/oom_kill.c and mm/memcontrol.c; systemd, slurmd, glibc",
        unless=r"OOMKilled\\{0,8}\"?: ?false|bad_alloc: (?:out_of_memory|CUDA|RMM)",
        transient=False,
        # The second pattern excludes control groups, because a container at a memory limit is not a host fault.
        sign=kernel_sign(r"[Oo]ut of memory: Kill|constraint=CONSTRAINT_(?:NONE|MEMORY_POLICY)", r"[Mm]emory cgroup"),
    ),
    FailureRule(
        "processor-stuck",
        r"soft lockup\.? - CPU|[Ss]oftlockup: hung tasks|[Hh]ard LOCKUP"
        r"|(?:rcu_[a-z_]{1,30}|rcu:? INFO:.*) (?:self-)?detected (?:expedited )?stalls?"
        r"|rcu_[a-z_]{1,30} kthread (?:timer wakeup didn't happen|starved) for"
        r"|BUG: workqueue lockup|stalls? on CPU",
        "a processor was stuck in one piece of kernel code for over twenty seconds: a bug in a driver or the kernel, "
        "a virtual machine without CPU time from its hypervisor, or hardware",
        "Find the module in the call trace below the message; compare the driver with the kernel's version, check "
        "the hypervisor's load, then firmware and memory; reboot the host",
        "Linux kernel/watchdog.c, kernel/rcu/tree_stall.h",
    ),
    FailureRule(
        "nfs-server",
        r"nfs: server \S+ not responding|nfs4_reclaim_open_state: Lock reclaim failed|Stale (?:NFS )?file handle",
        "{the file server SERVER|a file server} (NFS) does not answer, or reports a stale file handle: programs that "
        "read there wait",
        "Check the file server and the network to it (ping, rpcinfo -t SERVER nfs); a new mount fixes a stale handle",
        "Linux fs/nfs and net/sunrpc/clnt.c; leptonai/gpud nfs",
        names=(r"server (?P<server>\S{1,100}) not responding",),
    ),
    FailureRule(
        "nfs-denied",
        r"access denied by server while mounting|reason given by server: (?:Permission denied|No such file)",
        "the file server (NFS) does not export this directory to this host",
        "Check its exports (showmount -e SERVER) and their addresses (/etc/exports there, then exportfs -ra); the "
        "host's address may have changed",
        "nfs-utils utils/mount/error.c",
    ),
    FailureRule(
        "hung-task",
        r"\btask \S.*:[0-9]{1,10}(?: <\w{1,20}>)? blocked (?:in I/O wait )?for more than"
        r"|hung_task: blocked tasks|kernel/hung_task_timeout_secs"
        r"|INFO: task [^\n]+ blocked for more than [0-9]{1,6} seconds",
        "a process has been waiting in the kernel for minutes: a disk, a file server or a driver does not respond",
        "Find the wait in the call trace below the message, check that disk, file server or card (dmesg before the "
        "message), and reboot: the process cannot be killed",
        "Linux kernel/hung_task.c",
    ),
)

#: failure rules for errors that stop the kernel or one of the kernel's processes
KERNEL_FAULTS = (
    FailureRule(
        "kernel-panic",
        r"Kernel panic - not syncing|BUG: unable to handle|Unable to handle kernel (?:paging|NULL|access)"
        r"|\bOops: [0-9a-f]{4} \[#|kernel BUG at \S|general protection fault[^\n]*: [0-9a-f]{4} \[#"
        r"|divide error: 0000 \[#",
        "the kernel hit a bug in itself or in a driver, and stopped, or killed the current process",
        "Check the lines above it and the modules in its call trace; update that driver or the kernel. If the traces "
        "differ each time, test memory and processor. Reboot the host",
        "Linux kernel/panic.c and arch/x86/mm/fault.c; kubernetes/node-problem-detector",
        weight="consequence",
    ),
    FailureRule(
        "inotify-limit",
        r"inotify resources exhausted|inotify cannot be used[^\n]*Too many open files"
        r"|number of file watchers reached|(?:failed to create|initiali[sz]e) inotify[^\n]*: Too many open files"
        r"|inotify_(?:init1?|add_watch)\b[^\n]*(?:no space left|too many open files)"
        r"|(?:directory|inotify) watch[^\n]*(?:no space left|limit|too many open files)"
        r"|failed to watch [^\n]*no space left"
        r"|fsnotify watcher[^\n]*too many open files"
        r"|inotify (?:watches|instances)[^\n]*(?:reached|limit|used up|exhausted)"
        r"|(?:limit|number) (?:on|of) inotify (?:instances|watches)",
        "the limit of files and directories that one user may watch (inotify) is used up; the disk is not full",
        "Raise fs.inotify.max_user_watches and fs.inotify.max_user_instances (sysctl.d), or end the program with so "
        "many watches",
        "inotify(7)",
        weight="consequence",
    ),
    FailureRule(
        "too-many-open-files",
        r"VFS: file-max limit [0-9]{1,12} reached|Too many open files",
        "a process, or the whole host, has no file handles left",
        "Find the process that holds them (ls /proc/PID/fd | wc -l, cat /proc/sys/fs/file-nr); raise LimitNOFILE of "
        "the unit, ulimit -n or fs.file-max; if the message names fsnotify, fs.inotify.max_user_instances",
        "Linux fs/file_table.c; errno(3), EMFILE and ENFILE; leptonai/gpud os",
        weight="consequence",
    ),
)

#: failure rule for a compiler that the kernel killed for lack of memory
BUILD_KILLED = FailureRule(
    "build-out-of-memory",
    r"Killed signal terminated program|\*\*\* \[[^\]\n]+\] Killed|internal compiler error: Killed"
    r"|virtual memory exhausted|\b(?:cc1(?:plus)?|ld|as|collect2|nvcc|cicc|ptxas): (?:error: "
    r"|fatal error: )?(?:out of memory allocating|[Cc]annot allocate memory|memory exhausted)"
    r"|LLVM ERROR: out of memory|^\s{0,12}Killed\s*\n(?:[^\n]*\n){0,3}?[^\n]*ninja: build stopped"
    r"|ld terminated with signal 9|died due to signal 9|out of memory allocating [0-9]{1,15} bytes",
    "the host ran out of memory during a build, and the compiler was killed",
    "Build with fewer processes at once (MAX_JOBS=1, make -j1), or on a host with more memory or swap",
    "gcc.c and libiberty's xmalloc; Linux mm/oom_kill.c",
    transient=False,
    weight="root cause",
)

KILLED = FailureRule(
    "killed-by-signal-9",
    r"died with <Signals\.SIGKILL|Signal 9 \(SIGKILL\)|exitcode ?: -9\b|[Kk]illed by signal 9"
    r"|code=killed, status=9/KILL"
    r"|[Ee]xit ?(?:code|status)\"?:? ?137\b|signal: killed|non-zero (?:exit status|code:?) (?:-9|137)\b"
    r"|^Killed$|: line [0-9]{1,9}: {1,3}[0-9]{1,10} Killed\b"
    r"|(?:exit(?:ed)?(?: with)?|job failed: exit) (?:code|status):? ?(?:137|-9)\b|(?:terminated"
    r"|killed) by (?:signal:? ?9\b|SIGKILL)"
    r"|Killed: 9\b|returncode=-9|got signal 9\b",
    "a process was killed with SIGKILL: by the kernel because memory ran out, else by a user or a time limit",
    'Search dmesg for "Out of memory" or "oom-kill" at that time. If it is there, run fewer processes at once or '
    "provide more memory; if not, check the time limits of the job, container or unit",
    "signal(7); Linux mm/oom_kill.c",
)

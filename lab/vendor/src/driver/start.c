/* hostwright stand-in: entry of a program that is linked against the stub of libc (see libc-symbols.txt).
 *
 * The machine's own crt1.o would ask for __libc_start_main@GLIBC_2.34, which Debian 11 (glibc 2.31) does not have.
 */
__asm__(".globl _start\n"
        "_start:\n"
        "    xor %ebp, %ebp\n"
        "    mov %rdx, %r9\n"           /* rtld_fini */
        "    pop %rsi\n"                /* argc */
        "    mov %rsp, %rdx\n"          /* argv */
        "    and $-16, %rsp\n"
        "    push %rax\n"
        "    push %rsp\n"               /* stack_end */
        "    xor %r8d, %r8d\n"          /* fini, init: none */
        "    xor %ecx, %ecx\n"
        "    mov $main, %rdi\n"
        "    call __libc_start_main\n"
        "    hlt\n"
        ".section .note.GNU-stack,\"\",@progbits\n");

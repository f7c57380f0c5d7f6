/* windows_entry.c - what a Windows DLL needs when it links no C runtime start-up.
 *
 * The library has no constructors, no thread-local data and no stdio, so there is nothing to
 * start. Only the prebuilt Windows libraries contain this file (h3video/h3/targets.py). */

/* Compilers for Windows refer to it wherever floating point is used. */
int _fltused = 0;

int __stdcall DllMainCRTStartup(void *module, unsigned long reason, void *reserved);

int __stdcall DllMainCRTStartup(void *module, unsigned long reason, void *reserved) {
    (void)module;
    (void)reason;
    (void)reserved;
    return 1;
}

/* Windows grows a stack by one guard page at a time, so a function whose locals exceed a page calls
 * this first: it touches every page of the new frame, nearest first. No register changes but the
 * scratch ones named. */
#if defined(__x86_64__)
/* rax: bytes of the frame, kept. */
__asm__(
    ".globl ___chkstk_ms\n"
    "___chkstk_ms:\n"
    "    pushq %rax\n"
    "    pushq %rcx\n"
    "    leaq 24(%rsp), %rcx\n" /* the caller's stack pointer */
    "1:  cmpq $4096, %rax\n"
    "    jbe 2f\n"
    "    subq $4096, %rcx\n"
    "    orb $0, (%rcx)\n"
    "    subq $4096, %rax\n"
    "    jmp 1b\n"
    "2:  subq %rax, %rcx\n"
    "    orb $0, (%rcx)\n"
    "    popq %rcx\n"
    "    popq %rax\n"
    "    ret\n");
#elif defined(__aarch64__)
/* x15: the frame in units of 16 bytes, kept; x16 and x17 are scratch. */
__asm__(
    ".globl __chkstk\n"
    "__chkstk:\n"
    "    lsl x16, x15, #4\n"
    "    mov x17, sp\n"
    "1:  sub x17, x17, #1, lsl #12\n"
    "    ldr xzr, [x17]\n"
    "    subs x16, x16, #1, lsl #12\n"
    "    b.gt 1b\n"
    "    ret\n");
#endif

# K02b | system calls by number from Python, 32-bit and x32 ones too | runner=python heavy=1
import ctypes, errno, mmap, os

libc = ctypes.CDLL(None, use_errno=True)
for name, number in {"ptrace": 101, "mount": 165, "bpf": 321, "userfaultfd": 323, "io_uring_setup": 425, "unshare": 272, "setns": 308}.items():
    for high in (0, 1 << 32):
        if libc.syscall(ctypes.c_long(number | high), -1, -1, -1, -1) != -1 or ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS):
            print("BROKEN:", name, os.strerror(ctypes.get_errno()))
for number in (101, 165, 321, 425):
    if libc.syscall(ctypes.c_long(0x40000000 | number), -1, -1, -1, -1) != -1:
        print("BROKEN: x32 call", number)
# int 0x80 with getpid of 32 bits (20), in a child that may be killed for it: refused or killed, never answered.
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")  # mov eax, 20; int 0x80; ret
function = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
pid = os.fork()
if pid == 0:
    os._exit(1 if function() == os.getpid() else 0)
status = os.waitpid(pid, 0)[1]
if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 1:
    print("BROKEN: 32-bit system calls work")
print("held")

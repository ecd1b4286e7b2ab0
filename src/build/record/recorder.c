/* Writes down which files the processes of a build look at. cuwright compiles this with the build's own C compiler and
 * names it in LD_PRELOAD; it stands in front of the C library's functions that take a path, and changes nothing that
 * they do.
 *
 * Every record is one write to <CUWRIGHT_READS>/<process id>: a letter, the absolute path, a zero byte.
 *
 *   P  the program that runs now         X  a program that is started        R  read          W  written or made
 *   L  a folder whose names are listed   E  found to be there                A  found missing
 *   N  a network address                 M  a property of this machine's processor
 *
 * Paths below those in CUWRIGHT_READS_SKIP, one a line, are left out unless they lead elsewhere. There is no lock, no
 * allocation and no open file between two calls: a process may fork, be killed, or close what it likes.
 *
 * Deliberately without the headers that declare these functions: their attributes let a compiler drop checks for
 * arguments that are null. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

#define PATHS 4096
#define HERE (-100)
#define SLOTS 32768

extern char **environ;
extern long syscall(long, ...);
extern char *getenv(const char *);
extern int fileno(void *);

static char folder[PATHS], skip[4 * PATHS], self[PATHS];
static char preload[PATHS + 16], reads_variable[PATHS + 32], skip_variable[4 * PATHS + 32];
static int ready, on;
static uint64_t seen[SLOTS];

static int below(const char *path, const char *prefix, size_t length) {
    return length && !strncmp(path, prefix, length) && (path[length] == '/' || !path[length]);
}

static int skipped(const char *path) {
    for (const char *line = skip; *line;) {
        size_t length = strcspn(line, "\n");
        if (below(path, line, length)) return 1;
        line += length + (line[length] == '\n');
    }
    return below(path, "/proc", 5) || below(path, "/sys", 4) || below(path, "/dev", 4);
}

/* Whether this was not written down before. A full table forgets nothing and only repeats. */
static int fresh(char kind, const char *path) {
    uint64_t hash = 1469598103934665603u ^ (unsigned char)kind;
    for (const char *at = path; *at; at++) hash = (hash ^ (unsigned char)*at) * 1099511628211u;
    if (!hash) hash = 1;
    for (unsigned step = 0; step < 32; step++) {
        uint64_t *slot = &seen[(hash + step) % SLOTS], none = 0;
        if (__atomic_load_n(slot, __ATOMIC_RELAXED) == hash) return 0;
        if (__atomic_compare_exchange_n(slot, &none, hash, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) return 1;
        if (none == hash) return 0;
    }
    return 1;
}

static size_t number(char *to, long value) {
    char digits[24];
    size_t count = 0, length = 0;
    do digits[count++] = '0' + value % 10; while (value /= 10);
    while (count) to[length++] = digits[--count];
    to[length] = 0;
    return length;
}

static void put(char kind, const char *path) {
    if (!fresh(kind, path)) return;
    char file[PATHS + 32], record[PATHS + 2];
    size_t length = strlen(folder), bytes = strnlen(path, PATHS - 1);
    memcpy(file, folder, length);
    file[length++] = '/';
    number(file + length, syscall(SYS_getpid));
    record[0] = kind;
    memcpy(record + 1, path, bytes);
    record[bytes + 1] = 0;
    /* O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC */
    long to = syscall(SYS_openat, HERE, file, 02002101, 0600);
    if (to < 0) return;
    syscall(SYS_write, to, record, bytes + 2);
    syscall(SYS_close, to);
}

static size_t link_of_descriptor(int descriptor, char *to) {
    char name[48] = "/proc/self/fd/";
    number(name + strlen(name), descriptor);
    long length = syscall(SYS_readlinkat, HERE, name, to, PATHS - 1);
    if (length < 0) length = 0;
    to[length] = 0;
    return length;
}

/* The absolute path without `//` and `/./`; empty where it is too long. */
static void absolute(int at, const char *path, char *to) {
    size_t length = 0;
    to[0] = 0;
    if (path[0] != '/') {
        if (at == HERE) {
            long got = syscall(SYS_getcwd, to, PATHS);
            length = got > 0 ? (size_t)got - 1 : 0;
        } else {
            length = link_of_descriptor(at, to);
        }
        if (to[0] != '/') { to[0] = 0; return; }
    }
    while (*path) {
        size_t part = strcspn(path, "/");
        if (part && !(part == 1 && path[0] == '.')) {
            if (length + part + 2 > PATHS) { to[0] = 0; return; }
            if (!length || to[length - 1] != '/') to[length++] = '/';
            memcpy(to + length, path, part);
            length += part;
        }
        path += part;
        while (*path == '/') path++;
    }
    if (!length) to[length++] = '/';
    to[length] = 0;
}

static void start(void);

static int idle(const char *path) {
    if (!ready) start();
    return !on || !path || !*path;
}

static void note(char kind, int at, const char *path) {
    int kept = errno;
    if (!idle(path)) {
        char full[PATHS];
        absolute(at, path, full);
        if (*full && (strstr(full, "/../") || !skipped(full))) put(kind, full);
    }
    errno = kept;
}

/* What a program asks of the processor, unless a library asks that only wants to run well on it. */
static void note_machine(const char *path, void *caller) {
    if (strcmp(path, "/proc/cpuinfo") && strncmp(path, "/sys/devices/system/cpu", 23)) return;
    Dl_info info;
    if (dladdr(caller, &info) && info.dli_fname) {
        const char *name = strrchr(info.dli_fname, '/');
        name = name ? name + 1 : info.dli_fname;
        if (!strncmp(name, "lib", 3) && strncmp(name, "libpython", 9)) return;
    }
    put('M', path);
}

static void note_opened(int writes, int reads, int at, const char *path, int descriptor, void *caller) {
    int kept = errno;
    if (!idle(path)) {
        char full[PATHS], real[PATHS];
        absolute(at, path, full);
        int elsewhere = strstr(full, "/../") != NULL;
        if (!*full) {
        } else if (descriptor < 0) {
            int missing = kept == ENOENT || kept == ENOTDIR;
            if (reads && (elsewhere || !skipped(full))) put(missing ? 'A' : 'E', full);
        } else {
            if (reads) note_machine(full, caller);
            if (!elsewhere && skipped(full) && fresh(writes ? 'w' : 'r', full)) {
                /* A link may lead out of the build's folder. */
                link_of_descriptor(descriptor, real);
                if (real[0] == '/' && !skipped(real) && !strstr(real, " (deleted)")) {
                    memcpy(full, real, strlen(real) + 1);
                    elsewhere = 1;
                }
            }
            if (elsewhere || !skipped(full)) {
                if (reads) put('R', full);
                if (writes) put('W', full);
            }
        }
    }
    errno = kept;
}

static void note_found(int at, const char *path, int failed) {
    if (!failed) note('E', at, path);
    else if (errno == ENOENT || errno == ENOTDIR) note('A', at, path);
}

static int note_object(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size, (void)data;
    if (info->dlpi_name && info->dlpi_name[0] == '/' && strcmp(info->dlpi_name, self)) note('R', HERE, info->dlpi_name);
    return 0;
}

static void copy(char *to, size_t size, const char *name, const char *value) {
    size_t length = strlen(name), bytes = strnlen(value, size - length - 1);
    memcpy(to, name, length);
    memcpy(to + length, value, bytes);
    to[length + bytes] = 0;
}

/* Whether this program is itself one of those that are left out, as cuwright's stand-ins are: they only pass on. */
static int left_out_itself(void) {
    char exe[PATHS];
    long length = syscall(SYS_readlinkat, HERE, "/proc/self/exe", exe, PATHS - 1);
    if (length <= 0) return 0;
    exe[length] = 0;
    for (const char *line = skip; *line;) {
        size_t bytes = strcspn(line, "\n");
        if (bytes == (size_t)length && !memcmp(line, exe, bytes)) return 1;
        line += bytes + (line[bytes] == '\n');
    }
    return 0;
}

static void start(void) {
    ready = 1;
    const char *to = getenv("CUWRIGHT_READS"), *left_out = getenv("CUWRIGHT_READS_SKIP");
    Dl_info info;
    if (!to || strlen(to) >= PATHS - 32 || !dladdr(&ready, &info) || !info.dli_fname) return;
    if (!left_out) left_out = "";
    copy(folder, sizeof folder, "", to);
    copy(skip, sizeof skip, "", left_out);
    copy(self, sizeof self, "", info.dli_fname);
    copy(preload, sizeof preload, "LD_PRELOAD=", self);
    copy(reads_variable, sizeof reads_variable, "CUWRIGHT_READS=", to);
    copy(skip_variable, sizeof skip_variable, "CUWRIGHT_READS_SKIP=", left_out);
    on = !left_out_itself();
}

__attribute__((constructor)) static void begin(void) {
    if (!ready) start();
    if (!on) return;
    char exe[PATHS];
    long length = syscall(SYS_readlinkat, HERE, "/proc/self/exe", exe, PATHS - 1);
    if (length > 0) {
        exe[length] = 0;
        put('P', exe);
    }
    dl_iterate_phdr(note_object, NULL);
}

__attribute__((destructor)) static void end(void) {
    if (on) dl_iterate_phdr(note_object, NULL);
}

#define REAL(type, name, ...)                                                        \
    static type (*real)(__VA_ARGS__);                                                \
    if (!real) real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name);                \
    if (!real) { errno = ENOSYS; return (type)-1; }
#define POINTER(name, ...)                                                           \
    static void *(*real)(__VA_ARGS__);                                               \
    if (!real) real = (void *(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name);               \
    if (!real) { errno = ENOSYS; return NULL; }
#define CALLER __builtin_return_address(0)
/* O_CREAT, or O_TMPFILE without O_DIRECTORY */
#define MAKES(flags) ((flags) & (0100 | 020000000))
#define READS(flags) (((flags) & 3) != 1)
#define WRITES(flags) (((flags) & 3) != 0)

#define OPEN(name)                                                                   \
    int name(const char *path, int flags, ...) {                                     \
        REAL(int, name, const char *, int, ...)                                      \
        va_list rest; va_start(rest, flags);                                         \
        int mode = MAKES(flags) ? va_arg(rest, int) : 0; va_end(rest);               \
        int got = real(path, flags, mode);                                           \
        note_opened(WRITES(flags), READS(flags), HERE, path, got, CALLER);           \
        return got;                                                                  \
    }
#define OPENAT(name)                                                                 \
    int name(int at, const char *path, int flags, ...) {                             \
        REAL(int, name, int, const char *, int, ...)                                 \
        va_list rest; va_start(rest, flags);                                         \
        int mode = MAKES(flags) ? va_arg(rest, int) : 0; va_end(rest);               \
        int got = real(at, path, flags, mode);                                       \
        note_opened(WRITES(flags), READS(flags), at, path, got, CALLER);             \
        return got;                                                                  \
    }
#define OPEN2(name)                                                                  \
    int name(const char *path, int flags) {                                          \
        REAL(int, name, const char *, int)                                           \
        int got = real(path, flags);                                                 \
        note_opened(WRITES(flags), READS(flags), HERE, path, got, CALLER);           \
        return got;                                                                  \
    }
#define OPENAT2(name)                                                                \
    int name(int at, const char *path, int flags) {                                  \
        REAL(int, name, int, const char *, int)                                      \
        int got = real(at, path, flags);                                             \
        note_opened(WRITES(flags), READS(flags), at, path, got, CALLER);             \
        return got;                                                                  \
    }
OPEN(open) OPEN(open64) OPENAT(openat) OPENAT(openat64)
OPEN2(__open_2) OPEN2(__open64_2) OPENAT2(__openat_2) OPENAT2(__openat64_2)

#define FOPEN(name)                                                                  \
    void *name(const char *path, const char *mode) {                                 \
        POINTER(name, const char *, const char *)                                    \
        void *got = real(path, mode);                                                \
        int plus = mode && strchr(mode, '+'), reads = mode && *mode == 'r';          \
        note_opened(!reads || plus, reads, HERE, path, got ? fileno(got) : -1, CALLER); \
        return got;                                                                  \
    }
FOPEN(fopen) FOPEN(fopen64)

#define FREOPEN(name)                                                                \
    void *name(const char *path, const char *mode, void *file) {                     \
        POINTER(name, const char *, const char *, void *)                            \
        void *got = real(path, mode, file);                                          \
        int plus = mode && strchr(mode, '+'), reads = mode && *mode == 'r';          \
        if (path) note_opened(!reads || plus, reads, HERE, path, got ? fileno(got) : -1, CALLER); \
        return got;                                                                  \
    }
FREOPEN(freopen) FREOPEN(freopen64)

#define STAT(name)                                                                   \
    int name(const char *path, void *to) {                                           \
        REAL(int, name, const char *, void *)                                        \
        int got = real(path, to);                                                    \
        note_found(HERE, path, got);                                                 \
        return got;                                                                  \
    }
#define XSTAT(name)                                                                  \
    int name(int version, const char *path, void *to) {                              \
        REAL(int, name, int, const char *, void *)                                   \
        int got = real(version, path, to);                                           \
        note_found(HERE, path, got);                                                 \
        return got;                                                                  \
    }
#define STATAT(name)                                                                 \
    int name(int at, const char *path, void *to, int flags) {                        \
        REAL(int, name, int, const char *, void *, int)                              \
        int got = real(at, path, to, flags);                                         \
        note_found(at, path, got);                                                   \
        return got;                                                                  \
    }
#define XSTATAT(name)                                                                \
    int name(int version, int at, const char *path, void *to, int flags) {           \
        REAL(int, name, int, int, const char *, void *, int)                         \
        int got = real(version, at, path, to, flags);                                \
        note_found(at, path, got);                                                   \
        return got;                                                                  \
    }
STAT(stat) STAT(stat64) STAT(lstat) STAT(lstat64)
XSTAT(__xstat) XSTAT(__xstat64) XSTAT(__lxstat) XSTAT(__lxstat64)
STATAT(fstatat) STATAT(fstatat64) XSTATAT(__fxstatat) XSTATAT(__fxstatat64)

int statx(int at, const char *path, int flags, unsigned mask, void *to) {
    REAL(int, statx, int, const char *, int, unsigned, void *)
    int got = real(at, path, flags, mask, to);
    note_found(at, path, got);
    return got;
}

#define ACCESS(name)                                                                 \
    int name(const char *path, int mode) {                                           \
        REAL(int, name, const char *, int)                                           \
        int got = real(path, mode);                                                  \
        note_found(HERE, path, got);                                                 \
        return got;                                                                  \
    }
ACCESS(access) ACCESS(eaccess) ACCESS(euidaccess)

int faccessat(int at, const char *path, int mode, int flags) {
    REAL(int, faccessat, int, const char *, int, int)
    int got = real(at, path, mode, flags);
    note_found(at, path, got);
    return got;
}

ptrdiff_t readlink(const char *path, char *to, size_t size) {
    REAL(ptrdiff_t, readlink, const char *, char *, size_t)
    ptrdiff_t got = real(path, to, size);
    note_found(HERE, path, got < 0);
    return got;
}

ptrdiff_t readlinkat(int at, const char *path, char *to, size_t size) {
    REAL(ptrdiff_t, readlinkat, int, const char *, char *, size_t)
    ptrdiff_t got = real(at, path, to, size);
    note_found(at, path, got < 0);
    return got;
}

static void note_listed(int at, const char *path, int missing) {
    if (!missing) note('L', at, path);
    else if (errno == ENOENT || errno == ENOTDIR) note('A', at, path);
}

void *opendir(const char *path) {
    POINTER(opendir, const char *)
    void *got = real(path);
    note_listed(HERE, path, !got);
    return got;
}

void *fdopendir(int descriptor) {
    POINTER(fdopendir, int)
    void *got = real(descriptor);
    int kept = errno;
    char path[PATHS];
    if (got && link_of_descriptor(descriptor, path)) note('L', HERE, path);
    errno = kept;
    return got;
}

#define SCANDIR(name)                                                                \
    int name(const char *path, void *to, void *filter, void *order) {                \
        REAL(int, name, const char *, void *, void *, void *)                        \
        int got = real(path, to, filter, order);                                     \
        note_listed(HERE, path, got < 0);                                            \
        return got;                                                                  \
    }
SCANDIR(scandir) SCANDIR(scandir64)

#define GLOB(name)                                                                   \
    int name(const char *pattern, int flags, void *failed, void *to) {               \
        REAL(int, name, const char *, int, void *, void *)                           \
        char path[PATHS];                                                            \
        size_t plain = pattern ? strcspn(pattern, "*?[{~") : 0;                      \
        while (plain && pattern[plain - 1] != '/') plain--;                          \
        if (plain < PATHS) {                                                         \
            memcpy(path, plain ? pattern : ".", plain ? plain : 1);                  \
            path[plain ? plain : 1] = 0;                                             \
            note('L', HERE, path);                                                   \
        }                                                                            \
        return real(pattern, flags, failed, to);                                     \
    }
GLOB(glob) GLOB(glob64)

#define TO(name)                                                                     \
    int name(const char *from, const char *to) {                                     \
        REAL(int, name, const char *, const char *)                                  \
        int got = real(from, to);                                                    \
        if (!got) note('W', HERE, to);                                               \
        return got;                                                                  \
    }
TO(rename) TO(link)

int symlink(const char *target, const char *path) {
    REAL(int, symlink, const char *, const char *)
    int got = real(target, path);
    if (!got) note('W', HERE, path);
    return got;
}

int renameat(int from_at, const char *from, int at, const char *to) {
    REAL(int, renameat, int, const char *, int, const char *)
    int got = real(from_at, from, at, to);
    if (!got) note('W', at, to);
    return got;
}

int renameat2(int from_at, const char *from, int at, const char *to, unsigned flags) {
    REAL(int, renameat2, int, const char *, int, const char *, unsigned)
    int got = real(from_at, from, at, to, flags);
    if (!got) note('W', at, to);
    return got;
}

int mkdir(const char *path, unsigned mode) {
    REAL(int, mkdir, const char *, unsigned)
    int got = real(path, mode);
    if (!got) note('W', HERE, path);
    return got;
}

int mkdirat(int at, const char *path, unsigned mode) {
    REAL(int, mkdirat, int, const char *, unsigned)
    int got = real(at, path, mode);
    if (!got) note('W', at, path);
    return got;
}

int connect(int descriptor, const void *address, unsigned length) {
    REAL(int, connect, int, const void *, unsigned)
    int kept = errno;
    const unsigned char *bytes = address;
    uint16_t family = 0;
    if (address && length >= 2) memcpy(&family, address, 2);
    if (family == 1 && length > 3 && bytes[2]) {
        char path[128] = {0};
        memcpy(path, bytes + 2, length - 2 < sizeof path - 1 ? length - 2 : sizeof path - 1);
        if (strncmp(path, "/var/run/nscd", 13)) note('N', HERE, path);
    } else if (((family == 2 && length >= 8) || (family == 10 && length >= 24)) && !idle("x")) {
        char text[64] = "";
        size_t at = 0;
        if (family == 2) {
            for (int part = 4; part < 8; part++) {
                at += number(text + at, bytes[part]);
                if (part < 7) text[at++] = '.';
            }
        } else {
            memcpy(text, "IPv6", 4);
            at = 4;
        }
        text[at++] = ':';
        number(text + at, bytes[2] * 256 + bytes[3]);
        put('N', text);
    }
    errno = kept;
    return real(descriptor, address, length);
}

static void note_program(const char *path, char *const argv[]) {
    char full[PATHS];
    if (idle(path)) return;
    int kept = errno;
    absolute(HERE, path, full);
    long there = *full ? syscall(SYS_faccessat, HERE, full, 1) : -1;
    if (there < 0) note('A', HERE, path);
    else put('X', full);
    for (int word = 1; there >= 0 && argv && argv[0] && argv[word]; word++) {
        const char *text = argv[word], *value = strrchr(text, '=');
        if (!strcmp(value ? value + 1 : text, "native") && (value ? text[0] == '-' : argv[word - 1][0] == '-')) {
            char said[PATHS];
            copy(said, sizeof said, value ? "" : "-arch=", text);
            put('M', said);
        }
    }
    errno = kept;
}

static void note_named(const char *name, char *const argv[]) {
    if (idle(name)) return;
    if (strchr(name, '/')) { note_program(name, argv); return; }
    const char *search = getenv("PATH");
    char path[PATHS];
    if (!search) search = "/bin:/usr/bin";
    while (1) {
        size_t length = strcspn(search, ":"), bytes = strlen(name);
        if (length + bytes + 2 < PATHS) {
            memcpy(path, search, length);
            if (length) path[length++] = '/';
            memcpy(path + length, name, bytes + 1);
            if (!syscall(SYS_faccessat, HERE, path, 1)) { note_program(path, argv); return; }
            note('A', HERE, path);
        }
        search += strcspn(search, ":");
        if (!*search) return;
        search++;
    }
}

/* The environment of a new program, with what it needs to write down what it reads. `room` holds three more. */
static char *const *kept_up(char *const *given, char **room, size_t count) {
    int loaded = 0, told = 0;
    for (size_t at = 0; at < count; at++) {
        loaded |= !strncmp(given[at], "LD_PRELOAD=", 11) && strstr(given[at], self);
        told |= !strncmp(given[at], "CUWRIGHT_READS=", 15);
    }
    if (!on || (loaded && told)) return given;
    size_t to = 0;
    for (size_t at = 0; at < count; at++) {
        if (strncmp(given[at], "LD_PRELOAD=", 11) || loaded) room[to++] = given[at];
    }
    if (!loaded) room[to++] = preload;
    if (!told) {
        room[to++] = reads_variable;
        room[to++] = skip_variable;
    }
    room[to] = NULL;
    return room;
}

#define KEPT_UP(given)                                                               \
    size_t count = 0;                                                                \
    while ((given) && (given)[count]) count++;                                       \
    char *room[count + 4];                                                           \
    char *const *variables = kept_up((char *const *)(given), room, count);

int execve(const char *path, char *const argv[], char *const envp[]) {
    REAL(int, execve, const char *, char *const[], char *const[])
    note_program(path, argv);
    if (on) dl_iterate_phdr(note_object, NULL);
    KEPT_UP(envp)
    return real(path, argv, (char *const *)variables);
}

int execv(const char *path, char *const argv[]) { return execve(path, argv, environ); }

int execvpe(const char *name, char *const argv[], char *const envp[]) {
    REAL(int, execvpe, const char *, char *const[], char *const[])
    note_named(name, argv);
    KEPT_UP(envp)
    return real(name, argv, (char *const *)variables);
}

int execvp(const char *name, char *const argv[]) { return execvpe(name, argv, environ); }

#define WORDS                                                                        \
    va_list rest; size_t words = 1;                                                  \
    va_start(rest, first);                                                           \
    while (va_arg(rest, char *)) words++;                                            \
    va_end(rest);                                                                    \
    char *argv[words + 1];                                                           \
    argv[0] = (char *)first;                                                         \
    va_start(rest, first);                                                           \
    for (size_t at = 1; at <= words; at++) argv[at] = va_arg(rest, char *);

int execl(const char *path, const char *first, ...) {
    WORDS
    va_end(rest);
    return execve(path, argv, environ);
}

int execlp(const char *name, const char *first, ...) {
    WORDS
    va_end(rest);
    return execvpe(name, argv, environ);
}

int execle(const char *path, const char *first, ...) {
    WORDS
    char **envp = va_arg(rest, char **);
    va_end(rest);
    return execve(path, argv, envp);
}

int posix_spawn(int *pid, const char *path, const void *actions, const void *attributes, char *const argv[],
                char *const envp[]) {
    REAL(int, posix_spawn, int *, const char *, const void *, const void *, char *const[], char *const[])
    note_program(path, argv);
    KEPT_UP(envp)
    return real(pid, path, actions, attributes, argv, (char *const *)variables);
}

int posix_spawnp(int *pid, const char *name, const void *actions, const void *attributes, char *const argv[],
                 char *const envp[]) {
    REAL(int, posix_spawnp, int *, const char *, const void *, const void *, char *const[], char *const[])
    note_named(name, argv);
    KEPT_UP(envp)
    return real(pid, name, actions, attributes, argv, (char *const *)variables);
}

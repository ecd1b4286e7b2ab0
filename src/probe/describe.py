# Run by cuwright with `-I -S`: says what this Python is, importing nothing but the standard library.
import json, os, site, sys, sysconfig
given, home, userbase, nouser = sys.argv[1:5]
v = sys.version_info
headers = sysconfig.get_path("include")
def libc():
    try:
        return os.confstr("CS_GNU_LIBC_VERSION")
    except (AttributeError, ValueError, OSError):
        return None
def environment():
    here = os.path.dirname(os.path.abspath(sys.executable))
    for folder in (here, os.path.dirname(here)):
        try:
            with open(os.path.join(folder, "pyvenv.cfg"), encoding="utf-8", errors="replace") as file:
                pairs = [line.partition("=") for line in file]
        except OSError:
            continue
        return os.path.dirname(here), {k.strip().lower(): value.strip().lower() for k, _, value in pairs}
    return None, {}
def with_pth(folder):
    found = [folder]
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".pth") and not name.startswith("."))
    except OSError:
        return found
    for name in names:
        try:
            with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                lines = [line.strip() for line in file]
        except OSError:
            continue
        found += [os.path.join(folder, line) for line in lines
                  if line and not line.startswith(("#", "import ", "import	"))]
    return found
venv, settings = environment()
shared = venv is None or settings.get("include-system-site-packages") == "true"
# Without `site`, this Python does not know that it is one of an environment, and Debian's would name dist-packages.
abi = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
folders = [os.path.join(venv, "lib", "python%d.%d%s" % (v[0], v[1], abi), "site-packages")] if venv else []
if shared:
    folders += site.getsitepackages(list(dict.fromkeys([sys.base_prefix, sys.base_exec_prefix])))
if shared and not nouser:
    base = userbase or os.path.join(home, ".local")
    folders.insert(0, os.path.join(base, "lib", "python%d.%d" % v[:2], "site-packages"))
dirs = [part for part in given.split(os.pathsep) if part]
for folder in folders:
    dirs += with_pth(folder)
print(json.dumps({
    "executable": sys.executable,
    "version": "%d.%d.%d" % v[:3] + ("" if v[3] == "final" else "%s%d" % ({"alpha": "a", "beta": "b"}.get(v[3], "rc"), v[4])),
    "tag": "cp%d%d%s" % (v[0], v[1], abi),
    "platform": sysconfig.get_platform(),
    "libc": libc(),
    "site_dirs": [p for p in dict.fromkeys(os.path.abspath(p) for p in dirs) if os.path.isdir(p)],
    "headers": headers if os.path.isfile(os.path.join(headers, "Python.h")) else None,
    "origin": getattr(sys, "implementation", None) and sys.implementation.name,
}))

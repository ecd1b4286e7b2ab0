"""What the environment says about CUDA, as a repository: `--repo_env` and the caller's variables end here."""

_CAPABILITIES = "TF_CUDA_COMPUTE_CAPABILITIES"
_TOOLKIT = "CUDA_TOOLKIT_PATH"
_HOST = "CXX"

def _flags(capability):
    """`sm_90` is machine code, `compute_90` machine code and PTX, and a dotted number counts as the latter."""
    number = capability.replace(".", "")
    for prefix in ["sm_", "compute_"]:
        if number.startswith(prefix):
            number = number[len(prefix):]
    codes = ["sm_" + number]
    if not capability.startswith("sm_"):
        codes.append("compute_" + number)
    return ["-gencode=arch=compute_%s,code=%s" % (number, code) for code in codes]

def _cuda_configure(ctx):
    variables = ctx.os.environ
    capabilities = [item.strip() for item in variables.get(_CAPABILITIES, "").split(",") if item.strip()]
    if not capabilities:
        fail("%s names no capability; set it, such as to sm_80,compute_90" % _CAPABILITIES)
    toolkit = variables.get(_TOOLKIT, "/usr/local/cuda")
    flags = []
    for capability in capabilities:
        flags.extend(_flags(capability))
    ctx.file("BUILD", "")
    settings = {
        "NVCC": toolkit + "/bin/nvcc",
        "LIBRARIES": toolkit + "/lib64",
        "HOST": variables.get(_HOST, "g++"),
        "ARCH_FLAGS": flags,
    }
    ctx.file("cuda.bzl", "".join(["%s = %r\n" % setting for setting in settings.items()]))

cuda_configure = repository_rule(
    implementation = _cuda_configure,
    environ = [_CAPABILITIES, _TOOLKIT, _HOST],
    local = True,
)

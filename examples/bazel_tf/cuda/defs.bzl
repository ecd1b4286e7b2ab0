"""`cuda_shared_library`: sources through nvcc into one shared library."""

load("@local_cuda//:cuda.bzl", "ARCH_FLAGS", "HOST", "LIBRARIES", "NVCC")

def _cuda_shared_library(ctx):
    objects = []
    for source in ctx.files.srcs:
        object = ctx.actions.declare_file("%s/%s.o" % (ctx.label.name, source.basename))
        arguments = ctx.actions.args()
        arguments.add_all(["-ccbin", HOST, "-O2", "-Xcompiler", "-fPIC"])
        arguments.add_all(ARCH_FLAGS)
        arguments.add_all(["-c", source, "-o", object])
        ctx.actions.run(
            executable = NVCC,
            arguments = [arguments],
            inputs = [source] + ctx.files.hdrs,
            outputs = [object],
            mnemonic = "CudaCompile",
            progress_message = "Compiling %s" % source.short_path,
            use_default_shell_env = True,
        )
        objects.append(object)
    library = ctx.actions.declare_file("lib%s.so" % ctx.label.name)

    # The host compiler links, since nvcc would add device code of its own, and PTX never.
    runtime = ["-L" + LIBRARIES, "-lcudart_static", "-ldl", "-lrt", "-pthread"]
    ctx.actions.run(
        executable = HOST,
        arguments = ["-shared", "-o", library.path] + [object.path for object in objects] + runtime,
        inputs = objects,
        outputs = [library],
        mnemonic = "CudaLink",
        use_default_shell_env = True,
    )
    return [DefaultInfo(files = depset([library]))]

cuda_shared_library = rule(
    implementation = _cuda_shared_library,
    attrs = {
        "srcs": attr.label_list(allow_files = [".cu"], mandatory = True),
        "hdrs": attr.label_list(allow_files = [".h", ".cuh"]),
    },
)

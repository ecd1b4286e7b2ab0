//! Names of C++ symbols for people, and when two of them mean the same function.

use cpp_demangle::{DemangleOptions, Symbol};

/// Longer names than any that a person reads; also a bound on what demangling may cost.
const LONGEST: usize = 4096;

/// The name as source code writes it; the name itself where it is not mangled.
pub fn demangle(name: &str) -> String {
    if name.len() > LONGEST || !name.starts_with("_Z") {
        return name.to_owned();
    }
    let symbol = Symbol::new(name).ok();
    let text = symbol.and_then(|symbol| symbol.demangle_with_options(&DemangleOptions::default()).ok());
    text.unwrap_or_else(|| name.to_owned())
}

/// The qualified name without parameters: `c10::cuda::SetDevice` of `c10::cuda::SetDevice(int)`.
pub fn stem(demangled: &str) -> &str {
    let mut depth = 0u32;
    let bytes = demangled.as_bytes();
    for (at, &byte) in bytes.iter().enumerate() {
        match byte {
            b'<' if !demangled[..at].ends_with("operator") && !demangled[..at].ends_with("operator<") => depth += 1,
            b'>' if depth > 0 => depth -= 1,
            b'(' if depth == 0 => {
                // `(anonymous namespace)` and `operator()` are part of the name.
                if demangled[at..].starts_with("(anonymous namespace)") || demangled[..at].ends_with("operator") {
                    continue;
                }
                return &demangled[..at];
            }
            _ => {}
        }
    }
    demangled
}

/// The last identifier of a stem, as the mangled name spells it: `9SetDevice`.
pub fn needle(stem: &str) -> Option<String> {
    let plain = stem.split('<').next()?;
    let last = plain.rsplit("::").next()?.trim_start_matches('~');
    let last = last.rsplit(' ').next()?;
    let simple = !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    simple.then(|| format!("{}{last}", last.len()))
}

/// Whether a name belongs to torch.
pub fn is_torch(demangled: &str) -> bool {
    const ROOTS: [&str; 4] = ["c10::", "at::", "torch::", "caffe2::"];
    let starts = |part: &str| ROOTS.iter().any(|root| part.starts_with(root));
    // Of `{vtable(torch::jit::Module)}` the inner name counts; what only stands among parameters does not.
    let inner = demangled.strip_prefix('{').and_then(|rest| rest.split_once('(')).map(|(_, inner)| inner);
    inner.map_or_else(|| stem(demangled).split(' ').next_back().is_some_and(starts), starts) || is_torch_c(demangled)
}

/// Whether a name belongs to torch's C interface, which is stable between releases.
pub fn is_torch_c(name: &str) -> bool {
    [
        "aoti_torch_",
        "torch_call_dispatcher",
        "torch_library_",
        "torch_new_",
        "torch_delete_",
        "torch_get_",
        "torch_set_",
        "torch_exception_",
    ]
    .iter()
    .any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_where_parameters_begin() {
        for (mangled, text, cut) in [
            ("_ZN3c104cuda9SetDeviceEi", "c10::cuda::SetDevice(int)", "c10::cuda::SetDevice"),
            ("_ZNK2at6Tensor4sizeEl", "at::Tensor::size(long) const", "at::Tensor::size"),
            ("_ZN1AclEi", "A::operator()(int)", "A::operator()"),
            ("_ZN12_GLOBAL__N_11fEi", "(anonymous namespace)::f(int)", "(anonymous namespace)::f"),
            ("_ZTVN5torch3jit6ModuleE", "{vtable(torch::jit::Module)}", "{vtable"),
            ("cudaMalloc", "cudaMalloc", "cudaMalloc"),
        ] {
            let demangled = demangle(mangled);
            assert_eq!((demangled.as_str(), stem(&demangled)), (text, cut));
        }
    }

    #[test]
    fn torch_is_known_by_its_namespaces() {
        for (name, is) in [
            ("c10::cuda::SetDevice(int)", true),
            ("std::vector<at::Tensor>::size()", false),
            ("f(at::Tensor)", false),
            ("{vtable(torch::jit::Module)}", true),
            ("aoti_torch_new_tensor_handle", true),
        ] {
            assert_eq!(is_torch(name), is, "{name}");
        }
    }
}

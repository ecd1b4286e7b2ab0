//! The arch set in the variables that a recipe's build reads: environment and `CMake` definitions.

use crate::domain::arch::ArchSet;
use crate::domain::arch::dialect::{Consumer, Spelling, cmake, joined_list, nvcc, tensorflow, torch};
use crate::domain::problem::Problems;
use crate::recipe::{ArchNames, Words};

/// Names and values that carry the archs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArchVariables {
    /// Environment variables.
    pub env: Vec<(String, String)>,
    /// `CMake` variables.
    pub define: Vec<(String, String)>,
}

/// Writes `set` for everybody who reads it.
///
/// # Errors
/// Members that a reader has no words for.
pub fn arch_variables(names: &ArchNames, set: &ArchSet) -> Result<ArchVariables, Problems> {
    let mut result = ArchVariables::default();
    for consumer in &names.consumers {
        let variables = consumer.variables(set, None)?;
        if consumer.reads_definitions() {
            result.define.extend(variables);
        } else {
            result.env.extend(variables);
        }
    }
    if names.has(Consumer::Cmake) {
        // The environment variable yields to a default that the project sets before `project()`; a definition does not.
        result.define.push((cmake::VARIABLE.to_owned(), cmake::render(set, None)?));
    }
    for (own, target) in [(&names.env, &mut result.env), (&names.define, &mut result.define)] {
        for (name, words) in own {
            target.push((name.clone(), write(*words, name, set)?));
        }
    }
    Ok(result)
}

fn write(words: Words, name: &str, set: &ArchSet) -> Result<String, Problems> {
    match words {
        Words::Torch => torch::render(set, None),
        Words::Cmake => cmake::render(set, None),
        Words::Bazel => tensorflow::render(set),
        Words::Nvcc => Ok(nvcc::render(set)),
        Words::Dotted => joined_list(name, set, Spelling::Dotted),
        Words::Joined => joined_list(name, set, Spelling::Joined),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(names: &ArchNames, set: &str) -> (Vec<String>, Vec<String>) {
        let variables = arch_variables(names, &set.parse().unwrap()).unwrap();
        let line = |pairs: Vec<(String, String)>| pairs.into_iter().map(|(n, v)| format!("{n}={v}")).collect();
        (line(variables.env), line(variables.define))
    }

    #[test]
    fn each_reader_gets_its_own_names() {
        let consumers = vec![Consumer::Torch, Consumer::Cmake, Consumer::Caffe];
        let names = ArchNames { consumers, ..ArchNames::default() };
        let (env, define) = pairs(&names, "8.6;9.0+PTX");
        assert_eq!(env, ["TORCH_CUDA_ARCH_LIST=8.6;9.0+PTX", "CUDAARCHS=86-real;90-real;90-virtual"]);
        assert_eq!(
            define,
            [
                "CUDA_ARCH_NAME=Manual",
                "CUDA_ARCH_BIN=8.6 9.0",
                "CUDA_ARCH_PTX=9.0",
                "CMAKE_CUDA_ARCHITECTURES=86-real;90-real;90-virtual"
            ]
        );
    }

    #[test]
    fn a_plain_list_has_no_word_for_ptx() {
        let mut names = ArchNames::default();
        names.define.insert("MY_SM".to_owned(), Words::Joined);
        assert_eq!(pairs(&names, "8.6;9.0a").1, ["MY_SM=86;90a"]);
        let refused = arch_variables(&names, &"9.0+PTX".parse().unwrap()).unwrap_err();
        assert!(refused.iter().next().unwrap().message().starts_with("MY_SM cannot hold"));
    }
}

//! gcc's and ld's messages in other languages: the few words that the rules look for, as the translators of the tools
//! write them.
//!
//! A message is put into English for matching only; people are shown the line as it was printed. Words are replaced only
//! in a line of a compiler's or linker's shape (`file:3:4: …`, `ld: …`), so that prose in another language stays.
//! Source: the message catalogues of GCC, GNU binutils and GNU libc (Debian's gcc-*-locales and libc-l10n).

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};
use regex::Regex;

/// As printed, and in English.
const WORDS: [(&str, &str); 55] = [
    // Chinese, simplified and traditional.
    ("致命错误：", "fatal error: "),
    ("致命错误:", "fatal error:"),
    ("错误：", "error: "),
    ("错误:", "error:"),
    ("警告：", "warning: "),
    ("警告:", "warning:"),
    ("：没有那个文件或目录", ": No such file or directory"),
    ("没有那个文件或目录", "No such file or directory"),
    ("未定义的引用", "undefined reference to"),
    ("找不到 -l", "cannot find -l"),
    ("嚴重錯誤：", "fatal error: "),
    ("嚴重錯誤:", "fatal error:"),
    ("錯誤：", "error: "),
    ("錯誤:", "error:"),
    ("沒有此一檔案或目錄", "No such file or directory"),
    // Japanese, Korean.
    ("致命的エラー:", "fatal error:"),
    ("エラー:", "error:"),
    ("そのようなファイルやディレクトリはありません", "No such file or directory"),
    ("치명적인 오류:", "fatal error:"),
    ("치명적 오류:", "fatal error:"),
    ("오류:", "error:"),
    ("경고:", "warning:"),
    ("그런 파일이나 디렉터리가 없습니다", "No such file or directory"),
    // German, French.
    ("schwerwiegender Fehler:", "fatal error:"),
    ("Fehler:", "error:"),
    ("Warnung:", "warning:"),
    ("Datei oder Verzeichnis nicht gefunden", "No such file or directory"),
    ("erreur fatale :", "fatal error:"),
    ("erreur fatale\u{a0}:", "fatal error:"),
    ("erreur :", "error:"),
    ("erreur\u{a0}:", "error:"),
    ("avertissement :", "warning:"),
    ("Aucun fichier ou dossier de ce type", "No such file or directory"),
    ("Aucun fichier ou dossier de ce nom", "No such file or directory"),
    // Spanish, Italian, Portuguese.
    ("error fatal:", "fatal error:"),
    ("aviso:", "warning:"),
    ("No existe el fichero o el directorio", "No such file or directory"),
    ("No existe el archivo o el directorio", "No such file or directory"),
    ("no se puede encontrar -l", "cannot find -l"),
    ("errore irreversibile:", "fatal error:"),
    ("errore fatale:", "fatal error:"),
    ("errore:", "error:"),
    ("File o directory non esistente", "No such file or directory"),
    ("impossibile trovare -l", "cannot find -l"),
    ("erro fatal:", "fatal error:"),
    ("erro:", "error:"),
    ("Arquivo ou diretório inexistente", "No such file or directory"),
    // Russian, Polish, Turkish.
    ("фатальная ошибка:", "fatal error:"),
    ("ошибка:", "error:"),
    ("Нет такого файла или каталога", "No such file or directory"),
    ("невозможно найти -l", "cannot find -l"),
    ("błąd:", "error:"),
    ("Nie ma takiego pliku ani katalogu", "No such file or directory"),
    ("hata:", "error:"),
    ("Böyle bir dosya ya da dizin yok", "No such file or directory"),
];

/// Literals, one of which every error line in another language holds, be it gcc's or (by its code) Microsoft's.
pub(super) const ERRORS: [&str; 17] = [
    "错误",
    "錯誤",
    "エラー",
    "오류:",
    "Fehler:",
    "erreur",
    "error fatal:",
    "errore",
    "erro:",
    "erro fatal:",
    "ошибка:",
    "błąd:",
    "hata:",
    "LNK1",
    "LNK2",
    " C1",
    " C2",
];

static SHAPE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^[^\s:]+:\d+:(?:\d+:)? ?|(?:^|/|-)ld(?:\.\w+)?: |^(?:cc1|cc1plus|c\+\+|g\+\+|gcc|cc): ").ok()
});

static SEARCH: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(WORDS.map(|(foreign, _)| foreign)).ok()
});

/// The message in English, where it is a compiler's in a language that is known.
pub(super) fn english(text: &str) -> Option<String> {
    let search = SEARCH.as_ref()?;
    if !SHAPE.as_ref()?.is_match(text) || search.find(text).is_none() {
        return None;
    }
    Some(search.replace_all(text, &WORDS.map(|(_, english)| english)))
}

/// What stands for an English literal in other languages.
pub(super) fn forms(literal: &str) -> impl Iterator<Item = &'static str> {
    WORDS.into_iter().filter(move |(_, english)| *english == literal).map(|(foreign, _)| foreign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compiler_is_understood_in_its_languages_and_prose_is_left_alone() {
        let wanted = Some("a.cpp:9:10: fatal error: x.h: No such file or directory");
        for text in [
            "a.cpp:9:10: 致命错误：x.h：没有那个文件或目录",
            "a.cpp:9:10: 嚴重錯誤：x.h: 沒有此一檔案或目錄",
            "a.cpp:9:10: 致命的エラー: x.h: そのようなファイルやディレクトリはありません",
            "a.cpp:9:10: 치명적 오류: x.h: 그런 파일이나 디렉터리가 없습니다",
            "a.cpp:9:10: schwerwiegender Fehler: x.h: Datei oder Verzeichnis nicht gefunden",
            "a.cpp:9:10: erreur fatale : x.h: Aucun fichier ou dossier de ce type",
            "a.cpp:9:10: error fatal: x.h: No existe el fichero o el directorio",
            "a.cpp:9:10: errore fatale: x.h: File o directory non esistente",
            "a.cpp:9:10: erro fatal: x.h: Arquivo ou diretório inexistente",
            "a.cpp:9:10: фатальная ошибка: x.h: Нет такого файла или каталога",
        ] {
            assert_eq!(english(text).as_deref(), wanted, "{text}");
        }
        for text in ["Fehler: die Lizenz fehlt", "-- 错误：无", "[1/2] c++ -c erreur.cpp", "a.cpp:3:4: error: x"] {
            assert_eq!(english(text), None, "{text}");
        }
    }
}

//! Answers to all requests that fuzzing kept; target `answer`.

use std::path::Path;

#[path = "../../../../../fuzz/checks/answer.rs"]
mod answer;

#[test]
fn requests_of_the_fuzz_corpus_get_true_answers() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = answer::Server::new(folder.path());
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus/answer");
    for input in std::fs::read_dir(corpus).expect("the corpus") {
        answer::check(&server, &std::fs::read(input.expect("an input").path()).expect("its bytes"));
    }
}

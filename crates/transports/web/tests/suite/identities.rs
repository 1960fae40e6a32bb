//! Certificates: created once, kept, and refused with a reason.

use std::fs;
use std::path::Path;

use headstart_web::identity::{Identity, kept_certificates};

#[test]
fn a_certificate_is_made_once_and_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let home = folder.path().join("not/there/yet");
    let first = Identity::load_or_create(&home, &[]).expect("made");
    let second = Identity::load_or_create(&home, &[]).expect("read");
    assert_eq!(first.chain, second.chain);
    let named =
        Identity::load_or_create(&home, &["example.org".into()]).expect("another name, another certificate");
    assert_ne!(first.chain, named.chain);
    assert_eq!(kept_certificates(&home).len(), 2);
}

#[test]
#[cfg(unix)]
fn only_the_owner_may_read_the_key() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    Identity::load_or_create(folder.path(), &[]).expect("made");
    let mode = fs::metadata(folder.path().join("identity.pem")).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let left: Vec<_> =
        fs::read_dir(folder.path()).expect("a folder").flatten().map(|it| it.file_name()).collect();
    assert_eq!(left, ["identity.pem"], "nothing unfinished stays behind");
}

#[test]
fn a_name_cannot_escape_the_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let home = folder.path().join("home");
    for name in ["../../evil", "/etc/evil", "..", "a/b"] {
        // Some are not valid in a certificate; none may create a file elsewhere.
        let _ = Identity::load_or_create(&home, &[name.into()]);
    }
    let elsewhere: Vec<_> =
        fs::read_dir(folder.path()).expect("a folder").flatten().map(|it| it.file_name()).collect();
    assert_eq!(elsewhere, ["home"]);
}

#[test]
fn an_invalid_certificate_is_refused_with_the_file_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let kept = folder.path().join("identity.pem");
    let message = |chain: &Path, key: &Path| Identity::from_pem(chain, key).expect_err("refused").to_string();
    assert!(message(&kept, &kept).contains("identity.pem"), "there is no such file");
    for text in ["", "nonsense", "-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n"] {
        fs::write(&kept, text).expect("a file");
        let told = message(&kept, &kept);
        assert!(told.contains("identity.pem"), "{text:?}: {told}");
    }
    Identity::load_or_create(&folder.path().join("other"), &[]).expect("made");
    let whole = fs::read_to_string(folder.path().join("other/identity.pem")).expect("a file");
    let only_certificate = whole.split_inclusive("-----END CERTIFICATE-----").next().expect("a certificate");
    fs::write(&kept, only_certificate).expect("a file");
    assert!(message(&kept, &kept).contains("identity.pem"), "it has no key");
    let key = folder.path().join("other/identity.pem");
    let cut = |count: usize| only_certificate.lines().take(count).collect::<Vec<_>>().join("\n");
    for second in [
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_owned(),
        "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n".to_owned(),
        format!("{}\n-----END CERTIFICATE-----\n", cut(4)),
    ] {
        fs::write(&kept, format!("{only_certificate}\n{second}")).expect("a file");
        let told = message(&kept, &key);
        assert!(
            told.ends_with("found no certificate in its 2. block, expected one in DER"),
            "{second}: {told}"
        );
    }
    fs::write(&kept, format!("{only_certificate}\n{only_certificate}")).expect("a file");
    assert_eq!(Identity::from_pem(&kept, &key).expect("two").chain.len(), 2);
    for encrypted in [
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAA=\n-----END ENCRYPTED PRIVATE KEY-----\n",
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\nMAA=\n-----END RSA PRIVATE KEY-----\n",
    ] {
        let key = folder.path().join("key.pem");
        fs::write(&key, encrypted).expect("a file");
        let told = message(&kept, &key);
        assert!(told.contains("found an encrypted key"), "{told}");
    }
}

//! Pages over HTTP/3, from the client's side.

use crate::common::{folder, start};
use headstart_web::client::{self, KeptConnection};
use headstart_web::server::ServerConfig;
use headstart_web::site::Site;
use http::StatusCode;

#[tokio::test(flavor = "multi_thread")]
async fn files_come_whole_several_at_once_over_one_connection() {
    let server = start(ServerConfig::default(), folder).await;
    let visit = server.fetch(&["/", "/picture.png", "/sub%20folder/a&b.txt"]).await;
    let bodies: Vec<&[u8]> = visit.pages.iter().filter_map(|page| page.body.as_deref()).collect();
    assert_eq!(bodies, [b"<h1>home</h1>".as_slice(), &[7; 300_000], b"text"]);
    assert!(visit.pages.iter().all(|page| page.status == StatusCode::OK && page.scheme.is_none()));
    assert!(visit.established < visit.complete());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_connection_fetches_one_page_after_the_other() {
    let server = start(ServerConfig::default(), folder).await;
    let endpoint = client::endpoint(server.address).expect("a socket");
    let config = server.client(None, false);
    let kept = KeptConnection::open(&endpoint, config, server.address, "localhost").await.expect("open");
    for (path, bytes) in [("/", 13), ("/picture.png", 300_000), ("/", 13)] {
        let page = kept.get(&server.plan(&[path]).urls[0]).await.expect("a page");
        assert_eq!((page.status, page.bytes), (StatusCode::OK, bytes));
        assert!(kept.is_open());
    }
    kept.close();
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_without_index_is_listed_and_its_names_are_escaped() {
    let server = start(ServerConfig::default(), folder).await;
    let visit = server.fetch(&["/sub%20folder/"]).await;
    let page = String::from_utf8(visit.pages[0].body.clone().expect("a body")).expect("text");
    assert!(page.contains("<h1>/sub folder/</h1>"), "{page}");
    assert!(page.contains("<a href=\"./a%26b.txt\">a&amp;b.txt</a>"), "{page}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_outside_the_folder_is_served() {
    let server = start(ServerConfig::default(), folder).await;
    let key = server.keys.path().join("identity.pem");
    let name =
        key.parent().and_then(|folder| folder.file_name()).expect("a name").to_string_lossy().into_owned();
    for path in [
        "/..".to_owned(),
        format!("/../{name}/"),
        format!("/..%2f{name}%2fidentity.pem"),
        format!("/%2e%2e/{name}/identity.pem"),
        format!("/sub%20folder/../../{name}/"),
        format!("/{}", key.display()),
        format!("/%2f{}", key.display()),
        "/%2fusr/".to_owned(),
        "/%2fusr%2f".to_owned(),
        "/nothing".to_owned(),
        "/sub%20folder/%00".to_owned(),
        "/..%5c".to_owned(),
        format!("/%252e%252e/{name}/identity.pem"),
        format!("/..%c0%af{name}%c0%afidentity.pem"),
        format!("/sub%20folder%00/../../{name}/identity.pem"),
    ] {
        let visit = server.fetch(&[&path]).await;
        let page = &visit.pages[0];
        assert!(page.status.is_client_error(), "{path}: {}", page.status);
        let body = String::from_utf8_lossy(page.body.as_deref().unwrap_or_default()).into_owned();
        assert!(!body.contains("PRIVATE KEY") && !body.contains("identity.pem"), "{path}: {body}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_begin_with_a_dot_are_found_only_in_well_known() {
    let server = start(ServerConfig::default(), |files| {
        for name in [".git", ".well-known", "inner/.well-known"] {
            std::fs::create_dir_all(files.path().join(name)).expect("a folder");
        }
        for name in [".env", ".git/config", ".well-known/file", ".well-known/.env", "inner/.well-known/file"]
        {
            std::fs::write(files.path().join(name), "text").expect("a file");
        }
        folder(files)
    })
    .await;
    let cases = [
        ("/.env", 404),
        ("/%2eenv", 404),
        ("//.env", 404),
        ("/.git/", 404),
        ("/.git/config", 404),
        ("/%2Egit%2fconfig", 404),
        ("/.well-known/file", 200),
        ("/.well-known/", 200),
        ("/.well-known/.env", 404),
        ("/.well-known/../.env", 404),
        ("/inner/.well-known/file", 404),
        ("/picture.png", 200),
    ];
    for (path, status) in cases {
        let visit = server.fetch(&[path]).await;
        assert_eq!(visit.pages[0].status.as_u16(), status, "{path}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn generated_files_are_bounded() {
    let server = start(ServerConfig::default(), |_| Site::Generated).await;
    let visit =
        server.fetch(&["/bytes/0", "/bytes/1", "/bytes/200001", "/bytes/99999999999", "/other"]).await;
    let seen: Vec<(u16, u64)> = visit.pages.iter().map(|page| (page.status.as_u16(), page.bytes)).collect();
    assert_eq!(seen[..3], [(200, 0), (200, 1), (200, 200_001)]);
    assert_eq!((seen[3].0, seen[4].0), (400, 404));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_returning_client_gets_a_0_rtt_response() {
    let server = start(ServerConfig::default(), folder).await;
    let config = server.client(None, true);
    let mut early = vec![];
    for _ in 0..3 {
        let visit = server.fetch_as(config.clone(), &["/picture.png"]).await;
        assert_eq!(visit.pages[0].bytes, 300_000);
        early.push(visit.early_data);
    }
    assert_eq!(early, [false, true, true]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_untrusted_certificate_is_refused() {
    let server = start(ServerConfig::default(), folder).await;
    let trust = client::Trust::System { also: vec![] };
    let config = client::plain(client::tls(&trust, None, false).expect("TLS")).expect("QUIC");
    let endpoint = client::endpoint(server.address).expect("a socket");
    let refused = server.plan(&["/"]).run(&endpoint, config, server.address).await;
    assert!(refused.is_err_and(|error| error.to_string().contains("certificate")));
    server.stop().await;
}

/// A client that sends GOAWAY and still reads; by hand: this project's client sends it at its end.
#[tokio::test(flavor = "multi_thread")]
async fn a_response_in_progress_completes_after_goaway() {
    const BYTES: usize = 1_000_000;
    let server = start(ServerConfig::default(), |_| Site::Generated).await;
    let endpoint = client::endpoint(server.address).expect("a socket");
    let config = server.client(None, false);
    let connecting = endpoint.endpoint().connect_with(config, server.address, "localhost").expect("dialled");
    let connection = connecting.await.expect("connected");
    // RFC 9114 §6.2.1, §7.2.4: the control stream, no settings.
    let mut control = connection.open_uni().await.expect("a stream");
    control.write_all(&[0, 4, 0]).await.expect("sent");
    let (mut ask, mut answer) = connection.open_bi().await.expect("a stream");
    // RFC 9204 §4.5: no dynamic entries; GET and https by number, authority and path by name.
    let mut fields = vec![0, 0, 0xc0 | 17, 0xc0 | 23];
    for (name, value) in [(0x50, "localhost"), (0x51, "/bytes/1000000")] {
        fields.extend([name, value.len() as u8]);
        fields.extend(value.bytes());
    }
    ask.write_all(&[1, fields.len() as u8]).await.expect("sent");
    ask.write_all(&fields).await.expect("sent");
    ask.finish().expect("open");
    let mut begin = [0; 1];
    answer.read_exact(&mut begin).await.expect("the answer begins");
    // RFC 9114 §7.2.6: GOAWAY from push 0 on.
    control.write_all(&[7, 1, 0]).await.expect("sent");
    let rest = answer.read_to_end(2 * BYTES).await.expect("the whole answer");
    assert!(rest.len() > BYTES, "{}", rest.len());
    connection.close(0x100_u32.into(), b"");
    server.stop().await;
}

/// The system refuses a name of more than 255 bytes, or a path of more than 4096, in its own way.
#[tokio::test(flavor = "multi_thread")]
async fn names_that_no_file_can_have_are_not_found() {
    let server = start(ServerConfig::default(), folder).await;
    for path in ["n".repeat(300), "n/".repeat(5000), "%00".to_owned(), "index.html/n".to_owned()] {
        assert_eq!(server.fetch(&[&format!("/{path}")]).await.pages[0].status, 404, "{path}");
    }
    server.stop().await;
}

/// Targets of links are the operator's choice: clients cannot make links.
#[tokio::test(flavor = "multi_thread")]
#[cfg(target_os = "linux")]
async fn symbolic_links_are_followed_and_broken_ones_are_not_found() {
    use std::os::unix::fs::symlink;
    let outside = tempfile::tempdir().expect("a folder");
    std::fs::write(outside.path().join("page"), "outside").expect("a file");
    let server = start(ServerConfig::default(), |files| {
        let link = |target: &std::path::Path, name: &str| symlink(target, files.path().join(name));
        link(&outside.path().join("page"), "file").expect("a link");
        link(outside.path(), "outside").expect("a link");
        link("nowhere".as_ref(), "broken").expect("a link");
        link("loop".as_ref(), "loop").expect("a link");
        folder(files)
    })
    .await;
    for path in ["/file", "/outside/page"] {
        assert_eq!(server.fetch(&[path]).await.pages[0].body.as_deref(), Some(&b"outside"[..]), "{path}");
    }
    for path in ["/broken", "/loop", "/loop/", "/loop/page"] {
        assert_eq!(server.fetch(&[path]).await.pages[0].status, StatusCode::NOT_FOUND, "{path}");
    }
    server.stop().await;
}

/// Opening a pipe blocks until somebody writes to it.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn pipes_and_sockets_are_not_found_and_block_nobody() {
    let server = start(ServerConfig::default(), folder).await;
    let root = server.files.path();
    std::fs::create_dir(root.join("piped")).expect("a folder");
    std::fs::write(root.join("page"), "text").expect("a file");
    for name in ["pipe", "a\\b", "page.br", "piped/index.html"] {
        rustix::fs::mkfifoat(rustix::fs::CWD, root.join(name), rustix::fs::Mode::RWXU).expect("a pipe");
    }
    std::os::unix::fs::symlink("pipe", root.join("link")).expect("a link");
    let _socket = std::os::unix::net::UnixListener::bind(root.join("socket")).expect("a socket");
    let paths = ["/pipe", "/a%5Cb", "/link", "/socket", "/piped/", "/page", "/"];
    let visit = tokio::time::timeout(std::time::Duration::from_secs(20), server.fetch(&paths)).await;
    let statuses: Vec<u16> = visit.expect("at once").pages.iter().map(|page| page.status.as_u16()).collect();
    assert_eq!(statuses, [404, 404, 404, 404, 404, 200, 200], "a page with a pipe beside it is there");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_begin_with_a_dot_are_not_listed() {
    let server = start(ServerConfig::default(), folder).await;
    for name in [".env", ".git", "shown"] {
        std::fs::write(server.files.path().join("sub folder").join(name), "text").expect("a file");
    }
    let visit = server.fetch(&["/sub%20folder/"]).await;
    let page = String::from_utf8(visit.pages[0].body.clone().expect("a body")).expect("text");
    assert!(page.contains("shown") && !page.contains(".env") && !page.contains(".git"), "{page}");
    server.stop().await;
}

/// Tickets of one server are those of another that was started anew.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_whose_0_rtt_is_refused_asks_again() {
    let [one, other] =
        [start(ServerConfig::default(), folder).await, start(ServerConfig::default(), folder).await];
    let tls = client::tls(&client::Trust::AnyCertificate, None, true).expect("TLS");
    let config = client::plain(tls).expect("QUIC");
    assert!(!one.fetch_as(config.clone(), &["/"]).await.early_data);
    assert!(one.fetch_as(config.clone(), &["/"]).await.early_data);
    // It may ask again in 0-RTT, with a ticket that came with the refusal.
    let visit = other.fetch_as(config, &["/picture.png"]).await;
    assert_eq!(visit.pages[0].bytes, 300_000);
    one.stop().await;
    other.stop().await;
}

/// `openssl req -x509` makes certificates that may issue others.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_may_have_the_trusted_certificate_of_an_issuer() {
    use headstart_web::identity::Identity;
    let folder = tempfile::tempdir().expect("a folder");
    let paths = ["certificate.pem", "key.pem"].map(|name| folder.path().join(name));
    let key = rcgen::KeyPair::generate().expect("a key");
    let mut params = rcgen::CertificateParams::new(["localhost".to_owned()]).expect("a name");
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    std::fs::write(&paths[0], params.self_signed(&key).expect("a certificate").pem()).expect("a file");
    std::fs::write(&paths[1], key.serialize_pem()).expect("a file");
    let identity = Identity::from_pem(&paths[0], &paths[1]).expect("a pair");
    let (server, _) = crate::starts::start_as("iw10", headstart_quic::Rollout::default(), &identity);
    let config = |trust| client::plain(client::tls(&trust, None, false).expect("TLS")).expect("QUIC");
    let trusted = config(client::Trust::File(paths[0].clone()));
    assert_eq!(server.fetch_as(trusted.clone(), &["/bytes/10"]).await.pages[0].bytes, 10);
    let endpoint = client::endpoint(server.address).expect("a socket");
    let mut plan = server.plan(&["/bytes/10"]);
    plan.origin.host = "example.org".to_owned();
    let refused = plan.run(&endpoint, trusted, server.address).await;
    assert!(matches!(refused, Err(client::FetchError::Certificate { .. })), "another name: {refused:?}");
    let other = start(ServerConfig::default(), crate::common::folder).await;
    let refused = server.plan(&["/bytes/10"]).run(&endpoint, config(other.trust()), server.address).await;
    let Err(error @ client::FetchError::Certificate { .. }) = refused else {
        panic!("not in the file: {refused:?}");
    };
    assert!(
        error.to_string().ends_with("it is one of an issuer, and not itself among those that are trusted"),
        "{error}"
    );
    other.stop().await;
    server.stop().await;
}

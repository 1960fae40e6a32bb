//! The access log of requests over TCP and QUIC.

use std::path::Path;

use crate::common::{folder, start, until};
use headstart_web::access_log::{AccessLog, Destination};
use headstart_web::server::ServerConfig;

fn lines(file: &Path) -> Vec<String> {
    std::fs::read_to_string(file).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// The line without its time of day.
fn without_time(line: &str) -> String {
    let (before, rest) = line.split_once('[').expect("a time");
    let (time, after) = rest.split_once(']').expect("a time");
    assert!(time.len() == "10/Oct/2000:13:55:36 +0000".len() && time.ends_with(" +0000"), "{line}");
    format!("{before}[]{after}")
}

#[tokio::test(flavor = "multi_thread")]
async fn each_request_has_a_line_and_a_renamed_file_is_left_for_a_new_one() {
    let logs = tempfile::tempdir().expect("a folder");
    let (file, former) = (logs.path().join("access.log"), logs.path().join("access.log.1"));
    let log = AccessLog::open(Destination::File(file.clone())).expect("a file");
    let server_config = ServerConfig { access_log: Some(log.clone()), ..ServerConfig::default() };
    let server = start(server_config, folder).await;

    server.fetch(&["/picture.png"]).await;
    let request =
        "GET /none?q=1 HTTP/1.1\r\nHost: h\r\nUser-Agent: a\"b\r\nReferer: r\r\nConnection: close\r\n\r\n";
    crate::tcp::ask(&server, request).await;
    until("two lines", || lines(&file).len() == 2).await;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(&file).expect("a file").permissions().mode();
        assert_eq!(mode & 0o137, 0, "{mode:o}: the owner writes it and the group may read it");
    }
    let found: Vec<String> = lines(&file).iter().map(|line| without_time(line)).collect();
    let peer = "127.0.0.1 - - []";
    assert!(
        found[0].starts_with(&format!("{peer} \"GET /picture.png HTTP/3.0\" 200 300000 \"-\" ")),
        "{found:?}"
    );
    let escaped = format!("{peer} \"GET /none?q=1 HTTP/1.1\" 404 10 \"r\" \"a\\\"b\"");
    assert_eq!(found[1], escaped);

    let malformed = [
        ("GET /\x01 HTTP/1.1\r\nHost: h\r\n\r\n".to_owned(), "400"),
        (format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(100_000)), "431"),
        (format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(65_600)), "431"),
    ];
    for (number, (request, status)) in malformed.iter().enumerate() {
        let told = crate::tcp::ask(&server, request).await;
        assert!(told.starts_with(&format!("HTTP/1.1 {status} ")), "{told}");
        until("its line", || lines(&file).len() == 3 + number).await;
        assert_eq!(without_time(&lines(&file)[2 + number]), format!("{peer} \"-\" {status} - \"-\" \"-\""));
    }

    std::fs::rename(&file, &former).expect("renamed");
    crate::tcp::ask(&server, "HEAD /picture.png HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").await;
    until("a line in a new file", || lines(&file).len() == 1).await;
    assert!(
        lines(&file)[0].ends_with("\"HEAD /picture.png HTTP/1.1\" 200 - \"-\" \"-\""),
        "{:?}",
        lines(&file)
    );
    assert_eq!(lines(&former).len(), 5);
    server.stop().await;
    assert_eq!(log.dropped(), 0);
}

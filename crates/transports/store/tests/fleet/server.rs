//! A real server, started by its test, that ends with it.

#![allow(clippy::disallowed_methods, dead_code, reason = "real processes, real time; a part is used by each")]

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Test timeout, generous for a loaded host.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// The server's program, if one is installed.
pub fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = ["valkey-server", "redis-server"];
    names
        .iter()
        .flat_map(|name| std::env::split_paths(&path).map(move |folder| folder.join(name)))
        .find(|it| it.is_file())
}

pub struct Server {
    child: Option<Child>,
    pub port: u16,
    options: Vec<String>,
    pub folder: tempfile::TempDir,
}

impl Server {
    /// Starts one with these options, on a free port.
    pub fn start(options: &[&str]) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        Self::start_in(folder, options, false)
    }

    /// Starts one in this folder, with TLS alone if `over_tls`.
    pub fn start_in(folder: tempfile::TempDir, options: &[&str], over_tls: bool) -> Option<Self> {
        program()?;
        // Closed at once: somebody else may take it, and the server then ends.
        let free = || TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a port").port();
        for _ in 0..20 {
            let port = free();
            let mut options: Vec<String> = options.iter().map(|text| (*text).to_owned()).collect();
            let (plain, tls) = if over_tls { (0, port) } else { (port, 0) };
            options.extend(["--port".into(), plain.to_string()]);
            if over_tls {
                options.extend(["--tls-port".into(), tls.to_string()]);
            }
            let folder_path = folder.path().to_owned();
            let mut server =
                Self { child: None, port, options, folder: tempfile::tempdir().expect("a folder") };
            server.options.extend(["--dir".into(), folder_path.display().to_string()]);
            if server.restart() {
                server.folder = folder;
                return Some(server);
            }
        }
        panic!("no server would start");
    }

    /// Starts it again, empty, on the same port.
    pub fn restart(&mut self) -> bool {
        let mut command = Command::new(program().expect("installed"));
        command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--databases", "2"]);
        let mut child = command
            .args(&self.options)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let is_ready =
            output.lines().map_while(Result::ok).any(|line| line.contains("eady to accept connections"));
        if is_ready {
            self.child = Some(child);
        } else {
            let _ = child.wait();
        }
        is_ready
    }

    /// Kills it without warning.
    pub fn kill(&mut self) {
        let mut child = self.child.take().expect("running");
        child.kill().expect("killed");
        child.wait().expect("ended");
    }

    /// Stops the server, as a machine that hangs: connections stay open and nothing is answered.
    pub fn signal(&self, signal: rustix::process::Signal) {
        let child = self.child.as_ref().expect("running");
        let id = rustix::process::Pid::from_child(child);
        rustix::process::kill_process(id, signal).expect("signalled");
    }

    pub fn url(&self) -> String {
        format!("valkey://127.0.0.1:{}/", self.port)
    }

    /// The lines of the answer to one command as text, while there are any: its end is not seen.
    fn answer(&self, command: &str) -> impl Iterator<Item = String> {
        let address = SocketAddr::from(([127, 0, 0, 1], self.port));
        let mut stream = TcpStream::connect(address).expect("it answers");
        stream.set_read_timeout(Some(TIMEOUT)).expect("set");
        stream.write_all(format!("{command}\r\n").as_bytes()).expect("sent");
        BufReader::new(stream).lines().map_while(Result::ok)
    }

    /// The rest of the line of a report that begins with `name`.
    pub fn report(&self, command: &str, name: &str) -> String {
        self.answer(command)
            .filter_map(|line| line.trim_end().strip_prefix(name).map(str::to_owned))
            .next()
            .expect("a line of that name")
    }

    /// One command as text; the first line of the answer.
    pub fn command(&self, text: &str) -> String {
        self.answer(text).next().expect("an answer").trim_end().to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Waits for a certain state.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < TIMEOUT, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

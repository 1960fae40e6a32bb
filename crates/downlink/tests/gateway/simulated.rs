//! A home gateway on the loopback interface: it answers searches over UDP and serves HTTP and SOAP
//! over TCP, correctly or not.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use headstart_downlink::gateway::{self, Error, Link, Options};

/// An HTTP request: first line, header fields, body.
#[derive(Clone, Debug)]
pub struct Request {
    pub line: String,
    pub header: String,
    pub body: String,
}

pub type Serve = Box<dyn Fn(&Request, &mut TcpStream) + Send>;

/// Requests that the gateway received.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub searches: Vec<String>,
    pub requests: Vec<Request>,
}

/// A gateway that runs until the test is over.
pub struct Gateway {
    pub search: SocketAddr,
    pub http: SocketAddr,
    pub seen: Arc<Mutex<Seen>>,
}

pub const HERE: Ipv4Addr = Ipv4Addr::LOCALHOST;
/// Another host: Linux assigns all of 127.0.0.0/8 to the loopback interface.
pub const THERE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

pub const IGD: &str = "urn:schemas-upnp-org:device:InternetGatewayDevice:1";
pub const COMMON: &str = "urn:schemas-upnp-org:service:WANCommonInterfaceConfig:1";

/// An answer to a search, in the format of real gateways.
pub fn found(location: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 200 OK\r\nCACHE-CONTROL: max-age=1800\r\nEXT:\r\nLOCATION: {location}\r\n\
         SERVER: Linux UPnP/1.1 Gateway/1.0\r\nST: {IGD}\r\nUSN: uuid:00000000-0000-0000-0000-000000000001::{IGD}\r\n\r\n"
    )
    .into_bytes()
}

/// A description with devices nested as in IGD, and services of which one reports the line; an
/// empty `service` is UPnP's own name of it.
pub fn description(service: &str, control: &str, base: &str) -> String {
    let described = |kind: &str, control: &str| {
        format!(
            "<service><serviceType>{kind}</serviceType><serviceId>urn:upnp-org:serviceId:1</serviceId>\
             <controlURL>{control}</controlURL><eventSubURL>/e</eventSubURL><SCPDURL>/s.xml</SCPDURL></service>"
        )
    };
    let line = described(if service.is_empty() { COMMON } else { service }, control);
    let other = described("urn:schemas-upnp-org:service:WANIPConnection:1", "/other");
    format!(
        "<?xml version=\"1.0\"?>\n<root xmlns=\"urn:schemas-upnp-org:device-1-0\"><specVersion><major>1</major><minor>0</minor></specVersion>{base}\
         <device><deviceType>{IGD}</deviceType><friendlyName>Gateway</friendlyName><manufacturer>nobody</manufacturer>\
         <serviceList>{}</serviceList><deviceList><device><deviceType>urn:schemas-upnp-org:device:WANDevice:1</deviceType>\
         <serviceList>{line}</serviceList><deviceList><device><serviceList>{other}</serviceList></device></deviceList></device>\
         </deviceList></device></root>",
        described("urn:schemas-any-com:service:Any:1", "/any"),
    )
}

/// The answer to the action.
pub fn properties(access: &str, bits: &str, status: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?>\n<s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\" \
         s:encodingStyle=\"http://schemas.xmlsoap.org/soap/encoding/\"><s:Body><u:GetCommonLinkPropertiesResponse xmlns:u=\"{COMMON}\">\
         <NewWANAccessType>{access}</NewWANAccessType><NewLayer1UpstreamMaxBitRate>10000000</NewLayer1UpstreamMaxBitRate>\
         <NewLayer1DownstreamMaxBitRate>{bits}</NewLayer1DownstreamMaxBitRate><NewPhysicalLinkStatus>{status}</NewPhysicalLinkStatus>\
         </u:GetCommonLinkPropertiesResponse></s:Body></s:Envelope>"
    )
}

pub fn respond(stream: &mut TcpStream, status: &str, header: &str, body: &str) {
    let length = body.len();
    let text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/xml\r\nContent-Length: {length}\r\n{header}Connection: close\r\n\r\n{body}"
    );
    // A client that has read enough closes early.
    let _ = stream.write_all(text.as_bytes());
}

/// Serves the description on GET and the answer on POST.
pub fn honest(description: String, answer: String) -> Serve {
    Box::new(move |request, stream| {
        let body = if request.line.starts_with("GET ") { &description } else { &answer };
        respond(stream, "200 OK", "", body);
    })
}

pub fn pause(time: Duration) {
    #[allow(clippy::disallowed_methods)]
    thread::sleep(time);
}

/// Queries a gateway that answers, with a higher time limit if the host is loaded.
pub fn ask(options: &Options) -> Result<Link, Error> {
    let asked = |longer| gateway::query(&Options { timeout: options.timeout * longer, ..options.clone() });
    match asked(1) {
        Err(Error::NoAnswer { .. } | Error::TimedOut) => asked(30),
        told => told,
    }
}

impl Gateway {
    /// `answers` builds the datagrams that answer a search, given the address of the HTTP server.
    pub fn start(answers: impl Fn(SocketAddr) -> Vec<Vec<u8>> + Send + 'static, serve: Serve) -> Self {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let listener = TcpListener::bind((HERE, 0)).expect("a port");
        let http = listener.local_addr().expect("an address");
        let log = Arc::clone(&seen);
        thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                if let Some(request) = read(&mut stream) {
                    log.lock().expect("free").requests.push(request.clone());
                    serve(&request, &mut stream);
                }
            }
        });
        let socket = UdpSocket::bind((HERE, 0)).expect("a port");
        let search = socket.local_addr().expect("an address");
        let log = Arc::clone(&seen);
        thread::spawn(move || {
            let mut buffer = [0; 2048];
            while let Ok((length, from)) = socket.recv_from(&mut buffer) {
                let search = String::from_utf8_lossy(&buffer[..length]).into_owned();
                log.lock().expect("free").searches.push(search);
                for answer in answers(http) {
                    let _ = socket.send_to(&answer, from);
                }
            }
        });
        Self { search, http, seen }
    }

    /// A gateway whose description is at `/igddesc.xml`.
    pub fn with(serve: Serve) -> Self {
        Self::start(|http| vec![found(&format!("http://{http}/igddesc.xml"))], serve)
    }

    pub fn options(&self) -> Options {
        Options {
            search: vec![self.search],
            gateway: Some(IpAddr::V4(HERE)),
            timeout: Duration::from_secs(2),
        }
    }

    pub fn seen(&self) -> Seen {
        self.seen.lock().expect("free").clone()
    }
}

fn read(stream: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 1024];
    let end = loop {
        let length = stream.read(&mut chunk).ok().filter(|length| *length > 0)?;
        bytes.extend_from_slice(&chunk[..length]);
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let (line, header) = head.split_once("\r\n").unwrap_or((&head, ""));
    let length = header
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
    while bytes.len() < end + 4 + length.unwrap_or(0) {
        let length = stream.read(&mut chunk).ok().filter(|length| *length > 0)?;
        bytes.extend_from_slice(&chunk[..length]);
    }
    let body = String::from_utf8_lossy(&bytes[end + 4..]).into_owned();
    Some(Request { line: line.to_owned(), header: header.to_owned(), body })
}

//! HTTP to one host, within one deadline, with a cap on everything (UDA §2.1, §3.2).

use std::net::IpAddr;

use ureq::http::{StatusCode, Uri};
use ureq::{Agent, Body, http::Response};

use super::error::Error;
use super::soap;
use headstart_host::Deadline;

/// Most bytes of a document; the longest description seen in practice has some 30 kB.
const LONGEST: u64 = 128 * 1024;
const LONGEST_HEADER: usize = 16 * 1024;

/// A client of one host only.
#[derive(Debug)]
pub(super) struct Client {
    host: IpAddr,
    deadline: Deadline,
}

impl Client {
    pub const fn new(host: IpAddr, deadline: Deadline) -> Self {
        Self { host, deadline }
    }

    /// Accepts an HTTP URL at this host, written as an address: a name could resolve to any host.
    pub fn checked(&self, text: &str) -> Result<Uri, Error> {
        let malformed = || Error::Url { found: text.to_owned() };
        let url: Uri = text.parse().map_err(|_| malformed())?;
        let authority = url.authority().filter(|_| url.scheme_str() == Some("http")).ok_or_else(malformed)?;
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        let is_here = host.parse::<IpAddr>().is_ok_and(|address| address.to_canonical() == self.host);
        // Gateways' URLs have no user part.
        if !is_here || authority.as_str().contains('@') {
            return Err(Error::ForeignUrl { found: text.to_owned(), host: self.host });
        }
        Ok(url)
    }

    /// Fetches a document.
    pub fn get(&self, url: &Uri) -> Result<String, Error> {
        let response = self.agent()?.get(url).call().map_err(|error| refused(&error))?;
        let (status, text) = read(response)?;
        if status == StatusCode::OK { Ok(text) } else { Err(Error::Status { code: status.as_u16() }) }
    }

    /// Calls an action.
    pub fn call(&self, url: &Uri, service: &str, action: &str, body: &str) -> Result<String, Error> {
        let request = self
            .agent()?
            .post(url)
            .header("Content-Type", "text/xml; charset=\"utf-8\"")
            .header("SOAPACTION", format!("\"{service}#{action}\""));
        let (status, text) = read(request.send(body).map_err(|error| refused(&error))?)?;
        match status {
            StatusCode::OK => Ok(text),
            // UDA §3.2.2: the body has the reason of a refused action.
            StatusCode::INTERNAL_SERVER_ERROR => Err(soap::fault(&text)),
            other => Err(Error::Status { code: other.as_u16() }),
        }
    }

    /// A new agent for each request: only the deadline is shared between requests.
    fn agent(&self) -> Result<Agent, Error> {
        let left = self.deadline.left().ok_or(Error::TimedOut)?;
        let config = Agent::config_builder()
            .timeout_global(Some(left))
            .proxy(None)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .max_response_header_size(LONGEST_HEADER)
            .max_idle_connections(0)
            .user_agent("headstart UPnP/1.1")
            .build();
        Ok(Agent::new_with_config(config))
    }
}

fn read(mut response: Response<Body>) -> Result<(StatusCode, String), Error> {
    let status = response.status();
    if status.is_redirection() {
        let to =
            response.headers().get("location").map(|to| String::from_utf8_lossy(to.as_bytes()).into_owned());
        return Err(Error::Redirected { to: to.unwrap_or_default() });
    }
    if status == StatusCode::UNAUTHORIZED {
        return Err(Error::Password);
    }
    let body = response.body_mut().with_config().limit(LONGEST).lossy_utf8(true).read_to_string();
    Ok((status, body.map_err(|error| refused(&error))?))
}

fn refused(error: &ureq::Error) -> Error {
    match error {
        ureq::Error::BodyExceedsLimit(_) => Error::TooLarge { limit: LONGEST },
        ureq::Error::Timeout(_) => Error::TimedOut,
        other => Error::Broken { reason: other.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn only_urls_of_the_responding_host_are_accepted() {
        let client = Client::new("192.168.1.1".parse().expect("an address"), Deadline::after(Duration::ZERO));
        #[rustfmt::skip]
        let rows = [
            ("http://192.168.1.1:49000/igddesc.xml", "here"),
            ("http://192.168.1.1",                   "here"),
            ("http://[::ffff:192.168.1.1]:80/d",     "here"),
            ("http://192.168.1.2/d",                 "elsewhere"),
            ("http://192.168.1.1@192.168.1.2/d",     "elsewhere"),
            ("http://me:secret@192.168.1.1/d",       "elsewhere"),
            ("http://192.168.1.1.example.org/d",     "elsewhere"),
            ("http://router.local/d",                "elsewhere"),
            ("http://127.0.0.1/d",                   "elsewhere"),
            ("https://192.168.1.1/d",                "no URL"),
            ("file:///etc/passwd",                   "no URL"),
            ("/igddesc.xml",                         "no URL"),
            ("http://",                              "no URL"),
            ("http://192.168.1.1/a b",               "no URL"),
            ("http://192.168.1.1/\r\nX: y",          "no URL"),
            ("",                                     "no URL"),
        ];
        for (url, expected) in rows {
            let found = match client.checked(url) {
                Ok(_) => "here",
                Err(Error::ForeignUrl { .. }) => "elsewhere",
                Err(_) => "no URL",
            };
            assert_eq!(found, expected, "{url:?}");
        }
    }
}

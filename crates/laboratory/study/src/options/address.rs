//! Address of a listening socket.

use std::net::SocketAddr;

/// Reads an address with its port.
///
/// # Errors
///
/// Names the value found and the one expected. Names of hosts are not resolved, since they may have
/// several addresses.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    text.trim().parse().map_err(|_| {
        format!("found `{text}`, expected an address and a port, such as 127.0.0.1:4433 or [::1]:4433")
    })
}

/// Reads the address of another host, whose port cannot be 0.
///
/// # Errors
///
/// As [`address`].
pub fn destination(text: &str) -> Result<SocketAddr, String> {
    let found = address(text)?;
    if found.port() == 0 {
        Err(format!("found `{text}`, expected a port from 1 to 65535"))
    } else {
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_port_a_port_without_address_and_a_name_are_refused_with_an_example() {
        for text in ["127.0.0.1", "4433", ":4433", "localhost:4433", "::1:4433", "127.0.0.1:65536", ""] {
            let refused = address(text).expect_err(text);
            assert!(
                refused.contains(&format!("found `{text}`")) && refused.contains("127.0.0.1:4433"),
                "{refused}"
            );
        }
        for text in ["127.0.0.1:4433", "[::1]:4433", " 0.0.0.0:0 "] {
            assert_eq!(address(text).map(|found| found.to_string()).as_deref(), Ok(text.trim()));
        }
    }
}

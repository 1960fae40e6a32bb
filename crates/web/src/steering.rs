//! A server and its successor on one port: neither drops a connection of the other.
//!
//! Both sockets are bound with `SO_REUSEPORT`. Connection IDs of a server begin with a random tag
//! (RFC 9000 §5.1 leaves their content to the server). The successor attaches a filter to the
//! sockets of the port, which the kernel runs for each datagram:
//!
//! | packet | goes to |
//! |---|---|
//! | short header or Handshake, with the successor's tag | successor |
//! | short header or Handshake, with another | the server before it |
//! | Initial, 0-RTT and whatever else has a long header | successor |
//!
//! The kernel numbers the sockets of a port in the order in which they were bound. When the server
//! before it ends, the successor's number is beyond the last one; the kernel then ignores the
//! filter, and the only socket that is left gets everything.
//!
//! # Limits
//!
//! - The tag is in clear: an observer sees which of the two servers a connection is of.
//! - Two servers at a time. A third is refused until the first has ended.
//! - The second Initial packet of a handshake that was begun with the server before is lost, and
//!   sent again by the client or made up for by its Handshake packets.

use std::fs;
use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;

use nix::libc::{
    BPF_ABS, BPF_ALU, BPF_AND, BPF_B, BPF_H, BPF_JA, BPF_JEQ, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET,
    sock_filter, sock_fprog,
};
use nix::sys::socket::{setsockopt, sockopt::AttachReusePortCbpf};
use noq::{ConnectionId, ConnectionIdGenerator, EndpointConfig};

/// Length of a connection ID in bytes, the stack's own.
const LENGTH: usize = 8;

/// First bytes of the connection IDs of one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag([u8; 2]);

impl Tag {
    /// A random one: two servers have the same with a probability of 1 in 65 536.
    ///
    /// # Errors
    /// If the system has no random bytes.
    pub fn random() -> io::Result<Self> {
        let mut bytes = [0; 2];
        fill(&mut bytes).map_err(|_| io::Error::other("the system has no random bytes"))?;
        Ok(Self(bytes))
    }

    /// The stack's settings, with connection IDs of this tag.
    #[must_use]
    pub fn endpoint_config(self) -> EndpointConfig {
        let mut config = crate::server::endpoint_config();
        config.cid_generator(Arc::new(move || Box::new(Tagged(self))));
        config
    }

    /// Steers the datagrams of the socket's port between this server and the one before it, if
    /// there is one.
    ///
    /// # Errors
    /// If two servers have the port already, or the system refuses the filter.
    pub fn attach(self, socket: &UdpSocket) -> io::Result<()> {
        match sockets_beside(socket)? {
            0 => Ok(()),
            1 => {
                let mut filter = self.filter();
                let program = sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
                Ok(setsockopt(socket, AttachReusePortCbpf, &program)?)
            }
            beside => Err(io::Error::new(
                io::ErrorKind::AddrInUse,
                format!("found {beside} servers at it, expected one: the first has not ended yet"),
            )),
        }
    }

    /// Returns the number of a socket.
    fn filter(self) -> [sock_filter; 10] {
        const BEFORE: u32 = 0;
        const SUCCESSOR: u32 = 1;
        // RFC 9000 §17.2: the form of a header, and the type of a long one.
        const LONG: u32 = 0x80;
        const TYPE: u32 = 0x30;
        const HANDSHAKE: u32 = 0x20;
        // The destination's connection ID behind a short header's first byte, and behind a long
        // one's version and length.
        const SHORT_AT: u32 = 1;
        const LONG_AT: u32 = 6;
        let tag = u16::from_be_bytes(self.0).into();
        [
            instruction(BPF_LD | BPF_B | BPF_ABS, 0, 0, 0),
            instruction(BPF_JMP | BPF_JSET | BPF_K, LONG, 2, 0),
            instruction(BPF_LD | BPF_H | BPF_ABS, SHORT_AT, 0, 0),
            instruction(BPF_JMP | BPF_JA, 3, 0, 0),
            instruction(BPF_ALU | BPF_AND | BPF_K, TYPE, 0, 0),
            instruction(BPF_JMP | BPF_JEQ | BPF_K, HANDSHAKE, 0, 2),
            instruction(BPF_LD | BPF_H | BPF_ABS, LONG_AT, 0, 0),
            instruction(BPF_JMP | BPF_JEQ | BPF_K, tag, 0, 1),
            instruction(BPF_RET | BPF_K, SUCCESSOR, 0, 0),
            instruction(BPF_RET | BPF_K, BEFORE, 0, 0),
        ]
    }
}

/// `if_true` and `if_false` are numbers of instructions to skip.
const fn instruction(code: u32, operand: u32, if_true: u8, if_false: u8) -> sock_filter {
    sock_filter { code: code as u16, jt: if_true, jf: if_false, k: operand }
}

fn fill(bytes: &mut [u8]) -> Result<(), rustls::crypto::GetRandomFailed> {
    crate::provider().secure_random.fill(bytes)
}

/// Other sockets that are bound to the address of this one.
fn sockets_beside(socket: &UdpSocket) -> io::Result<usize> {
    let file = if socket.local_addr()?.is_ipv4() { "/proc/self/net/udp" } else { "/proc/self/net/udp6" };
    let about = fs::metadata(format!("/proc/self/fd/{}", socket.as_raw_fd()))?;
    Ok(beside(&fs::read_to_string(file)?, about.ino()))
}

/// Lines of the kernel's table with the address of the socket of that inode, without its own.
fn beside(table: &str, inode: u64) -> usize {
    // The local address, and the inode (proc_net_tcp in the kernel's documentation).
    let fields = |line: &str| -> Option<(String, u64)> {
        let words: Vec<&str> = line.split_whitespace().collect();
        Some(((*words.get(1)?).to_owned(), words.get(9)?.parse().ok()?))
    };
    let sockets: Vec<(String, u64)> = table.lines().filter_map(fields).collect();
    let Some((own, _)) = sockets.iter().find(|(_, at)| *at == inode) else { return 0 };
    sockets.iter().filter(|(address, at)| address == own && *at != inode).count()
}

/// Makes the connection IDs.
#[derive(Debug)]
struct Tagged(Tag);

impl ConnectionIdGenerator for Tagged {
    fn generate_cid(&mut self) -> ConnectionId {
        let mut bytes = [0; LENGTH];
        fill(&mut bytes).expect("the system has had random bytes");
        bytes[..2].copy_from_slice(&self.0.0);
        ConnectionId::new(&bytes)
    }

    fn cid_len(&self) -> usize {
        LENGTH
    }

    fn cid_lifetime(&self) -> Option<core::time::Duration> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sockets_of_the_same_address_count() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
             1: 0100007F:1151 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 71 2 0 0\n\
             2: 0100007F:1151 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 72 2 0 0\n\
             3: 0200007F:1151 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 73 2 0 0\n";
        assert_eq!([71, 72, 73, 74].map(|inode| beside(table, inode)), [1, 1, 0, 0]);
    }

    /// The kernel runs the filter: two sockets, and what each of them gets.
    #[test]
    fn packets_with_the_tag_of_the_successor_and_new_connections_reach_it() {
        let before = crate::open::shared_socket(([127, 0, 0, 1], 0).into()).expect("a socket");
        let address = before.local_addr().expect("an address");
        Tag([1, 1]).attach(&before).expect("alone");
        let successor = crate::open::shared_socket(address).expect("a second socket");
        Tag([2, 3]).attach(&successor).expect("the second");
        let third = crate::open::shared_socket(address).expect("a third socket");
        let refused = Tag([4, 4]).attach(&third).expect_err("a third");
        assert!(refused.to_string().contains("found 2 servers"), "{refused}");
        drop(third);

        for socket in [&before, &successor] {
            socket.set_read_timeout(Some(core::time::Duration::from_millis(200))).expect("a socket");
        }
        let client = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let reached = |packet: &[u8]| {
            client.send_to(packet, address).expect("sent");
            [&before, &successor].map(|socket| socket.recv(&mut [0; 64]).is_ok())
        };
        let long = |form: u8, tag: [u8; 2]| [form, 0, 0, 0, 1, 8, tag[0], tag[1], 9, 9, 9, 9, 9, 9];
        let (to_before, to_successor) = ([true, false], [false, true]);
        for (packet, expected) in [
            (&[0x40, 1, 1, 9, 9, 9, 9, 9, 9][..], to_before),
            (&[0x40, 2, 3, 9, 9, 9, 9, 9, 9], to_successor),
            (&[0x40, 3, 2, 9, 9, 9, 9, 9, 9], to_before),
            (&long(0xe0, [1, 1]), to_before),
            (&long(0xe0, [2, 3]), to_successor),
            (&long(0xc0, [1, 1]), to_successor),
            (&long(0xd0, [7, 7]), to_successor),
            (&[0x40], to_before),
        ] {
            assert_eq!(reached(packet), expected, "{packet:?}");
        }
        drop(before);
        assert_eq!(reached_alone(&client, address, &successor), [true, true]);
    }

    /// Packets with the tag of the server that has ended, and with the successor's.
    fn reached_alone(client: &UdpSocket, address: std::net::SocketAddr, left: &UdpSocket) -> [bool; 2] {
        [[0x40, 1, 1, 9], [0x40, 2, 3, 9]].map(|packet| {
            client.send_to(&packet, address).expect("sent");
            left.recv(&mut [0; 64]).is_ok()
        })
    }
}

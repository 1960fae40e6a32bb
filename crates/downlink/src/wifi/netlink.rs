//! Two queries to the kernel by generic netlink.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use neli::consts::nl::NlmF;
use neli::consts::socket::NlFamily;
use neli::genl::{AttrTypeBuilder, GenlmsghdrBuilder, NlattrBuilder};
use neli::nl::NlPayload;
use neli::router::synchronous::NlRouter;
use neli::types::GenlBuffer;
use neli::utils::Groups;

use super::messages::{Attribute, Command, Message, read_interface, read_station};
use super::{Connection, Radio};

/// The running kernel's Wi-Fi interfaces.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nl80211;

impl Radio for Nl80211 {
    /// Queries on another thread, which is abandoned if the kernel does not answer in time.
    fn connection(&self, interface: u32, timeout: Duration) -> Result<Connection, String> {
        let (answer, answered) = mpsc::channel();
        let asking = move || {
            // It fails if the time limit has passed.
            let _ = answer.send(ask(interface));
        };
        let named = thread::Builder::new().name("headstart-nl80211".into()).spawn(asking);
        named.map_err(|error| format!("no thread: {error}"))?;
        answered.recv_timeout(timeout).map_err(|_| "the kernel did not answer in time".to_owned())?
    }
}

fn ask(interface: u32) -> Result<Connection, String> {
    let no_socket = |_| "netlink cannot be used here".to_owned();
    let (router, _events) = NlRouter::connect(NlFamily::Generic, None, Groups::empty()).map_err(no_socket)?;
    let no_family = |_| "this kernel has no nl80211: no wireless interface".to_owned();
    let family = router.resolve_genl_family("nl80211").map_err(no_family)?;
    let mut connection = Connection::default();
    for message in exchange(&router, family, Command::GetInterface, NlmF::empty(), interface)? {
        read_interface(&message, &mut connection);
    }
    for message in exchange(&router, family, Command::GetStation, NlmF::DUMP, interface)? {
        read_station(&message, &mut connection);
    }
    Ok(connection)
}

/// A station's interface answers with a message or a few.
const MAX_MESSAGES: usize = 64;

fn exchange(
    router: &NlRouter,
    family: u16,
    command: Command,
    flags: NlmF,
    interface: u32,
) -> Result<Vec<Message>, String> {
    let unbuilt = |_| "a request could not be built".to_owned();
    let kind =
        AttrTypeBuilder::default().nla_type(Attribute::InterfaceIndex).build().map_err(|_| unbuilt(()))?;
    let attribute =
        NlattrBuilder::default().nla_type(kind).nla_payload(interface).build().map_err(|_| unbuilt(()))?;
    let attributes: GenlBuffer<_, _> = [attribute].into_iter().collect();
    let request = GenlmsghdrBuilder::default()
        .cmd(command)
        .version(1)
        .attrs(attributes)
        .build()
        .map_err(|_| unbuilt(()))?;
    let request: Message = request;
    let refused = || "the kernel refused to report this radio".to_owned();
    let answers = router
        .send::<u16, Message, u16, Message>(family, flags, NlPayload::Payload(request))
        .map_err(|_| refused())?;
    let mut messages = Vec::new();
    for answer in answers.take(MAX_MESSAGES) {
        if let NlPayload::Payload(message) = answer.map_err(|_| refused())?.nl_payload() {
            messages.push(message.clone());
        }
    }
    Ok(messages)
}

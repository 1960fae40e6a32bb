//! A connection to one server.

use core::time::Duration;

use redis::{Client, Cmd, Connection, FromRedisValue, Value};

use super::link::{LinkError, Scripts};

/// A system says of a server that hangs: "resource temporarily unavailable".
fn failure(shown: &str, error: &redis::RedisError) -> LinkError {
    if error.is_timeout() {
        return LinkError(format!("{shown}: found no answer in time, expected one"));
    }
    LinkError(format!("{shown}: {error}"))
}

/// A connection to one server, which has the scripts.
pub(super) struct Node {
    connection: Connection,
    shown: String,
}

impl Node {
    /// Connects; no step waits longer than `timeout`, nor does any later answer.
    pub fn connect(client: &Client, shown: &str, timeout: Duration) -> Result<(Self, Scripts), LinkError> {
        let failed = |error: redis::RedisError| failure(shown, &error);
        let connection = client.get_connection_with_timeout(timeout).map_err(failed)?;
        connection.set_read_timeout(Some(timeout)).map_err(failed)?;
        connection.set_write_timeout(Some(timeout)).map_err(failed)?;
        let mut node = Self { connection, shown: shown.to_owned() };
        let scripts = Scripts::load(&mut node)?;
        Ok((node, scripts))
    }

    fn failed(&self, error: &redis::RedisError) -> LinkError {
        failure(&self.shown, error)
    }

    /// One command and its answer.
    pub fn ask<T: FromRedisValue>(&mut self, command: &Cmd) -> Result<T, LinkError> {
        command.query(&mut self.connection).map_err(|error| self.failed(&error))
    }

    /// Sends commands in one go. Each has an answer, to be received in their order.
    // Not the pipeline of `redis`: it waits for every answer, even after the first one that did not
    // come in time.
    pub fn send<'a>(&mut self, commands: impl Iterator<Item = &'a Cmd>) -> Result<(), LinkError> {
        let mut packed = vec![];
        for command in commands {
            command.write_packed_command(&mut packed);
        }
        self.connection.send_packed_command(&packed).map_err(|error| self.failed(&error))
    }

    /// The next answer; the server's errors are values.
    pub fn receive(&mut self) -> Result<Value, LinkError> {
        self.connection.recv_response().map_err(|error| self.failed(&error))
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_server_that_hangs_is_named_as_one() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let client = Client::open(format!("redis://127.0.0.1:{port}")).expect("an address");
        let error = Node::connect(&client, "here", Duration::from_millis(50)).err().expect("no answer");
        assert_eq!(error.0, "here: found no answer in time, expected one");
    }
}

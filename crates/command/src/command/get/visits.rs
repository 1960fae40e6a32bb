//! All fetches, in turn, from one of the server's addresses.

use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use headstart_web::client::{ClientEndpoint, FetchError, FetchPlan, Visit};

use super::{FetchConfig, Sample};

/// Time after which a silent host is reported. Between the first and the second repetition of the
/// first packet, so that one lost packet is not reported.
const SILENCE_TIMEOUT: Duration = Duration::from_millis(2500);

/// Time allowed for the last packet to leave: it needs no answer.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Pages to fetch, and their server.
pub(super) struct PageFetches<'a> {
    pub plan: &'a FetchPlan,
    pub remote: SocketAddr,
}

impl PageFetches<'_> {
    /// Fetches `repeat` times with each configuration, and closes the connections.
    ///
    /// # Errors
    ///
    /// If one of them fails: `samples` has those before.
    pub async fn all(&self, ways: &[FetchConfig], repeat: u32, samples: &mut Vec<Sample>) -> Result<()> {
        let endpoint = ClientEndpoint::to(self.remote).map_err(|source| {
            let host = self.plan.origin.host.clone();
            FetchError::Socket { host: format!("{host}: no socket towards {}", self.remote), source }
        })?;
        let fetched = self.fetch_in_turn(&endpoint, ways, repeat, samples).await;
        // The last packet closes the connection. A server that does not receive it keeps the
        // connection, and the record it reserved, until the idle timeout.
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, endpoint.endpoint().wait_idle()).await;
        fetched
    }

    async fn fetch_in_turn(
        &self,
        endpoint: &ClientEndpoint,
        ways: &[FetchConfig],
        repeat: u32,
        samples: &mut Vec<Sample>,
    ) -> Result<()> {
        // In turn, so that changes of the path affect all.
        for round in 0..repeat {
            for way in ways {
                let visit = self.fetch_once(endpoint, way).await?;
                let rest = pause_after(&visit);
                samples.push(Sample { scheme: way.scheme.clone(), round, visit });
                tokio::time::sleep(rest).await;
            }
        }
        Ok(())
    }

    async fn fetch_once(&self, endpoint: &ClientEndpoint, way: &FetchConfig) -> Result<Visit> {
        let Self { plan, remote } = *self;
        let (config, _) = way.setup.configure(remote, plan.origin.name());
        let reads = endpoint.reads();
        let mut fetch = pin!(plan.run(endpoint, config, remote));
        let visit = match tokio::time::timeout(SILENCE_TIMEOUT, &mut fetch).await {
            Ok(done) => done?,
            Err(_) => {
                if endpoint.reads() == reads {
                    eprintln!(
                        "headstart: {}: no answer from {remote} yet, waiting up to {} s (--timeout)",
                        plan.origin.host,
                        plan.timeout.as_secs_f64()
                    );
                }
                fetch.await?
            }
        };
        if let Some(wanted) = way.scheme.as_deref()
            && let Some(page) = visit.pages.iter().find(|page| page.scheme.as_deref() != Some(wanted))
        {
            match &page.scheme {
                None => bail!(
                    "--compare: {} does not let its clients choose a scheme. If it is yours: headstart serve \
                     --allow-scheme-choice",
                    plan.origin.host
                ),
                Some(other) => bail!(
                    "--compare: found the scheme {other} at the server, expected {wanted}, for which the client asked"
                ),
            }
        }
        Ok(visit)
    }
}

/// Until the queue of the last connection is empty, and the server has stored its record.
fn pause_after(visit: &Visit) -> Duration {
    (visit.rtt * 3).max(Duration::from_millis(50))
}

/// The port at that address is closed: another address of the same server may answer.
pub(super) fn is_refusal(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(FetchError::Refused { .. }))
}

/// With advice, where there is any.
pub(super) fn with_advice(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref() {
        Some(FetchError::Certificate { .. }) => anyhow!(
            "{error}. For a server of your own: `--certificates FILE` trusts its certificate, `--insecure` trusts any"
        ),
        Some(FetchError::Refused { .. }) => anyhow!("{error}. Is it running, and is that its port?"),
        _ => error,
    }
}

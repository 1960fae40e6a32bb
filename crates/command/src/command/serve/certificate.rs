//! The certificate of a server, which is read again while it runs.

use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
#[cfg(unix)]
use headstart_web::identity::CurrentIdentity;
use headstart_web::identity::{self, Identity};
#[cfg(unix)]
use sd_notify::NotifyState;
#[cfg(unix)]
use tokio::signal::unix::Signal;
#[cfg(unix)]
use tokio_util::sync::CancellationToken;

use super::ServerArgs;
use headstart_report::errors::one_line;

pub(super) fn open_identity(args: &ServerArgs) -> Result<Identity> {
    if let (Some(certificate), Some(key)) = (&args.certificate, &args.key) {
        return Ok(Identity::from_pem(certificate, key)?);
    }
    let folder = identity::data_folder().context(
        "found no home folder for a self-signed certificate, expected $HOME, or --certificate and --key",
    )?;
    Ok(Identity::load_or_create(&folder, &args.name)?)
}

/// The fault of a certificate that was read.
pub(super) fn no_pair(args: &ServerArgs) -> String {
    match (&args.certificate, &args.key) {
        (Some(chain), Some(key)) => {
            format!(
                "certificate {} and key {}: found no pair that can be used",
                chain.display(),
                key.display()
            )
        }
        _ => "the certificate cannot be used".to_owned(),
    }
}

/// Notifies the service manager, if one listens at $NOTIFY_SOCKET.
#[cfg(unix)]
pub(super) fn notify_manager(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(false, states) {
        eprintln!("headstart: the service manager cannot be notified: {error}");
    }
}

/// Reads certificate and key again at each SIGHUP. A pair that cannot be used changes nothing, and
/// one that cannot be read to its end keeps nobody waiting.
#[cfg(unix)]
pub(super) async fn reload(
    mut hang_up: Signal,
    args: ServerArgs,
    current: Arc<CurrentIdentity>,
    shutdown: CancellationToken,
) {
    let args = Arc::new(args);
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            _ = hang_up.recv() => {}
        }
        if let Ok(now) = NotifyState::monotonic_usec_now() {
            notify_manager(&[NotifyState::Reloading, now]);
        }
        let (of_server, current) = (Arc::clone(&args), Arc::clone(&current));
        let read = tokio::task::spawn_blocking(move || {
            let identity = read_again(&of_server)?;
            current.replace(&identity).with_context(|| no_pair(&of_server))
        });
        let renewed = tokio::select! {
            () = shutdown.cancelled() => return,
            read = read => read.map_err(anyhow::Error::from).flatten(),
        };
        match renewed {
            Ok(true) => eprintln!("headstart: the certificate was read again; new connections get it"),
            Ok(false) => eprintln!("headstart: the certificate was read again; it is the one in use"),
            Err(error) => eprintln!("headstart: the former certificate stays: {}", one_line(&error)),
        }
        notify_manager(&[NotifyState::Ready]);
    }
}

/// A pipe has had its certificate read, and would be waited for.
#[cfg(unix)]
fn read_again(args: &ServerArgs) -> Result<Identity> {
    for path in [&args.certificate, &args.key].into_iter().flatten() {
        if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            bail!("{}: found no regular file, which can be read again", path.display());
        }
    }
    open_identity(args)
}

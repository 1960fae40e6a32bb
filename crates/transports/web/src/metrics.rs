//! Counters over plain HTTP/1.1, in Prometheus' text format.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Produces the text of `GET /metrics`.
pub type Render = Arc<dyn Fn() -> String + Send + Sync>;

/// Time limit for a silent collector.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Serves the text of `render` until `shutdown`.
pub async fn serve(listener: TcpListener, render: Render, shutdown: CancellationToken) {
    loop {
        let accepted = tokio::select! {
            () = shutdown.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, remote)) = accepted else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let (render, shutdown) = (Arc::clone(&render), shutdown.clone());
        tokio::spawn(async move {
            let answer = service_fn(move |request: Request<Incoming>| {
                let answer = answer(request.method(), request.uri().path(), &render);
                async move { Ok::<_, Infallible>(answer) }
            });
            let mut builder = http1::Builder::new();
            builder.timer(TokioTimer::new()).header_read_timeout(TIMEOUT);
            let connection = pin!(builder.serve_connection(TokioIo::new(stream), answer));
            tokio::select! {
                done = connection => if let Err(error) = done {
                    tracing::debug!(%remote, %error, "a collector's connection ended");
                },
                () = shutdown.cancelled() => {}
            }
        });
    }
}

fn answer(method: &Method, path: &str, render: &Render) -> Response<Full<Bytes>> {
    let (status, kind, text) = match (method, path) {
        (&Method::GET, "/metrics") => (StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", render()),
        (&Method::GET, _) => (StatusCode::NOT_FOUND, "text/plain", "expected /metrics\n".to_owned()),
        _ => (StatusCode::METHOD_NOT_ALLOWED, "text/plain", "only GET\n".to_owned()),
    };
    let mut answer = Response::new(Full::from(text));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

/// Merges several sets of the same counters: the format allows each name one block of samples.
#[must_use]
pub fn merged(texts: impl IntoIterator<Item = String>) -> String {
    let mut families: Vec<(String, Vec<String>, Vec<String>)> = vec![];
    for text in texts {
        let mut at = None;
        for line in text.lines() {
            let described = line.strip_prefix("# HELP ").or_else(|| line.strip_prefix("# TYPE "));
            let Some(described) = described else {
                if let Some((_, _, samples)) = at.and_then(|at: usize| families.get_mut(at)) {
                    samples.push(line.to_owned());
                }
                continue;
            };
            let name = described.split(' ').next().unwrap_or(described);
            let found = families.iter().position(|(known, ..)| known == name);
            let place = found.unwrap_or_else(|| {
                families.push((name.to_owned(), vec![], vec![]));
                families.len() - 1
            });
            at = Some(place);
            let (_, head, _) = &mut families[place];
            if !head.iter().any(|known| known == line) {
                head.push(line.to_owned());
            }
        }
    }
    let lines = families.iter().flat_map(|(_, head, samples)| head.iter().chain(samples));
    lines.flat_map(|line| [line.as_str(), "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_has_one_block_of_samples() {
        let of = |scheme: &str| {
            format!(
                "# HELP a_total Of a.\n# TYPE a_total counter\na_total{{scheme=\"{scheme}\"}} 1\n\
                 # HELP b Of b.\n# TYPE b gauge\nb{{scheme=\"{scheme}\"}} 2\n"
            )
        };
        let expected = "# HELP a_total Of a.\n# TYPE a_total counter\na_total{scheme=\"x\"} 1\na_total{scheme=\"y\"} 1\n\
                        # HELP b Of b.\n# TYPE b gauge\nb{scheme=\"x\"} 2\nb{scheme=\"y\"} 2\n";
        assert_eq!(merged([of("x"), of("y")]), expected);
        assert_eq!(merged([of("x")]), of("x"));
    }
}

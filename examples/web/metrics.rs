//! How do I export the metrics of my locks to Prometheus?
//!
//! Install a recorder of the crate `metrics` before the client connects, and tell it the buckets of
//! the histograms. Any recorder will do; this is the one for Prometheus.
//!
//! `cargo run --package web --bin metrics`, on embedded voters, prints what Prometheus would read.

use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use quorate::{Quorate, embedded, metric};

/// Without buckets, the recorder would export summaries, which cannot be added up over processes.
fn record() -> Result<PrometheusHandle, BuildError> {
    let mut prometheus = PrometheusBuilder::new();
    for metric in metric::ALL.iter().filter(|metric| !metric.buckets.is_empty()) {
        let name = Matcher::Full(metric.name.to_owned());
        prometheus = prometheus.set_buckets_for_metric(name, metric.buckets)?;
    }
    prometheus.install_recorder()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let metrics = record()?;
    let voters = embedded::voters(3);
    // Only these locks have their names in metrics: a name for each invoice would be too many.
    let builder = Quorate::builder().embedded(&voters).named_metrics(["nightly report"]);
    let quorum = builder.connect().await?;

    let guard = quorum.mutex("nightly report").lock().await?;
    // A service answers GET /metrics with this text.
    let page = metrics.render();
    println!("{page}");
    let is_held = |line: &str| line.starts_with("quorate_held{") && line.ends_with(" 1");
    guard.release().await?;
    quorum.close().await?;
    if page.lines().any(is_held) { Ok(()) } else { Err("no lock is shown as held".into()) }
}

//! `--metrics`: what Prometheus reads, and whether the agent works.

use std::time::Duration;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use quorate::metric;
use tokio::time;

use crate::{
    console::Failure,
    http::{Answer, Pages},
};

/// How often the recorder adds up what was measured.
// Also if nobody asks: until then it keeps each single value of a histogram.
const UPKEEP: Duration = Duration::from_secs(5);

/// Installs the recorder of metrics. A client that connects before has none.
pub(super) fn install() -> Result<PrometheusHandle, Failure> {
    let mut prometheus = PrometheusBuilder::new();
    for (name, buckets) in metric::buckets() {
        let of_metric = prometheus.set_buckets_for_metric(Matcher::Full(name.into()), buckets);
        prometheus = of_metric.map_err(Failure::system("--metrics"))?;
    }
    let page = prometheus.install_recorder().map_err(Failure::system("--metrics"))?;
    let recorder = page.clone();
    tokio::spawn(async move {
        loop {
            time::sleep(UPKEEP).await;
            recorder.run_upkeep();
        }
    });
    Ok(page)
}

impl Pages for PrometheusHandle {
    const PATHS: &'static [&'static str] = &["/metrics", "/healthz"];

    async fn page(&self, path: &str) -> Answer {
        if path == "/metrics" { Answer::text(self.render()) } else { Answer::fine("ok\n") }
    }
}

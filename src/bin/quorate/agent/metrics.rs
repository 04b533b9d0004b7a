//! `--metrics`: what Prometheus reads, and whether the agent works.

use std::time::Duration;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use quorate::metric;
use tokio::time;

use crate::{
    console::Failure,
    http::{Answer, Pages},
};

/// How often what was measured is summed up, also if nobody reads it.
const UPKEEP: Duration = Duration::from_secs(5);

pub(super) struct Metrics(PrometheusHandle);

impl Metrics {
    /// Before the client connects.
    pub(super) fn install() -> Result<Self, Failure> {
        let mut prometheus = PrometheusBuilder::new();
        for (name, buckets) in metric::buckets() {
            let of_metric = prometheus.set_buckets_for_metric(Matcher::Full(name.into()), buckets);
            prometheus = of_metric.map_err(Failure::system("--metrics"))?;
        }
        let page = prometheus.install_recorder().map_err(Failure::system("--metrics"))?;
        let kept_up = page.clone();
        tokio::spawn(async move {
            loop {
                time::sleep(UPKEEP).await;
                kept_up.run_upkeep();
            }
        });
        Ok(Self(page))
    }
}

impl Pages for Metrics {
    const PATHS: &'static [&'static str] = &["/metrics", "/healthz"];

    async fn page(&self, path: &str) -> Answer {
        if path == "/metrics" { Answer::text(self.0.render()) } else { Answer::fine("ok\n") }
    }
}

//! What watches the service looks where the Compose file has put it.

use crate::{
    compose::FILE,
    tree::{Finding, Tree, at, ensure, holds, list_at, same, text_at},
};

const PROMETHEUS: &str = "deploy/prometheus/prometheus.yml";
const DATASOURCE: &str = "deploy/grafana/provisioning/datasources/prometheus.yaml";
const DASHBOARDS: &str = "deploy/grafana/provisioning/dashboards/quorate.yaml";

#[test]
fn prometheus_reads_the_service_and_rules_that_are_mounted() {
    let claim = |tree: &Tree| -> Finding {
        let (compose, prometheus) = (tree.yaml(FILE), tree.yaml(PROMETHEUS));
        let jobs = at(&prometheus, "/scrape_configs").as_array().ok_or("it scrapes nothing")?;
        let is_ours = |job: &&serde_json::Value| text_at(job, "/job_name") == "quorate-service";
        let job = jobs.iter().find(is_ours).ok_or("it does not scrape the service")?;
        let listen = text_at(&compose, "/services/service/environment/QUORATE_LISTEN");
        let (_, port) = listen.rsplit_once(':').ok_or("the service listens nowhere")?;
        let targets = list_at(job, "/static_configs/0/targets");
        same("targets", targets, vec![format!("service:{port}")])?;
        let published = list_at(at(&compose, "/services/service"), "/ports");
        same("published", published, vec![format!("127.0.0.1:{port}:{port}")])?;
        let health = at(&compose, "/services/service/healthcheck/test/3").to_string();
        ensure(health.contains(&format!("/{port} ")), "the service's health is asked elsewhere")?;
        let mounted = list_at(at(&compose, "/services/prometheus"), "/volumes");
        ensure(mounted.contains(&"../prometheus:/etc/prometheus:ro".into()), "it has no files")?;
        let rules = list_at(&prometheus, "/rule_files");
        ensure(!rules.is_empty(), "it has no rules")?;
        for rule in rules {
            let path = format!("deploy/prometheus/{rule}");
            ensure(Tree::has(&path), format!("there is no {path}"))?;
        }
        Ok(())
    };
    holds(
        claim,
        &[
            (FILE, "QUORATE_LISTEN: 0.0.0.0:8080", "QUORATE_LISTEN: 0.0.0.0:8081"),
            (FILE, "tcp/127.0.0.1/8080", "tcp/127.0.0.1/8081"),
            (FILE, "../prometheus:/etc/prometheus", "../prometheus:/prometheus"),
            (PROMETHEUS, "service:8080", "services:8080"),
            (PROMETHEUS, "quorate.rules.yml", "quorate.rule.yml"),
        ],
    );
}

#[test]
fn grafana_asks_that_prometheus_and_finds_the_dashboards_that_are_mounted() {
    let claim = |tree: &Tree| -> Finding {
        let compose = tree.yaml(FILE);
        let published = list_at(at(&compose, "/services/prometheus"), "/ports");
        let port = published.first().and_then(|port| port.rsplit_once(':'));
        let (_, port) = port.ok_or("Prometheus has no port")?;
        let source = tree.yaml(DATASOURCE);
        let url = text_at(&source, "/datasources/0/url");
        same("Prometheus", url, &format!("http://prometheus:{port}"))?;
        let mounted = list_at(at(&compose, "/services/grafana"), "/volumes");
        let dashboards = tree.yaml(DASHBOARDS);
        let folder = text_at(&dashboards, "/providers/0/options/path");
        for mount in [
            format!("../grafana/dashboards:{folder}:ro"),
            "../grafana/provisioning:/etc/grafana/provisioning:ro".to_owned(),
        ] {
            ensure(mounted.contains(&mount), format!("Grafana has no {mount}"))?;
        }
        Ok(())
    };
    holds(
        claim,
        &[
            (DATASOURCE, "http://prometheus:9090", "http://localhost:9090"),
            (DASHBOARDS, "/var/lib/grafana/dashboards", "/dashboards"),
            (FILE, "127.0.0.1:9090:9090", "127.0.0.1:9090:9091"),
            (FILE, "../grafana/provisioning:", "../grafana:"),
        ],
    );
}

//! The Compose file agrees with the rest of the repository.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::tree::{Finding, Tree, at, bytes, ensure, holds, list_at, same, text_at};

pub(crate) const FILE: &str = "deploy/compose/compose.yaml";
const DOCKERFILE: &str = "deploy/compose/Dockerfile";

fn services(compose: &Value) -> Vec<(&str, &Value)> {
    let services = at(compose, "/services").as_object().expect("there are services");
    services.iter().map(|(name, service)| (name.as_str(), service)).collect()
}

/// The services that run a lock node, with their names.
pub(crate) fn nodes(compose: &Value) -> Vec<(&str, &Value)> {
    let is_node = |service: &Value| text_at(service, "/command/0") == "redis-server";
    services(compose).into_iter().filter(|(_, service)| is_node(service)).collect()
}

/// Where a path of the file leads, from the root of the repository.
fn resolved(path: &str) -> Option<String> {
    let path = path.strip_prefix("../")?;
    Some(path.strip_prefix("../").map_or_else(|| format!("deploy/{path}"), str::to_owned))
}

#[test]
fn there_are_five_nodes_by_our_configuration_with_their_own_volumes() {
    let claim = |tree: &Tree| -> Finding {
        let compose = tree.yaml(FILE);
        let nodes = nodes(&compose);
        let names: Vec<_> = nodes.iter().map(|(name, _)| *name).collect();
        same("nodes", names, vec!["lock-1", "lock-2", "lock-3", "lock-4", "lock-5"])?;
        let users = tree.conf("aclfile");
        let folder = users.strip_suffix("/users.acl").ok_or("the users' file has another name")?;
        for (name, node) in nodes {
            same(name, text_at(node, "/command/1"), &format!("{folder}/redis.conf"))?;
            let mounts = list_at(node, "/volumes");
            let wanted =
                vec![format!("configuration:{folder}:ro"), format!("{name}:{}", tree.conf("dir"))];
            same(name, mounts, wanted)?;
            let memory = bytes(text_at(node, "/mem_limit"));
            let enough = memory >= 2 * bytes(&tree.conf("maxmemory"));
            ensure(enough, format!("{name}: {memory} bytes are too few"))?;
            same(name, text_at(node, "/restart"), "unless-stopped")?;
        }
        Ok(())
    };
    holds(
        claim,
        &[
            (FILE, "  lock-4:\n    <<", "  lock-6:\n    <<"),
            (FILE, "lock-2:/var/lib/quorate", "lock-1:/var/lib/quorate"),
            (FILE, "/etc/quorate/redis.conf\", \"--bind\"", "/etc/redis.conf\", \"--bind\""),
            (FILE, "mem_limit: 512m", "mem_limit: 256m"),
            (FILE, "restart: unless-stopped", "restart: never"),
            ("deploy/redis.conf", "aclfile /etc/quorate", "aclfile /etc/redis"),
            ("deploy/redis.conf", "dir /var/lib/quorate", "dir /data"),
            ("deploy/redis.conf", "maxmemory 256mb", "maxmemory 300mb"),
        ],
    );
}

#[test]
fn only_the_machine_itself_reaches_its_ports_and_no_two_are_one() {
    let claim = |tree: &Tree| -> Finding {
        let compose = tree.yaml(FILE);
        let mut taken = BTreeSet::new();
        for (name, service) in services(&compose) {
            for port in list_at(service, "/ports") {
                let [host, outside, inside] = port.split(':').collect::<Vec<_>>()[..] else {
                    return Err(format!("{name}: {port} is not an address with two ports"));
                };
                same(name, host, "127.0.0.1")?;
                ensure(taken.insert(outside.to_owned()), format!("{outside} is taken twice"))?;
                if name.starts_with("lock-") {
                    same(name, inside, &tree.conf("port"))?;
                }
            }
        }
        same("published ports", taken.len(), 8)
    };
    holds(
        claim,
        &[
            (FILE, "127.0.0.1:6383:6379", "6383:6379"),
            (FILE, "127.0.0.1:9090", "0.0.0.0:9090"),
            (FILE, "127.0.0.1:6383:", "127.0.0.1:6382:"),
            ("deploy/redis.conf", "port 6379", "port 6380"),
        ],
    );
}

// A service that names what is not there is only refused by Docker itself.
#[test]
fn every_volume_network_and_service_that_is_named_is_there() {
    let claim = |tree: &Tree| -> Finding {
        let compose = tree.yaml(FILE);
        let (volumes, networks) = (list_at(&compose, "/volumes"), list_at(&compose, "/networks"));
        for (name, service) in services(&compose) {
            for mount in list_at(service, "/volumes") {
                let source = mount.split(':').next().unwrap_or_default();
                let known = source.starts_with('.') || volumes.contains(&source.to_owned());
                ensure(known, format!("{name} mounts {source}"))?;
            }
            for network in list_at(service, "/networks") {
                ensure(networks.contains(&network), format!("{name} is in {network}"))?;
            }
            for other in list_at(service, "/depends_on") {
                let known = at(&compose, "/services").get(&other).is_some();
                ensure(known, format!("{name} waits for {other}"))?;
            }
        }
        Ok(())
    };
    holds(
        claim,
        &[
            (FILE, "  passwords:\n  configuration:\n", "  configuration:\n"),
            (FILE, "networks: [locks, watch]", "networks: [lock, watch]"),
            (FILE, "prepare: { condition", "passwords: { condition"),
        ],
    );
}

#[test]
fn what_it_mounts_and_builds_from_is_in_the_repository() {
    let compose = Tree::default().yaml(FILE);
    let mut seen = 0;
    for (name, service) in services(&compose) {
        let build = text_at(service, "/build/context");
        let mounts = list_at(service, "/volumes").into_iter();
        let sources = mounts.filter_map(|mount| Some(mount.split_once(':')?.0.to_owned()));
        for path in sources.chain([build.to_owned()]).filter_map(|path| resolved(&path)) {
            assert!(Tree::has(&path), "{name}: there is no {path}");
            seen += 1;
        }
    }
    assert!(seen >= 6, "only {seen} paths were seen");
    assert!(Tree::has("examples/service.rs"), "the Dockerfile builds it");
}

// Cargo needs all targets that Cargo.toml names, and rustc what the sources include.
#[test]
fn the_image_of_the_service_is_built_from_all_that_it_takes_by_our_rust() {
    let claim = |tree: &Tree| -> Finding {
        let dockerfile = tree.text(DOCKERFILE);
        let copied: Vec<_> = dockerfile
            .lines()
            .filter_map(|line| line.strip_prefix("COPY ")?.rsplit_once(' '))
            .flat_map(|(sources, _)| sources.split(' '))
            .filter(|source| !source.starts_with('-') && !source.starts_with('/'))
            .collect();
        for source in &copied {
            ensure(Tree::has(source), format!("there is no {source}"))?;
        }
        for needed in ["Cargo.toml", "Cargo.lock", "src", "lua", "docs", "README.md", "examples"] {
            ensure(copied.contains(&needed), format!("{needed} is not copied"))?;
        }
        let manifest = tree.text("Cargo.toml");
        ensure(manifest.contains("[[bench]]") == copied.contains(&"benches"), "benches")?;
        let (_, rust) = manifest.split_once("rust-version = \"").expect("it has one");
        let rust = rust.split('"').next().expect("it ends");
        let image = format!("FROM rust:{rust}-bookworm AS build");
        ensure(dockerfile.contains(&image), format!("it is not built {image}"))?;
        let ignored = tree.text("deploy/compose/Dockerfile.dockerignore");
        let seen: Vec<_> = ignored.lines().filter_map(|line| line.strip_prefix('!')).collect();
        let is_seen =
            |source: &&&str| seen.iter().any(|seen| source.starts_with(seen.trim_end_matches('*')));
        same("what the build sees", copied.iter().filter(is_seen).count(), copied.len())
    };
    holds(
        claim,
        &[
            (DOCKERFILE, "COPY lua lua\n", ""),
            (DOCKERFILE, "COPY benches benches\n", ""),
            (DOCKERFILE, "COPY docs docs", "COPY doc docs"),
            (DOCKERFILE, "rust:1.", "rust:2."),
            ("deploy/compose/Dockerfile.dockerignore", "!lua\n", ""),
        ],
    );
}

/// The images of a file, wherever they are named.
pub(crate) fn images(text: &str) -> Vec<&str> {
    let lines = text.lines().map(|line| line.trim().trim_start_matches("- "));
    lines.filter_map(|line| line.strip_prefix("image: ")).collect()
}

#[test]
fn images_have_one_version_each_and_it_is_said_in_full() {
    let claim = |tree: &Tree| -> Finding {
        let texts = [FILE, crate::kubernetes::NODES].map(|path| tree.text(path));
        let images: BTreeSet<_> = texts.iter().flat_map(|text| images(text)).collect();
        let names: BTreeSet<_> =
            images.iter().map(|image| image.split(':').next().unwrap_or_default()).collect();
        same("images", images.len(), names.len())?;
        for image in images {
            let version = image.split(':').nth(1).unwrap_or_default().trim_start_matches('v');
            let parts = version.split('.').filter(|part| part.parse::<u32>().is_ok()).count();
            same(image, parts, 3)?;
        }
        Ok(())
    };
    holds(
        claim,
        &[
            (FILE, "image: redis:7.2.11", "image: redis:7.2.10"),
            (crate::kubernetes::NODES, "image: redis:7.2.11", "image: redis:7.4.0"),
            (FILE, "grafana/grafana:12.1.1", "grafana/grafana:latest"),
            (FILE, "prom/prometheus:v3.5.0", "prom/prometheus:v3.5"),
        ],
    );
}

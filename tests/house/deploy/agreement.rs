//! What several files of `deploy/` say, they all say alike: no program reads two of them together.

use std::{collections::BTreeSet, fs};

use super::files::{COMPOSE, Finding, NODES, REDIS, Tree, UNIT, ensure, holds, number};

const DOCKERFILE: &str = "deploy/compose/Dockerfile";
const KUSTOMIZATION: &str = "deploy/kustomization.yaml";
const SERVICE: &str = "deploy/kubernetes/service.yaml";
const PROMETHEUS: &str = "deploy/prometheus/prometheus.yml";
const DASHBOARDS: &str = "deploy/grafana/provisioning/dashboards/quorate.yaml";

/// These stand in the files, each so many times.
fn stand(tree: &Tree, wanted: &[(&str, usize, String)]) -> Finding {
    for (path, times, text) in wanted {
        let found = tree.text(path).matches(&**text).count();
        ensure(found == *times, format!("{path} has `{text}` {found} times"))?;
    }
    Ok(())
}

#[test]
fn nodes_have_the_folders_and_the_port_of_redis_conf_wherever_they_run() {
    let claim = |tree: &Tree| {
        let (port, data, users) = (tree.conf("port"), tree.conf("dir"), tree.conf("aclfile"));
        let folder = users.strip_suffix("/users.acl").ok_or("the users' file has another name")?;
        let wanted = [
            (COMPOSE, 1, format!("command: [\"redis-server\", \"{folder}/redis.conf\"")),
            (COMPOSE, 5, format!("configuration:{folder}:ro")),
            (COMPOSE, 5, format!(":{data}\"]")),
            // Each has a folder of its own.
            (COMPOSE, 1, format!("\"lock-1:{data}\"")),
            (COMPOSE, 1, format!("\"lock-2:{data}\"")),
            (COMPOSE, 1, format!("\"lock-3:{data}\"")),
            (COMPOSE, 1, format!("\"lock-4:{data}\"")),
            (COMPOSE, 1, format!("\"lock-5:{data}\"")),
            (COMPOSE, 5, format!(":{port}\"]")),
            (COMPOSE, 1, format!("$$node:{port}\"")),
            (NODES, 1, format!("command: [redis-server, {folder}/redis.conf")),
            (NODES, 1, format!("name: configuration, mountPath: {folder},")),
            (NODES, 1, format!("name: data, mountPath: {data} }}")),
            (NODES, 1, format!("test -e {data}/appendonlydir/")),
            (NODES, 1, format!("containerPort: {port} ")),
            (SERVICE, 1, format!("port: {port}\n")),
            (UNIT, 1, format!("ExecStart=/usr/bin/redis-server {folder}/redis.conf\n")),
            (UNIT, 1, format!("WorkingDirectory={data}\n")),
            (UNIT, 1, format!("StateDirectory={}\n", data.trim_start_matches("/var/lib/"))),
            ("deploy/systemd/firewall.nft", 2, format!("tcp dport {port} ")),
        ];
        stand(tree, &wanted)
    };
    holds(
        claim,
        &[
            (REDIS, "aclfile /etc/quorate", "aclfile /etc/redis"),
            (REDIS, "dir /var/lib/quorate", "dir /data"),
            (REDIS, "port 6379", "port 6380"),
            (COMPOSE, "/etc/quorate/redis.conf\", \"--bind\"", "/etc/redis.conf\", \"--bind\""),
            (COMPOSE, "lock-2:/var/lib/quorate", "lock-2:/data"),
            (COMPOSE, "lock-2:/var/lib/quorate", "lock-1:/var/lib/quorate"),
            (COMPOSE, "127.0.0.1:6383:6379", "127.0.0.1:6383:6380"),
            (NODES, "redis-server, /etc/quorate/", "redis-server, /etc/redis/"),
            (NODES, "name: data, mountPath: /var/lib/quorate }", "name: data, mountPath: /data }"),
            (NODES, "containerPort: 6379", "containerPort: 6380"),
            (SERVICE, "port: 6379", "port: 6380"),
            (UNIT, "/usr/bin/redis-server /etc/quorate", "/usr/bin/redis-server /etc/redis"),
            (UNIT, "StateDirectory=quorate", "StateDirectory=redis"),
        ],
    );
}

// `kubectl` takes names of what is not there, and labels that nothing has.
#[test]
fn what_one_manifest_names_another_has() {
    let claim = |tree: &Tree| {
        let (set, first) = (tree.after(NODES, "\n  name: "), tree.after(NODES, "start: "));
        let service = tree.after(SERVICE, "\n  name: ");
        let namespace = tree.after(KUSTOMIZATION, "\nnamespace: ");
        let made = |kind| tree.after(KUSTOMIZATION, &format!("{kind}:\n  - name: "));
        let client = "quorate-client: \"true\"";
        let wanted = [
            (NODES, 1, "replicas: 5\n".to_owned()),
            (NODES, 1, format!("serviceName: {service}\n")),
            (NODES, 1, format!("configMap: {{ name: {} }}", made("configMapGenerator"))),
            (NODES, 1, format!("secret: {{ name: {} }}", made("secretGenerator"))),
            (
                "deploy/README.md",
                1,
                format!("@{set}-{first}.{service}.{namespace}.svc` to `lock-5`"),
            ),
            ("deploy/README.md", 1, format!("`{client}`")),
            ("deploy/kubernetes/network.yaml", 1, client.to_owned()),
            ("deploy/kubernetes/namespace.yaml", 1, format!("\n  name: {namespace}\n")),
        ];
        stand(tree, &wanted)?;
        // Whatever selects nodes by their label selects them all, and nothing else.
        let label = "app.kubernetes.io/name: ";
        let files = ["disruption", "network", "nodes", "service"];
        let texts = files.map(|name| tree.text(&format!("deploy/kubernetes/{name}.yaml")));
        let values = texts.iter().flat_map(|text| text.split(label).skip(1));
        let values: BTreeSet<_> = values.filter_map(|rest| rest.lines().next()).collect();
        ensure(values.len() == 1, format!("{label}{values:?}"))
    };
    let label = "app.kubernetes.io/name: quorate-node";
    holds(
        claim,
        &[
            (NODES, "start: 1", "start: 0"),
            (NODES, "replicas: 5", "replicas: 3"),
            (NODES, label, "app.kubernetes.io/name: lock"),
            (SERVICE, label, "app.kubernetes.io/name: lock"),
            (SERVICE, "name: locks", "name: nodes"),
            (KUSTOMIZATION, "namespace: quorate", "namespace: locks"),
            (KUSTOMIZATION, "name: lock-users", "name: lock-user"),
            (KUSTOMIZATION, "  - name: lock\n", "  - name: lock-files\n"),
            ("deploy/kubernetes/network.yaml", "quorate-client: \"true\"", "client: \"true\""),
        ],
    );
}

#[test]
fn a_node_gets_twice_the_memory_and_the_files_that_redis_conf_allows_for() {
    let claim = |tree: &Tree| {
        let least = 2 * number(&tree.conf("maxmemory"));
        for (path, before) in [
            (COMPOSE, "\n  mem_limit: "),
            (NODES, "requests: { cpu: \"1\", memory: "),
            (NODES, "limits: { cpu: \"1\", memory: "),
            (UNIT, "MemoryMax="),
        ] {
            let memory = tree.after(path, before);
            ensure(number(&memory) >= least, format!("{path}: {memory} are too few"))?;
        }
        // The server keeps 32 for itself.
        let files = number(&tree.unit("LimitNOFILE"));
        ensure(files >= number(&tree.conf("maxclients")) + 32, format!("{files} files"))
    };
    holds(
        claim,
        &[
            (REDIS, "maxmemory 256mb", "maxmemory 300mb"),
            (REDIS, "maxclients 10000", "maxclients 20000"),
            (COMPOSE, "mem_limit: 512m", "mem_limit: 256m"),
            (NODES, "limits: { cpu: \"1\", memory: 512Mi", "limits: { cpu: \"1\", memory: 256Mi"),
            (UNIT, "MemoryMax=512M", "MemoryMax=256M"),
        ],
    );
}

#[test]
fn a_node_without_its_data_and_the_next_update_wait_longer_than_the_longest_lease() {
    let claim = |tree: &Tree| {
        let longest = number(&tree.after("docs/settings.md", "| `longest_lease` | "));
        let waits = number(&tree.after(UNIT, "WITHOUT_DATA_WAIT="));
        ensure(waits > longest, format!("{waits} s are too short"))?;
        let start = number(&tree.unit("TimeoutStartSec"));
        ensure(start > 2 * waits, format!("{start} s end the wait"))?;
        let in_kubernetes = number(&tree.after(NODES, "|| exec sleep "));
        ensure(in_kubernetes == waits, "it is another wait in Kubernetes")?;
        let ready = number(&tree.after(NODES, "minReadySeconds: "));
        ensure(ready > longest, format!("{ready} s are no more than the longest lease"))
    };
    holds(
        claim,
        &[
            (UNIT, "WITHOUT_DATA_WAIT=31", "WITHOUT_DATA_WAIT=30"),
            (UNIT, "TimeoutStartSec=300", "TimeoutStartSec=30"),
            (NODES, "sleep 31", "sleep 30"),
            (NODES, "minReadySeconds: 35", "minReadySeconds: 30"),
            ("docs/settings.md", "| `longest_lease` | 30 s", "| `longest_lease` | 60 s"),
        ],
    );
}

#[test]
fn images_have_one_version_each_and_it_is_said_in_full() {
    let claim = |tree: &Tree| {
        let texts = [COMPOSE, NODES].map(|path| tree.text(path));
        let images = texts.iter().flat_map(|text| text.split(" image: ").skip(1));
        let images: BTreeSet<_> = images.filter_map(|rest| rest.lines().next()).collect();
        let names: BTreeSet<_> =
            images.iter().filter_map(|image| image.split(':').next()).collect();
        ensure(names.len() == 3 && images.len() == 3, format!("{images:?}"))?;
        for image in images {
            let version = image.split(':').nth(1).unwrap_or_default().trim_start_matches('v');
            let parts = version.split('.').filter(|part| part.parse::<u32>().is_ok()).count();
            ensure(parts == 3, image)?;
        }
        let rust = tree.after("Cargo.toml", "rust-version = \"");
        stand(tree, &[(DOCKERFILE, 1, format!("FROM rust:{rust}-bookworm AS build"))])
    };
    holds(
        claim,
        &[
            (COMPOSE, "image: redis:7.2.11", "image: redis:7.2.10"),
            (NODES, "image: redis:7.2.11", "image: redis:7.4.0"),
            (COMPOSE, "grafana/grafana:12.1.1", "grafana/grafana:latest"),
            (COMPOSE, "prom/prometheus:v3.5.0", "prom/prometheus:v3.5"),
            (DOCKERFILE, "rust:1.", "rust:2."),
        ],
    );
}

// Cargo needs all members of the workspace, and rustc what the sources include.
#[test]
fn the_image_of_the_service_is_built_from_all_that_it_takes() {
    let claim = |tree: &Tree| {
        let dockerfile = tree.text(DOCKERFILE);
        let copies =
            dockerfile.lines().filter_map(|line| line.strip_prefix("COPY ")?.rsplit_once(' '));
        let copied = copies.flat_map(|(sources, _)| sources.split(' '));
        let copied: Vec<_> = copied.filter(|source| !source.starts_with(['-', '/'])).collect();
        let manifest = tree.text("Cargo.toml");
        let members = manifest.split_once("members = [").and_then(|(_, rest)| rest.split_once(']'));
        let members = members.expect("it has members").0.split('"').skip(1).step_by(2);
        let others = ["Cargo.toml", "Cargo.lock", "src", "lua", "docs", "README.md", "examples"];
        for needed in members.chain(others) {
            let is_copied =
                copied.iter().any(|it| needed == *it || needed.starts_with(&format!("{it}/")));
            ensure(is_copied, format!("{needed} is not copied"))?;
        }
        let ignored = tree.text("deploy/compose/Dockerfile.dockerignore");
        for source in copied {
            let is_seen = ignored.lines().filter_map(|line| line.strip_prefix('!'));
            let is_seen =
                is_seen.map(|seen| seen.trim_end_matches('*')).any(|seen| source.starts_with(seen));
            ensure(is_seen && Tree::has(source), format!("the build sees no {source}"))?;
        }
        Ok(())
    };
    holds(
        claim,
        &[
            (DOCKERFILE, "COPY lua lua\n", ""),
            (DOCKERFILE, "COPY benches benches\n", ""),
            (DOCKERFILE, "COPY docs docs", "COPY doc docs"),
            ("deploy/compose/Dockerfile.dockerignore", "!lua\n", ""),
            ("Cargo.toml", "members = [\"benches\"", "members = [\"bench\""),
        ],
    );
}

#[test]
fn what_compose_and_kubernetes_take_from_the_repository_is_there() {
    let claim = |tree: &Tree| {
        let compose = tree.text(COMPOSE);
        let mounted = compose
            .split(['"', ' '])
            .filter_map(|word| word.split_once(":/")?.0.strip_prefix("../"));
        let mounted: BTreeSet<_> = mounted.map(|path| format!("deploy/{path}")).collect();
        ensure(mounted.len() >= 6, format!("only {mounted:?}"))?;
        let rules = tree.after(PROMETHEUS, "rule_files:\n  - ");
        for path in mounted.into_iter().chain([format!("deploy/prometheus/{rules}")]) {
            ensure(Tree::has(&path), format!("there is no {path}"))?;
        }
        let kustomization = tree.text(KUSTOMIZATION);
        let listed = kustomization.lines().filter_map(|line| line.strip_prefix("  - kubernetes/"));
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/kubernetes");
        let there = fs::read_dir(folder).expect("the folder is there");
        let there =
            there.map(|file| file.expect("a file").file_name().into_string().expect("text"));
        let (listed, there): (BTreeSet<_>, BTreeSet<_>) =
            (listed.map(str::to_owned).collect(), there.collect());
        ensure(listed == there, format!("{listed:?} are not {there:?}"))?;
        // The nodes read these files themselves, and not a copy of their text.
        stand(
            tree,
            &[
                (KUSTOMIZATION, 1, "files: [redis.conf]".to_owned()),
                (KUSTOMIZATION, 1, "files: [secrets/users.acl]".to_owned()),
                (KUSTOMIZATION, 1, "files: [password=secrets/quorate.password]".to_owned()),
                (COMPOSE, 1, "- ../redis.conf:/deploy/redis.conf:ro".to_owned()),
                (COMPOSE, 1, "- ../users.acl:/deploy/users.acl:ro".to_owned()),
                // They are made, and belong into no repository.
                (".gitignore", 1, "\nsecrets/\n".to_owned()),
                ("deploy/README.md", 1, "\ndeploy/passwords deploy/secrets\n".to_owned()),
            ],
        )
    };
    holds(
        claim,
        &[
            (COMPOSE, "../passwords:", "../password:"),
            (PROMETHEUS, "quorate.rules.yml", "quorate.rule.yml"),
            (KUSTOMIZATION, "  - kubernetes/network.yaml\n", ""),
            (KUSTOMIZATION, "files: [redis.conf]", "files: [kubernetes/redis.conf]"),
            (KUSTOMIZATION, "files: [secrets/users.acl]", "files: [users.acl]"),
            (".gitignore", "secrets/", "target/"),
        ],
    );
}

#[test]
fn prometheus_and_grafana_look_where_compose_has_put_what_they_watch() {
    let claim = |tree: &Tree| {
        let port = tree.after(COMPOSE, "QUORATE_LISTEN: 0.0.0.0:");
        let prometheus = tree.after(
            COMPOSE,
            "image: prom/prometheus:v3.5.0\n    networks: [watch]\n    ports: [\"127.0.0.1:9090:",
        );
        stand(
            tree,
            &[
                (PROMETHEUS, 1, format!("targets: [service:{port}]")),
                (COMPOSE, 1, format!("[\"127.0.0.1:{port}:{port}\"]")),
                (COMPOSE, 1, format!("/dev/tcp/127.0.0.1/{port} ")),
                (COMPOSE, 1, "\"../prometheus:/etc/prometheus:ro\"".to_owned()),
                (
                    COMPOSE,
                    1,
                    format!("../grafana/dashboards:{}:ro", tree.after(DASHBOARDS, "path: ")),
                ),
                (COMPOSE, 1, "../grafana/provisioning:/etc/grafana/provisioning:ro".to_owned()),
                (
                    "deploy/grafana/provisioning/datasources/prometheus.yaml",
                    1,
                    format!("url: http://prometheus:{prometheus}\n"),
                ),
            ],
        )?;
        let compose = tree.text(COMPOSE);
        let open = compose
            .lines()
            .filter(|line| line.contains(" ports: [") && !line.contains("[\"127.0.0.1:"));
        ensure(open.count() == 0, "other machines reach its ports")
    };
    holds(
        claim,
        &[
            (COMPOSE, "QUORATE_LISTEN: 0.0.0.0:8080", "QUORATE_LISTEN: 0.0.0.0:8081"),
            (COMPOSE, "tcp/127.0.0.1/8080", "tcp/127.0.0.1/8081"),
            (COMPOSE, "../prometheus:/etc/prometheus", "../prometheus:/prometheus"),
            (COMPOSE, "../grafana/provisioning:", "../grafana:"),
            (COMPOSE, "127.0.0.1:9090:9090", "127.0.0.1:9090:9091"),
            (COMPOSE, "127.0.0.1:6383:6379", "6383:6379"),
            (PROMETHEUS, "service:8080", "services:8080"),
            (DASHBOARDS, "/var/lib/grafana/dashboards", "/dashboards"),
        ],
    );
}

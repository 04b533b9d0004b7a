//! The manifests for Kubernetes agree with each other and with the rest of the repository.

use serde_json::Value;

use crate::{
    compose,
    tree::{Finding, Tree, at, bytes, ensure, holds, list_at, number_at, same, text_at},
};

pub(crate) const NODES: &str = "deploy/kubernetes/nodes.yaml";
const SERVICE: &str = "deploy/kubernetes/service.yaml";
const DISRUPTION: &str = "deploy/kubernetes/disruption.yaml";
const NETWORK: &str = "deploy/kubernetes/network.yaml";
const KUSTOMIZATION: &str = "deploy/kustomization.yaml";

const POD: &str = "/spec/template/spec";
const NODE: &str = "/spec/template/spec/containers/0";

/// What leads from a pod to a part of it, or of its first container.
fn in_pod<'a>(nodes: &'a Value, rest: &str) -> &'a Value {
    at(nodes, &format!("{POD}{rest}"))
}

pub(crate) fn in_node<'a>(nodes: &'a Value, rest: &str) -> &'a Value {
    at(nodes, &format!("{NODE}{rest}"))
}

#[test]
fn its_nodes_have_the_names_ports_and_files_of_all_others() {
    let claim = |tree: &Tree| -> Finding {
        let nodes = tree.yaml(NODES);
        let first = number_at(&nodes, "/spec/ordinals/start");
        let set = text_at(&nodes, "/metadata/name");
        let last = first + number_at(&nodes, "/spec/replicas");
        let names: Vec<_> = (first..last).map(|number| format!("{set}-{number}")).collect();
        let compose = tree.yaml(compose::FILE);
        let others: Vec<_> = compose::nodes(&compose).into_iter().map(|(name, _)| name).collect();
        same("nodes", names, others.into_iter().map(str::to_owned).collect())?;

        let (service, kustomization) = (tree.yaml(SERVICE), tree.yaml(KUSTOMIZATION));
        let (service, namespace) =
            (text_at(&service, "/metadata/name"), text_at(&kustomization, "/namespace"));
        let address = format!("{set}-{first}.{service}.{namespace}.svc");
        let told = tree.text("deploy/README.md").contains(&format!("@{address}`"));
        ensure(told, format!("deploy/README.md does not tell {address}"))?;

        let users = tree.conf("aclfile");
        let folder = users.strip_suffix("/users.acl").ok_or("the users' file has another name")?;
        let command = list_at(in_node(&nodes, ""), "/command");
        same("command", &command[..2], &["redis-server".into(), format!("{folder}/redis.conf")])?;
        let mounts = at(in_node(&nodes, ""), "/volumeMounts");
        same("configuration", text_at(mounts, "/0/mountPath"), folder)?;
        same("data", text_at(mounts, "/1/mountPath"), &tree.conf("dir"))?;
        let claim = text_at(&nodes, "/spec/volumeClaimTemplates/0/metadata/name");
        same("data", text_at(mounts, "/1/name"), claim)?;
        let volume = in_pod(&nodes, "/volumes/0");
        same("configuration", text_at(mounts, "/0/name"), text_at(volume, "/name"))?;

        let port = in_node(&nodes, "/ports/0");
        same("port", number_at(port, "/containerPort").to_string(), tree.conf("port"))?;
        let service = tree.yaml(SERVICE);
        same("port", number_at(&service, "/spec/ports/0/port").to_string(), tree.conf("port"))?;
        let named = text_at(port, "/name");
        same("port of the service", text_at(&service, "/spec/ports/0/targetPort"), named)?;
        let network = tree.yaml(NETWORK);
        same("port of the policy", text_at(&network, "/spec/ingress/0/ports/0/port"), named)
    };
    holds(
        claim,
        &[
            (NODES, "start: 1", "start: 0"),
            (NODES, "replicas: 5", "replicas: 3"),
            (NODES, "redis-server, /etc/quorate/", "redis-server, /etc/redis/"),
            (
                NODES,
                "name: configuration, mountPath: /etc/quorate",
                "name: configuration, mountPath: /etc",
            ),
            (NODES, "name: data, mountPath: /var/lib/quorate }", "name: data, mountPath: /data }"),
            (NODES, "        name: data", "        name: volume"),
            (NODES, "containerPort: 6379", "containerPort: 6380"),
            (SERVICE, "port: 6379", "port: 6380"),
            (SERVICE, "name: locks", "name: nodes"),
            (KUSTOMIZATION, "namespace: quorate", "namespace: locks"),
            (SERVICE, "targetPort: redis", "targetPort: node"),
            (NETWORK, "port: redis", "port: node"),
        ],
    );
}

#[test]
fn whatever_selects_nodes_selects_exactly_their_pods() {
    let claim = |tree: &Tree| -> Finding {
        let nodes = tree.yaml(NODES);
        let labels = at(&nodes, "/spec/template/metadata/labels");
        ensure(labels.is_object(), "pods have no labels")?;
        let affinity = in_pod(&nodes, "/affinity/podAntiAffinity");
        let required = at(affinity, "/requiredDuringSchedulingIgnoredDuringExecution/0");
        let preferred =
            at(affinity, "/preferredDuringSchedulingIgnoredDuringExecution/0/podAffinityTerm");
        same("hosts", text_at(required, "/topologyKey"), "kubernetes.io/hostname")?;
        same("zones", text_at(preferred, "/topologyKey"), "topology.kubernetes.io/zone")?;
        for (what, found) in [
            ("the set", at(&nodes, "/spec/selector/matchLabels")),
            ("one host", at(required, "/labelSelector/matchLabels")),
            ("one zone", at(preferred, "/labelSelector/matchLabels")),
            ("the service", at(&tree.yaml(SERVICE), "/spec/selector")),
            ("the budget", at(&tree.yaml(DISRUPTION), "/spec/selector/matchLabels")),
            ("the policy", at(&tree.yaml(NETWORK), "/spec/podSelector/matchLabels")),
        ] {
            same(what, found, labels)?;
        }
        let service = tree.yaml(SERVICE);
        let name = text_at(&service, "/metadata/name");
        same("the name of the service", text_at(&nodes, "/spec/serviceName"), name)?;
        same("a name for each node", text_at(&service, "/spec/clusterIP"), "None")
    };
    let label = "app.kubernetes.io/name: quorate-node";
    let other = "app.kubernetes.io/name: lock";
    holds(
        claim,
        &[
            (NODES, label, other),
            (SERVICE, label, other),
            (DISRUPTION, label, other),
            (NETWORK, label, other),
            (NODES, "serviceName: locks", "serviceName: lock"),
            (SERVICE, "clusterIP: None", "clusterIP: 10.0.0.1"),
            (NODES, "topologyKey: kubernetes.io/hostname", "topologyKey: kubernetes.io/os"),
        ],
    );
}

#[test]
fn no_update_and_no_drain_leaves_two_nodes_out_at_once() {
    let claim = |tree: &Tree| -> Finding {
        let nodes = tree.yaml(NODES);
        let ready = number_at(&nodes, "/spec/minReadySeconds");
        let longest = tree.longest_lease();
        ensure(ready > longest, format!("{ready} s are no more than the longest lease"))?;
        same("updates", text_at(&nodes, "/spec/updateStrategy/type"), "RollingUpdate")?;
        let at_once = at(&nodes, "/spec/updateStrategy/rollingUpdate/maxUnavailable");
        ensure(at_once.is_null(), "one by one is what is done where nothing is said")?;
        same("drained", number_at(&tree.yaml(DISRUPTION), "/spec/maxUnavailable"), 1)
    };
    holds(
        claim,
        &[
            (NODES, "minReadySeconds: 35", "minReadySeconds: 30"),
            (NODES, "type: RollingUpdate", "type: OnDelete"),
            (DISRUPTION, "maxUnavailable: 1", "maxUnavailable: 2"),
            ("README.md", "| `longest_lease` | 30 s", "| `longest_lease` | 60 s"),
        ],
    );
}

#[test]
fn a_node_gets_the_memory_that_it_asks_for_and_it_is_enough() {
    let claim = |tree: &Tree| -> Finding {
        let nodes = tree.yaml(NODES);
        let resources = in_node(&nodes, "/resources");
        same("resources", at(resources, "/requests"), at(resources, "/limits"))?;
        let memory = bytes(text_at(resources, "/limits/memory"));
        ensure(memory >= 2 * bytes(&tree.conf("maxmemory")), format!("{memory} bytes are too few"))
    };
    let limits = "limits: { cpu: \"1\", memory: 512Mi }";
    holds(
        claim,
        &[
            (NODES, limits, "limits: { cpu: \"1\", memory: 1Gi }"),
            ("deploy/redis.conf", "maxmemory 256mb", "maxmemory 1gb"),
        ],
    );
}

#[test]
fn a_node_may_do_nothing_that_it_does_not_need() {
    let claim = |tree: &Tree| -> Finding {
        let nodes = tree.yaml(NODES);
        ensure(in_pod(&nodes, "/securityContext/runAsNonRoot") == true, "it may be root")?;
        same(
            "profile",
            text_at(in_pod(&nodes, "/securityContext/seccompProfile"), "/type"),
            "RuntimeDefault",
        )?;
        for container in ["/initContainers/0", "/containers/0"] {
            let may = in_pod(&nodes, &format!("{container}/securityContext"));
            ensure(at(may, "/allowPrivilegeEscalation") == false, "it may become somebody else")?;
            ensure(at(may, "/readOnlyRootFilesystem") == true, "it may write anywhere")?;
            same("capabilities", list_at(may, "/capabilities/drop"), vec!["ALL".to_owned()])?;
        }
        ensure(in_pod(&nodes, "/automountServiceAccountToken") == false, "it has a token")?;
        let network = tree.yaml(NETWORK);
        let policies = list_at(&network, "/spec/policyTypes");
        same("policies", policies, vec!["Ingress".to_owned(), "Egress".to_owned()])?;
        same("asks nobody", at(&network, "/spec/egress").as_array().map(Vec::len), Some(0))?;
        let from = at(&network, "/spec/ingress/0/from/0/podSelector/matchLabels");
        let readme = tree.text("deploy/README.md");
        let told = from
            .as_object()
            .into_iter()
            .flatten()
            .all(|(label, value)| readme.contains(&format!("`{label}: {value}`")));
        ensure(from.is_object() && told, format!("deploy/README.md does not tell {from}"))
    };
    holds(
        claim,
        &[
            (NODES, "runAsNonRoot: true", "runAsNonRoot: false"),
            (NODES, "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false"),
            (NODES, "drop: [ALL]", "drop: [CHOWN]"),
            (NODES, "automountServiceAccountToken: false", "automountServiceAccountToken: true"),
            (NETWORK, "policyTypes: [Ingress, Egress]", "policyTypes: [Ingress]"),
            (NETWORK, "egress: []", "egress: [{}]"),
            (NETWORK, "quorate-client: \"true\"", "client: \"true\""),
        ],
    );
}

// kubectl itself is not asked: it is not everywhere where the tests run.
#[test]
fn the_kustomization_has_every_manifest_and_makes_what_the_nodes_mount() {
    let claim = |tree: &Tree| -> Finding {
        let kustomization = tree.yaml(KUSTOMIZATION);
        let mut listed = list_at(&kustomization, "/resources");
        listed.sort();
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/kubernetes");
        let files = std::fs::read_dir(folder).expect("the folder is there");
        let name = |file: std::fs::DirEntry| file.file_name().into_string().expect("text");
        let mut there: Vec<_> =
            files.map(|file| format!("kubernetes/{}", name(file.expect("a file")))).collect();
        there.sort();
        same("manifests", listed, there)?;
        let namespace = tree.yaml("deploy/kubernetes/namespace.yaml");
        let named = text_at(&namespace, "/metadata/name");
        same("namespace", text_at(&kustomization, "/namespace"), named)?;

        let nodes = tree.yaml(NODES);
        let sources = in_pod(&nodes, "/volumes/0/projected/sources");
        let (files, users) =
            (at(&kustomization, "/configMapGenerator/0"), at(&kustomization, "/secretGenerator/0"));
        same("configuration", text_at(sources, "/0/configMap/name"), text_at(files, "/name"))?;
        same("users", text_at(sources, "/1/secret/name"), text_at(users, "/name"))?;
        same("configuration", list_at(files, "/files"), vec!["redis.conf".to_owned()])?;
        same("users", list_at(users, "/files"), vec!["secrets/users.acl".to_owned()])?;
        let services = at(&kustomization, "/secretGenerator/1");
        let password = vec!["password=secrets/quorate.password".to_owned()];
        same("password", list_at(services, "/files"), password)?;
        // They are made, and belong into no repository.
        ensure(tree.text(".gitignore").contains("\nsecrets/\n"), "secrets could be committed")?;
        let made = tree.text("deploy/README.md").contains("\ndeploy/passwords deploy/secrets\n");
        ensure(made, "deploy/README.md does not say how to make them")
    };
    holds(
        claim,
        &[
            (KUSTOMIZATION, "  - kubernetes/network.yaml\n", ""),
            (KUSTOMIZATION, "namespace: quorate", "namespace: locks"),
            (KUSTOMIZATION, "name: lock-users", "name: lock-user"),
            (KUSTOMIZATION, "  - name: lock\n", "  - name: lock-files\n"),
            (KUSTOMIZATION, "files: [redis.conf]", "files: [kubernetes/redis.conf]"),
            (KUSTOMIZATION, "files: [secrets/users.acl]", "files: [users.acl]"),
            (".gitignore", "secrets/", "target/"),
        ],
    );
}

#[test]
fn only_a_node_that_says_nothing_for_long_is_killed() {
    let claim = |tree: &Tree| -> Finding {
        let nodes = tree.yaml(NODES);
        let patience = |probe: &str| {
            let probe = in_node(&nodes, &format!("/{probe}"));
            number_at(probe, "/periodSeconds") * number_at(probe, "/failureThreshold")
        };
        ensure(patience("startupProbe") >= 300, "a long file is not loaded to its end")?;
        ensure(patience("livenessProbe") >= 120, "a slow disk is taken for a dead node")?;
        ensure(patience("readinessProbe") <= 30, "a node that is away is said to be there")
    };
    holds(
        claim,
        &[
            (NODES, "failureThreshold: 150", "failureThreshold: 15"),
            (NODES, "failureThreshold: 12", "failureThreshold: 3"),
            (NODES, "periodSeconds: 5\n", "periodSeconds: 50\n"),
        ],
    );
}

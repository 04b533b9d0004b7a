//! Addresses that name sentinels: several hosts, which `url` does not read.

use url::Url;

use super::parts::{Login, database, decode, host_and_port, login};

/// What stands in such an address.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// `None` until all of them were read: what stands there may not be what it was meant to be.
    pub(super) hosts: Option<Vec<(String, u16)>>,
    pub(super) service: String,
    pub(super) database: u8,
    /// For the servers.
    pub(super) login: Login,
    /// For the sentinels.
    pub(super) sentinel_login: Login,
}

const USUAL_PORT: u16 = 26379;

impl Parts {
    /// Reads what follows `redis-sentinel://`. Where it fails, what was read by then may be shown.
    pub(super) fn read(&mut self, text: &str) -> Result<(), &'static str> {
        if text.contains('#') {
            return Err("has a `#`; in a password it is written %23");
        }
        let (text, query) = text.split_once('?').map_or((text, None), |(a, b)| (a, Some(b)));
        let (authority, path) = text.split_once('/').unwrap_or((text, ""));
        // Credentials end at the first `@`: whatever is behind it must not have another.
        let (user, hosts) = authority
            .split_once('@')
            .map_or((None, authority), |(user, hosts)| (Some(user), hosts));
        if hosts.contains('@')
            || path.contains('@')
            || query.is_some_and(|query| query.contains('@'))
        {
            return Err("has an `@` too many; in a password it is written %40");
        }
        self.hosts = Some(hosts.split(',').map(host).collect::<Result<Vec<_>, _>>()?);
        self.check_twins()?;
        if let Some(user) = user {
            let url = Url::parse(&format!("redis://{user}@host"));
            self.login = login(&url.map_err(|_| "has credentials that cannot be read")?)?;
        }
        self.path(path)?;
        query.map_or(Ok(()), |query| self.query(query))
    }

    fn check_twins(&self) -> Result<(), &'static str> {
        let hosts = self.hosts.as_deref().unwrap_or_default();
        let twice = |at: usize| hosts[..at].contains(&hosts[at]);
        if (0..hosts.len()).any(twice) {
            return Err("names a sentinel twice, and each has one voice");
        }
        Ok(())
    }

    fn path(&mut self, path: &str) -> Result<(), &'static str> {
        let (service, number) = path.split_once('/').unwrap_or((path, ""));
        if service.is_empty() {
            return Err("has no service: `/name` behind the sentinels");
        }
        // What sentinels allow.
        if !service.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte)) {
            return Err("has a service with characters other than letters, digits and `.-_`");
        }
        service.clone_into(&mut self.service);
        self.database = database(number)?;
        Ok(())
    }

    fn query(&mut self, query: &str) -> Result<(), &'static str> {
        let (user, password) = &mut self.sentinel_login;
        for pair in query.split('&') {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let place = match name {
                "sentinel_user" => &mut *user,
                "sentinel_password" => &mut *password,
                _ => return Err("has a parameter other than `sentinel_user`, `sentinel_password`"),
            };
            let value = decode(value).filter(|value| !value.is_empty());
            let value =
                value.ok_or("has a parameter that is empty or not percent-encoded UTF-8")?;
            if place.replace(value).is_some() {
                return Err("has a parameter twice");
            }
        }
        if user.is_some() && password.is_none() {
            return Err("has a `sentinel_user` without a `sentinel_password`");
        }
        Ok(())
    }

    /// `host:port,host:port`, where the hosts are known to be such.
    pub(super) fn listed(&self) -> Option<String> {
        let hosts = self.hosts.as_deref()?;
        let names: Vec<_> = hosts.iter().map(|(host, port)| format!("{host}:{port}")).collect();
        Some(names.join(","))
    }
}

fn host(text: &str) -> Result<(String, u16), &'static str> {
    let url =
        Url::parse(&format!("redis://{text}")).map_err(|_| "has a host that cannot be read")?;
    host_and_port(&url, USUAL_PORT)
}

//! Which voters, and how they are reached: the options that subcommands share.

use std::path::PathBuf;

use clap::Args;

use crate::{
    config_file,
    exit::{Code, Failure},
    setup::{Layer, Setup},
};

/// What each subcommand that talks to voters takes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Voters")]
pub(crate) struct VoterOptions {
    /// The address of a server, such as redis://10.0.0.1; once for each
    ///
    /// Addresses with a password do not belong here, where others see them in the list of
    /// processes.
    #[arg(long, value_name = "ADDRESS")]
    voter: Vec<String>,

    /// The address of a server of a Redis Cluster; several where one may be down
    #[arg(long, value_name = "ADDRESS")]
    cluster: Vec<String>,

    /// How many voters the cluster has
    #[arg(long, value_name = "N", requires = "cluster")]
    cluster_voters: Option<u16>,

    /// An old server, while --voter names the new ones; once for each
    #[arg(long, value_name = "ADDRESS")]
    replaced_voter: Vec<String>,

    /// The user that logs in to the servers
    #[arg(long, value_name = "NAME")]
    user: Option<String>,

    /// The file that has the password
    #[arg(long, value_name = "FILE", conflicts_with = "ask_password")]
    password_file: Option<PathBuf>,

    /// Ask for the password on the terminal
    #[arg(long)]
    ask_password: bool,

    /// The file that has the settings [default: quorate/config.toml in the XDG folders]
    ///
    /// Its keys are the variables of the environment without QUORATE_, in small letters: voters,
    /// cluster, user, password_file, lease and so on. The command line goes before the
    /// environment, and the environment before the file.
    #[arg(long, value_name = "FILE", env = "QUORATE_CONFIG")]
    config: Option<PathBuf>,
}

impl VoterOptions {
    /// All settings: of the file, the environment, and these options.
    pub(crate) fn setup(&self) -> Result<Setup, Failure> {
        let mut setup = Setup::default();
        if let Some(path) = self.config.clone().or_else(config_file::usual) {
            setup.put_on(config_file::read(&path)?);
        }
        setup.put_on(Layer::environment());
        setup.put_on(self.layer()?);
        Ok(setup)
    }

    fn layer(&self) -> Result<Layer, Failure> {
        if let Some(place) = self
            .voter
            .iter()
            .chain(&self.cluster)
            .chain(&self.replaced_voter)
            .position(|at| has_secret(at))
        {
            let what = format!(
                "address {} of the command line has a password, which others can see in the list \
                 of processes: use --password-file, --ask-password, QUORATE_VOTERS or the file",
                place + 1
            );
            return Err(Failure::new(Code::Usage, what));
        }
        let mut layer = Layer::command_line();
        for (name, addresses) in [
            ("voters", &self.voter),
            ("cluster", &self.cluster),
            ("replaced_voters", &self.replaced_voter),
        ] {
            if !addresses.is_empty() {
                layer.set(name, addresses.join(" "));
            }
        }
        if let Some(voters) = self.cluster_voters {
            layer.set("cluster_voters", voters.to_string());
        }
        if let Some(user) = &self.user {
            layer.set("user", user);
        }
        if let Some(file) = &self.password_file {
            layer.set("password_file", file);
        }
        if self.ask_password {
            let password = rpassword::prompt_password("Password: ").map_err(|cause| {
                Failure::new(Code::System, format!("the password cannot be asked for: {cause}"))
            })?;
            layer.set("password", password);
        }
        Ok(layer)
    }
}

/// Whether an address has a password, also one that cannot be used otherwise.
fn has_secret(address: &str) -> bool {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let login = rest.rsplit_once('@').map(|(login, _)| login);
    login.is_some_and(|login| login.contains(':')) || rest.contains("password=")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_in_an_address_is_seen() {
        for secret in [
            "redis://user:secret@10.0.0.1",
            "redis://:secret@10.0.0.1:7000/2",
            "redis://:se/cr@et@10.0.0.1",
            "user:secret@10.0.0.1",
            "redis-sentinel://10.0.0.1/main?sentinel_password=secret",
        ] {
            assert!(has_secret(secret), "{secret}");
        }
        for open in [
            "redis://10.0.0.1:7000/2",
            "redis://user@10.0.0.1:7000",
            "redis-sentinel://10.0.0.1:1,10.0.0.2:2/main",
            "redis+unix:///run/redis.socket?db=1",
            "redis://[::1]:7000",
        ] {
            assert!(!has_secret(open), "{open}");
        }
    }
}

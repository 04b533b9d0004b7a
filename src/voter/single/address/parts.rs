//! The parts that addresses of all kinds have.

use url::Url;

/// User and password, each where there is one.
pub(super) type Login = (Option<String>, Option<String>);

pub(super) fn login(url: &Url) -> Result<Login, &'static str> {
    let decoded =
        |text: &str| decode(text).ok_or("has credentials that are not percent-encoded UTF-8");
    let username = Some(decoded(url.username())?).filter(|name| !name.is_empty());
    let password = decoded(url.password().unwrap_or_default())?;
    let password = Some(password).filter(|password| !password.is_empty());
    if username.is_some() && password.is_none() {
        return Err("has a user without a password (`user:password@`, or `:password@`)");
    }
    Ok((username, password))
}

pub(super) fn host_and_port(url: &Url, usual_port: u16) -> Result<(String, u16), &'static str> {
    let host = url.host_str().filter(|host| !host.is_empty()).ok_or("has no host")?;
    match url.port().unwrap_or(usual_port) {
        0 => Err("has port 0"),
        port => Ok((host.to_owned(), port)),
    }
}

pub(super) fn database(text: &str) -> Result<u8, &'static str> {
    if text.is_empty() {
        return Ok(0);
    }
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = if digits { text.parse().ok() } else { None };
    number.ok_or("has a database that is no number from 0 to 255")
}

/// Undoes percent-encoding; `None` where it is broken or not UTF-8.
pub(super) fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        rest = tail;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let (digits, tail) = rest.split_at_checked(2)?;
        let digits = std::str::from_utf8(digits).ok().filter(|text| !text.starts_with('+'))?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = tail;
    }
    String::from_utf8(bytes).ok()
}

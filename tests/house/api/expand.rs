//! Items that a macro of the library makes, for example the methods of all guards.

use std::collections::BTreeMap;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use syn::Item;

/// Those that make nothing that users see.
const PRIVATE: [&str; 1] = ["thread_local"];

/// The macros of the library, by name.
pub(crate) struct Macros(BTreeMap<String, TokenStream>);

impl Macros {
    pub(crate) fn of<'a>(items: impl Iterator<Item = &'a Item>) -> Self {
        let macros = items.filter_map(|item| {
            let Item::Macro(rules) = item else { return None };
            Some((rules.ident.as_ref()?.to_string(), rules.mac.tokens.clone()))
        });
        Self(macros.collect())
    }

    /// The items that stand for this one: itself, or those that its macro makes.
    pub(crate) fn expanded(&self, item: Item) -> Vec<Item> {
        let Item::Macro(call) = &item else { return vec![item] };
        // A definition.
        if call.ident.is_some() {
            return vec![item];
        }
        let name = call.mac.path.segments.last().expect("a path has a name").ident.to_string();
        if PRIVATE.contains(&&*name) {
            return Vec::new();
        }
        let rules = self.0.get(&name);
        let rules =
            rules.unwrap_or_else(|| panic!("the macro `{name}!` is not one of the library"));
        let tokens = expand(&name, rules.clone(), call.mac.tokens.clone());
        let file = syn::parse2::<syn::File>(tokens);
        file.unwrap_or_else(|error| panic!("{name}!: {error}")).items
    }
}

/// By the first rule, whose parameters are separated by commas. Attributes are left out.
fn expand(name: &str, rules: TokenStream, call: TokenStream) -> TokenStream {
    let mut groups = rules.into_iter().filter_map(|token| match token {
        TokenTree::Group(group) => Some(group.stream()),
        _ => None,
    });
    let mut next = || groups.next().unwrap_or_else(|| panic!("`{name}!` has no rule"));
    let (pattern, body) = (next(), next());
    let (names, values) = (parameters(pattern), arguments(call));
    assert_eq!(names.len(), values.len(), "`{name}!` is called with other arguments");
    substitute(body, &names.into_iter().zip(values).collect())
}

/// The names behind `$`, without those in a repetition.
fn parameters(pattern: TokenStream) -> Vec<String> {
    let tokens: Vec<_> = pattern.into_iter().collect();
    let named = tokens.windows(2).filter_map(|pair| match pair {
        [TokenTree::Punct(sign), TokenTree::Ident(name)] if sign.as_char() == '$' => {
            Some(name.to_string())
        }
        _ => None,
    });
    named.collect()
}

fn arguments(call: TokenStream) -> Vec<TokenStream> {
    let mut arguments = vec![TokenStream::new()];
    let mut tokens = call.into_iter();
    while let Some(token) = tokens.next() {
        match &token {
            TokenTree::Punct(sign) if sign.as_char() == '#' => drop(tokens.next()),
            TokenTree::Punct(sign) if sign.as_char() == ',' => arguments.push(TokenStream::new()),
            _ => arguments.last_mut().expect("there is one").extend([token]),
        }
    }
    arguments
}

fn substitute(body: TokenStream, values: &BTreeMap<String, TokenStream>) -> TokenStream {
    let mut made = TokenStream::new();
    let mut tokens = body.into_iter();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(sign) if sign.as_char() == '$' => match tokens.next() {
                Some(TokenTree::Ident(name)) if name == "crate" => {
                    made.extend([TokenTree::Ident(name)]);
                }
                Some(TokenTree::Ident(name)) => {
                    let value = values.get(&name.to_string());
                    made.extend(value.unwrap_or_else(|| panic!("`${name}` is unknown")).clone());
                }
                // A repetition, and its sign.
                Some(TokenTree::Group(group)) => {
                    assert_eq!(group.delimiter(), Delimiter::Parenthesis);
                    drop(tokens.next());
                }
                other => panic!("behind `$` stands {other:?}"),
            },
            TokenTree::Group(group) => {
                let inside = substitute(group.stream(), values);
                made.extend([TokenTree::Group(Group::new(group.delimiter(), inside))]);
            }
            other => made.extend([other]),
        }
    }
    made
}

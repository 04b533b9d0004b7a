//! The modules of the library, as `syn` reads them from a tree of files.

use std::collections::BTreeMap;

use quote::ToTokens;
use syn::{Attribute, Item};

use super::expand::Macros;

/// A module's path below the root of the library, which is empty.
pub(crate) type Path = Vec<String>;

pub(crate) struct Module {
    pub(crate) items: Vec<Item>,
    /// The features without which it is not compiled.
    pub(crate) features: Vec<String>,
}

pub(crate) struct Source {
    pub(crate) modules: BTreeMap<Path, Module>,
}

impl Source {
    /// Reads `src/lib.rs`, and from there every module that is not for tests only.
    pub(crate) fn read(files: &BTreeMap<String, String>) -> Self {
        let mut source = Self { modules: BTreeMap::new() };
        source.read_file(files, Vec::new(), Vec::new());
        let macros = Macros::of(source.modules.values().flat_map(|module| &module.items));
        for module in source.modules.values_mut() {
            let items = std::mem::take(&mut module.items);
            module.items = items.into_iter().flat_map(|item| macros.expanded(item)).collect();
        }
        source
    }

    fn read_file(&mut self, files: &BTreeMap<String, String>, path: Path, features: Vec<String>) {
        let text = [format!("src/{}.rs", path.join("/")), format!("src/{}/mod.rs", path.join("/"))];
        let text = if path.is_empty() { ["src/lib.rs".into(), String::new()] } else { text };
        let text = text.iter().find_map(|name| files.get(name));
        let text = text.unwrap_or_else(|| panic!("the module `{}` has no file", path.join("::")));
        let parsed = syn::parse_file(text);
        let parsed = parsed.unwrap_or_else(|error| panic!("{}: {error}", path.join("::")));
        self.add(files, path, features, parsed.items);
    }

    fn add(
        &mut self,
        files: &BTreeMap<String, String>,
        path: Path,
        features: Vec<String>,
        mut items: Vec<Item>,
    ) {
        items.retain(|item| !is_for_tests(attributes(item)));
        for item in &mut items {
            let Item::Mod(module) = item else { continue };
            let child = [&path[..], &[module.ident.to_string()]].concat();
            let needed = [&features[..], &features_of(&module.attrs)].concat();
            match module.content.take() {
                Some((_, inside)) => self.add(files, child, needed, inside),
                None => self.read_file(files, child, needed),
            }
        }
        self.modules.insert(path, Module { items, features });
    }
}

pub(crate) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        other => panic!("the list of the API does not know: {}", other.to_token_stream()),
    }
}

/// What stands in the parentheses of each attribute of this name, without blanks.
fn arguments<'a>(attrs: &'a [Attribute], name: &'a str) -> impl Iterator<Item = String> + 'a {
    let named = attrs.iter().filter(move |attr| attr.path().is_ident(name));
    let lists = named.filter_map(|attr| attr.meta.require_list().ok());
    lists.map(|list| list.tokens.to_string().replace(' ', ""))
}

pub(crate) fn is_for_tests(attrs: &[Attribute]) -> bool {
    arguments(attrs, "cfg").any(|condition| condition == "test" || condition == "doctest")
}

pub(crate) fn features_of(attrs: &[Attribute]) -> Vec<String> {
    let features = arguments(attrs, "cfg")
        .filter_map(|condition| Some(condition.strip_prefix("feature=")?.replace('"', "")));
    features.collect()
}

pub(crate) fn has(attrs: &[Attribute], name: &str) -> bool {
    attrs.iter().any(|attr| attr.path().is_ident(name))
}

/// The traits that it derives, each by its last name.
pub(crate) fn derived(attrs: &[Attribute]) -> Vec<String> {
    let under_a_condition = arguments(attrs, "cfg_attr")
        .filter_map(|list| Some(list.split_once("derive(")?.1.split_once(')')?.0.to_owned()));
    let lists = arguments(attrs, "derive").chain(under_a_condition);
    let traits = lists.flat_map(|list| list.split(',').map(str::to_owned).collect::<Vec<_>>());
    let last = |path: String| path.rsplit("::").next().unwrap_or_default().to_owned();
    traits.map(last).filter(|name| !name.is_empty()).collect()
}

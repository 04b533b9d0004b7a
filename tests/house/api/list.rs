//! What users of the library can name, one line each.

use std::collections::{BTreeMap, BTreeSet};

use quote::ToTokens;
use syn::{Item, UseTree, Visibility};

use super::{
    shown::{Shown, header, implementation, implementor, shown},
    source::{Path, Source, attributes, features_of, has},
};

/// The whole list, sorted.
pub(crate) fn list(source: &Source) -> String {
    let mut list = List { source, lines: BTreeSet::new(), types: BTreeMap::new() };
    list.module("quorate", &[], &[]);
    list.implementations();
    list.lines.into_iter().map(|line| line + "\n").collect()
}

struct List<'a> {
    source: &'a Source,
    lines: BTreeSet<String>,
    /// The public types and traits, by name (no two have the same), with the paths that they have.
    types: BTreeMap<String, Vec<String>>,
}

/// What a path leads to.
enum Found<'a> {
    Module(Path),
    Item(&'a Item, Path),
}

/// A name that a `use` brings into its module.
struct Brought {
    name: String,
    path: Path,
}

impl<'a> List<'a> {
    fn module(&mut self, path: &str, module: &[String], features: &[String]) {
        let of_module = &self.source.modules[module];
        let features = &with(features, &of_module.features)[..];
        self.line(format!("mod {path}"), features);
        for item in &of_module.items {
            let features = with(features, &features_of(attributes(item)));
            match item {
                Item::Use(item) if is_public(&item.vis) => {
                    for Brought { name, path: target } in brought(&item.tree) {
                        self.reexport(&format!("{path}::{name}"), module, &target, &features);
                    }
                }
                Item::Mod(item) if is_public(&item.vis) => {
                    let name = item.ident.to_string();
                    let child = [module, std::slice::from_ref(&name)].concat();
                    self.module(&format!("{path}::{name}"), &child, &features);
                }
                item => {
                    if let Some(name) = name_if_public(item) {
                        self.item(&format!("{path}::{name}"), item, &features);
                    }
                }
            }
        }
    }

    fn reexport(&mut self, shown: &str, module: &[String], target: &[String], features: &[String]) {
        match self.find(module, target) {
            Some(Found::Module(module)) => self.module(shown, &module, features),
            Some(Found::Item(item, home)) => {
                let features = with(features, &self.source.modules[&home].features);
                self.item(shown, item, &with(&features, &features_of(attributes(item))));
            }
            None => self.line(format!("use {shown} = {}", target.join("::")), features),
        }
    }

    fn item(&mut self, path: &str, item: &Item, features: &[String]) {
        let Shown { is_type, lines } = shown(path, item);
        for line in lines {
            self.line(line, features);
        }
        // By the name that it has in `src/`: implementations use that.
        if let Some(name) = name_of(item).filter(|_| is_type) {
            self.types.entry(name).or_default().push(path.to_owned());
        }
    }

    /// Inherent `impl` blocks and those of public traits, in any file.
    fn implementations(&mut self) {
        let private = self.private_types();
        let source = self.source;
        for module in source.modules.values() {
            for item in &module.items {
                let Item::Impl(item) = item else { continue };
                let header = header(item);
                let words: Vec<&str> = header.split(|sign: char| !in_word(sign)).collect();
                // Whoever has to name a private type or trait cannot use it.
                if words.iter().any(|word| private.contains(*word)) {
                    continue;
                }
                let own = implementor(item).and_then(|name| self.types.get(&name)).cloned();
                let features = with(&module.features, &features_of(&item.attrs));
                for line in own.iter().flatten().flat_map(|path| implementation(path, item)) {
                    self.line(line, &features);
                }
                // `impl From<Token> for u64`
                if own.is_none() && words.iter().any(|word| self.types.contains_key(*word)) {
                    self.line(format!("impl {header}"), &features);
                }
            }
        }
    }

    fn private_types(&self) -> BTreeSet<String> {
        let items = self.source.modules.values().flat_map(|module| &module.items);
        let types = items.filter_map(|item| match item {
            Item::Struct(item) => Some(item.ident.to_string()),
            Item::Enum(item) => Some(item.ident.to_string()),
            Item::Trait(item) => Some(item.ident.to_string()),
            Item::Type(item) => Some(item.ident.to_string()),
            _ => None,
        });
        types.filter(|name| !self.types.contains_key(name)).collect()
    }

    fn line(&mut self, line: String, features: &[String]) {
        let features: Vec<_> = features.iter().map(|name| format!(" [{name}]")).collect();
        self.lines.insert(line + &features.concat());
    }

    fn find(&self, module: &[String], path: &[String]) -> Option<Found<'a>> {
        let (first, rest) = path.split_first().expect("a path has a name");
        match &**first {
            "crate" => return self.find(&[], rest),
            "self" => return self.find(module, rest),
            "super" => return self.find(&module[..module.len() - 1], rest),
            _ => {}
        }
        let child = [module, std::slice::from_ref(first)].concat();
        if self.source.modules.contains_key(&child) {
            return if rest.is_empty() {
                Some(Found::Module(child))
            } else {
                self.find(&child, rest)
            };
        }
        let items = &self.source.modules[module].items;
        if let Some(item) = items.iter().find(|item| name_of(item).is_some_and(|it| it == *first)) {
            return Some(Found::Item(item, module.to_vec()));
        }
        let uses = items.iter().filter_map(|item| match item {
            Item::Use(item) => Some(brought(&item.tree)),
            _ => None,
        });
        let leads = |brought: &Brought| brought.name == *first && brought.path != [first.clone()];
        let lead = uses.flatten().find(leads)?;
        self.find(module, &[&lead.path[..], rest].concat())
    }
}

/// The features of both, each once.
fn with(some: &[String], others: &[String]) -> Vec<String> {
    some.iter().chain(others).cloned().collect::<BTreeSet<_>>().into_iter().collect()
}

fn in_word(sign: char) -> bool {
    sign.is_alphanumeric() || sign == '_'
}

pub(super) fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn name_of(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

fn name_if_public(item: &Item) -> Option<String> {
    let visibility = match item {
        Item::Const(item) => &item.vis,
        Item::Enum(item) => &item.vis,
        Item::Fn(item) => &item.vis,
        Item::Static(item) => &item.vis,
        Item::Struct(item) => &item.vis,
        Item::Trait(item) => &item.vis,
        Item::Type(item) => &item.vis,
        Item::Macro(item) => {
            let exported = has(&item.attrs, "macro_export");
            return item.ident.as_ref().filter(|_| exported).map(ToString::to_string);
        }
        _ => return None,
    };
    name_of(item).filter(|_| is_public(visibility))
}

fn brought(tree: &UseTree) -> Vec<Brought> {
    match tree {
        UseTree::Path(tree) => {
            let first = tree.ident.to_string();
            let longer = |Brought { name, path }| {
                let name = if name == "self" { first.clone() } else { name };
                let path = if path == ["self"] { Vec::new() } else { path };
                Brought { name, path: [vec![first.clone()], path].concat() }
            };
            brought(&tree.tree).into_iter().map(longer).collect()
        }
        UseTree::Name(tree) => {
            let name = tree.ident.to_string();
            vec![Brought { path: vec![name.clone()], name }]
        }
        UseTree::Rename(tree) => {
            vec![Brought { name: tree.rename.to_string(), path: vec![tree.ident.to_string()] }]
        }
        UseTree::Group(tree) => tree.items.iter().flat_map(brought).collect(),
        // It brings nothing by its name; a public one would hide what it shows.
        UseTree::Glob(tree) => panic!("a glob in `src/`: {}", tree.to_token_stream()),
    }
}

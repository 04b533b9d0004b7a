//! How an item is shown in the list: nothing of it that its users do not see.

use quote::ToTokens;
use syn::{
    Attribute, Expr, Fields, FnArg, ImplItem, Item, ItemImpl, Pat, Signature, TraitItem, Type,
};

use super::{
    list::is_public,
    source::{derived, features_of, has},
};

pub(crate) struct Shown {
    pub(crate) is_type: bool,
    pub(crate) lines: Vec<String>,
}

pub(crate) fn shown(path: &str, item: &Item) -> Shown {
    let mut lines = Vec::new();
    match item {
        Item::Const(item) => {
            let value = match &*item.expr {
                Expr::Lit(literal) => format!(" = {}", text(literal)),
                _ => String::new(),
            };
            lines.push(format!("const {path}: {}{value}", text(&item.ty)));
        }
        Item::Static(item) => lines.push(format!("static {path}: {}", text(&item.ty))),
        Item::Fn(item) => lines.push(function(path, &item.sig)),
        Item::Macro(_) => lines.push(format!("macro {path}")),
        Item::Type(item) => {
            lines.push(format!("type {path}{} = {}", text(&item.generics), text(&item.ty)));
        }
        Item::Struct(item) => {
            let private = if item.fields.iter().all(|field| is_public(&field.vis)) {
                ""
            } else {
                " (with private fields)"
            };
            let head = head("struct", path, &item.generics, &item.attrs);
            lines.push(format!("{head}{private}"));
            for (number, field) in item.fields.iter().enumerate() {
                let name = field.ident.as_ref().map_or(number.to_string(), ToString::to_string);
                if is_public(&field.vis) {
                    lines.push(format!("field {path}.{name}: {}", text(&field.ty)));
                }
            }
            lines.extend(derives(path, &item.attrs));
        }
        Item::Enum(item) => {
            lines.push(head("enum", path, &item.generics, &item.attrs));
            for variant in &item.variants {
                let fields = fields(&variant.fields);
                lines.push(format!("variant {path}::{}{fields}", variant.ident));
            }
            lines.extend(derives(path, &item.attrs));
        }
        Item::Trait(item) => {
            let above = text(&item.supertraits);
            lines.push(format!("trait {path}{}: {above}", text(&item.generics)));
            for inside in &item.items {
                lines.push(match inside {
                    TraitItem::Fn(method) => {
                        function(&format!("{path}::{}", method.sig.ident), &method.sig)
                    }
                    other => format!("{path}: {}", text(other)),
                });
            }
        }
        other => panic!("the list of the API does not know: {}", text(other)),
    }
    let is_type = matches!(item, Item::Struct(_) | Item::Enum(_) | Item::Trait(_) | Item::Type(_));
    Shown { is_type, lines }
}

fn head(kind: &str, path: &str, generics: &syn::Generics, attrs: &[Attribute]) -> String {
    let open = if has(attrs, "non_exhaustive") { " (non-exhaustive)" } else { "" };
    format!("{kind} {path}{}{open}", text(generics))
}

fn derives(path: &str, attrs: &[Attribute]) -> impl Iterator<Item = String> {
    derived(attrs).into_iter().map(move |name| format!("impl {name} for {path}"))
}

fn fields(fields: &Fields) -> String {
    let types = fields.iter().map(|field| match &field.ident {
        Some(name) => format!("{name}: {}", text(&field.ty)),
        None => text(&field.ty),
    });
    let types = types.collect::<Vec<_>>().join(", ");
    match fields {
        Fields::Unit => String::new(),
        Fields::Unnamed(_) => format!("({types})"),
        Fields::Named(_) => format!(" {{ {types} }}"),
    }
}

/// Without the name, which is in the path, and without `mut` before arguments.
fn function(path: &str, signature: &Signature) -> String {
    let mut signature = signature.clone();
    for argument in &mut signature.inputs {
        match argument {
            FnArg::Receiver(receiver) if receiver.reference.is_none() => receiver.mutability = None,
            FnArg::Receiver(_) => {}
            FnArg::Typed(argument) => {
                if let Pat::Ident(name) = &mut *argument.pat {
                    name.mutability = None;
                }
            }
        }
    }
    let name = signature.ident.to_string();
    text(&signature).replacen(&format!("fn {name}"), &format!("fn {path}"), 1)
}

/// The type that an implementation is for, by its last name.
pub(crate) fn implementor(item: &ItemImpl) -> Option<String> {
    match &*item.self_ty {
        Type::Path(path) => Some(path.path.segments.last()?.ident.to_string()),
        _ => None,
    }
}

/// What is implemented for what, without the body.
pub(crate) fn header(item: &ItemImpl) -> String {
    let of = text(&item.self_ty);
    match &item.trait_ {
        Some((not, path, _)) => {
            let not = if not.is_some() { "!" } else { "" };
            // As where it is derived; but the crate has an `Error` too.
            let name = text(&path.segments.last());
            let module = if name == "Error" { "std::error::" } else { "" };
            format!("{not}{module}{name} for {of}")
        }
        None => of,
    }
}

/// The public items of an inherent one; of that of a trait its header and its types.
pub(crate) fn implementation(path: &str, item: &ItemImpl) -> Vec<String> {
    if item.trait_.is_none() {
        return item.items.iter().filter_map(|inside| member(path, inside)).collect();
    }
    let types = item.items.iter().filter_map(|inside| match inside {
        ImplItem::Type(inside) => Some(format!("type {} = {}", inside.ident, text(&inside.ty))),
        _ => None,
    });
    let types = types.collect::<Vec<_>>().join(", ");
    let types = if types.is_empty() { types } else { format!(" {{ {types} }}") };
    let name = implementor(item).unwrap_or_default();
    let header = header(item).replacen(&format!(" for {name}"), &format!(" for {path}"), 1);
    vec![format!("impl{} {header}{types}", text(&item.generics))]
}

fn member(path: &str, inside: &ImplItem) -> Option<String> {
    let (line, attrs) = match inside {
        ImplItem::Fn(method) if is_public(&method.vis) => {
            (function(&format!("{path}::{}", method.sig.ident), &method.sig), &method.attrs)
        }
        ImplItem::Const(value) if is_public(&value.vis) => {
            (format!("const {path}::{}: {}", value.ident, text(&value.ty)), &value.attrs)
        }
        ImplItem::Fn(_) | ImplItem::Const(_) => return None,
        other => panic!("the list of the API does not know: {}", text(other)),
    };
    let features: Vec<_> = features_of(attrs).iter().map(|name| format!(" [{name}]")).collect();
    Some(line + &features.concat())
}

/// Tokens as rustfmt would write them, on one line, and the library's own types without their path.
fn text(tokens: &impl ToTokens) -> String {
    let mut text = tokens.to_token_stream().to_string().replace('\n', " ");
    for (spaced, tight) in [
        (" :: ", "::"),
        (":: ", "::"),
        (" < ", "<"),
        ("< ", "<"),
        (" >", ">"),
        (" ,", ","),
        ("& ", "&"),
        (" (", "("),
        ("( ", "("),
        (" )", ")"),
        ("[ ", "["),
        (" ]", "]"),
        (" :", ":"),
        (" ;", ";"),
        (",)", ")"),
        (", >", ">"),
        (",>", ">"),
    ] {
        text = text.replace(spaced, tight);
    }
    text = text.replace("->(", "-> (").replace("=(", "= (");
    while let Some(at) = text.find("crate::") {
        let path = text[at..].split(|sign: char| !sign.is_alphanumeric() && !"_:".contains(sign));
        let path = path.into_iter().next().unwrap_or_default().to_owned();
        let name = path.rsplit("::").next().unwrap_or_default().to_owned();
        text = text.replacen(&path, &name, 1);
    }
    text
}

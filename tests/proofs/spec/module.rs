//! A module of the specification, taken step by step.

use std::{collections::BTreeSet, sync::Arc};

use tla_checker::{
    ast::{Env, Expr, Spec, State, Value},
    checker::{format_trace, prepare_spec},
    eval::{eval, init_states, make_primed_names, next_states},
    load::prepare_from_path,
};

use super::file;

/// With its constants.
pub(super) struct Module {
    spec: Spec,
    constants: Env,
    definitions: tla_checker::eval::Definitions,
    primed: Vec<Arc<str>>,
}

pub(super) fn text(text: &str) -> Value {
    Value::Str(text.into())
}

pub(super) fn number(number: u64) -> Value {
    Value::Int(i64::try_from(number).expect("numbers are below 2^63"))
}

pub(super) fn set(values: impl IntoIterator<Item = Value>) -> Value {
    Value::set(values.into_iter().collect())
}

impl Module {
    pub(super) fn new(name: &str, constants: &[(&str, Value)]) -> Self {
        let path = file(name).with_extension("tla");
        let constants: Vec<(Arc<str>, Value)> =
            constants.iter().map(|(name, value)| ((*name).into(), value.clone())).collect();
        let prepared = prepare_from_path(&path, None, &constants)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let (constants, definitions) =
            prepare_spec(&prepared.spec, &prepared.domains, Some(&path), true)
                .unwrap_or_else(|error| panic!("{name}: {error:?}"));
        let primed = make_primed_names(&prepared.spec.vars);
        Self { spec: prepared.spec, constants, definitions, primed }
    }

    pub(super) fn first(&self) -> Vec<State> {
        let init = self.spec.init.as_ref().expect("the module has first states");
        init_states(init, &self.spec.vars, &self.constants, &self.definitions)
            .expect("they can be computed")
    }

    /// The states after this action; none if it is not possible.
    pub(super) fn after(&self, state: &State, action: &str, args: &[Value]) -> Vec<State> {
        let mut env = self.constants.clone();
        let action = call(action, args);
        let (vars, definitions) = (&self.spec.vars, &self.definitions);
        next_states(&action, state, vars, &self.primed, &mut env, definitions)
            .unwrap_or_else(|error| panic!("{action:?}: {error:?}"))
            .into_iter()
            .map(|transition| transition.state)
            .collect()
    }

    /// The same after each of these states.
    pub(super) fn after_each(&self, states: &[State], action: &str, args: &[Value]) -> Vec<State> {
        states.iter().flat_map(|state| self.after(state, action, args)).collect()
    }

    /// What this comes to in this state.
    pub(super) fn value(&self, state: &State, what: &str, args: &[Value]) -> Value {
        let mut env = self.constants.clone();
        for (name, value) in self.spec.vars.iter().zip(&state.values) {
            env.insert(Arc::clone(name), value.clone());
        }
        eval(&call(what, args), &mut env, &self.definitions)
            .unwrap_or_else(|error| panic!("{what}: {error:?}"))
    }

    pub(super) fn is(&self, state: &State, what: &str, args: &[Value]) -> bool {
        self.value(state, what, args) == Value::Bool(true)
    }

    /// What a variable is at these places.
    pub(super) fn of(&self, state: &State, variable: &str, places: &[&Value]) -> Value {
        let at = self.spec.vars.iter().position(|name| **name == *variable);
        let mut value = &state.values[at.expect("there is such a variable")];
        for place in places {
            let Value::Fn(entries) = value else { panic!("{variable} has no {place:?}") };
            value = &entries[*place];
        }
        value.clone()
    }

    pub(super) fn tell(&self, state: &State) -> String {
        format_trace(std::slice::from_ref(state), &self.spec.vars)
    }
}

fn call(name: &str, args: &[Value]) -> Expr {
    if args.is_empty() {
        return Expr::Var(name.into());
    }
    Expr::FnCall(name.into(), args.iter().cloned().map(Expr::Lit).collect())
}

/// Each of them once.
pub(super) fn distinct(states: Vec<State>) -> Vec<State> {
    let mut seen = BTreeSet::new();
    states.into_iter().filter(|state| seen.insert(state.values.clone())).collect()
}

//! What users of the locks without async rely on: each call does what its async call does, and
//! what threads add to that. Their threads live in real time.

mod basics;
mod calls;
mod runtime;
mod work;

//! Votes that count only once replicas have them: primaries with replicas, which are stopped,
//! killed, cut off and promoted.

mod counting;
mod late;
mod load;
mod promotion;
mod renewal;
mod scene;
mod settings;

//! Redisson's side of an `RReadWriteLock`: its own scripts, as its classes send them; without the
//! latches that repeated unlocks need.

use quorate_tests::prelude::*;

use super::java::Java;

/// `RedissonReadLock.tryLockInnerAsync`: nothing where it was taken, else the time left.
const READ_LOCK: &str = "\
local mode = redis.call('hget', KEYS[1], 'mode'); \
if (mode == false) then \
redis.call('hset', KEYS[1], 'mode', 'read'); \
redis.call('hset', KEYS[1], ARGV[2], 1); \
redis.call('set', KEYS[2] .. ':1', 1); \
redis.call('pexpire', KEYS[2] .. ':1', ARGV[1]); \
redis.call('pexpire', KEYS[1], ARGV[1]); \
return nil; \
end; \
if (mode == 'read') or (mode == 'write' and redis.call('hexists', KEYS[1], ARGV[3]) == 1) \
then \
local ind = redis.call('hincrby', KEYS[1], ARGV[2], 1); \
local key = KEYS[2] .. ':' .. ind; \
redis.call('set', key, 1); \
redis.call('pexpire', key, ARGV[1]); \
local remainTime = redis.call('pttl', KEYS[1]); \
redis.call('pexpire', KEYS[1], math.max(remainTime, ARGV[1])); \
return nil; \
end; \
return redis.call('pttl', KEYS[1]);";

/// `RedissonReadLock.unlockInnerAsync`.
const READ_UNLOCK: &str = "\
local mode = redis.call('hget', KEYS[1], 'mode'); \
if (mode == false) then \
redis.call(ARGV[3], KEYS[2], ARGV[1]); \
return nil; \
end; \
local lockExists = redis.call('hexists', KEYS[1], ARGV[2]); \
if (lockExists == 0) then \
return nil; \
end; \
local counter = redis.call('hincrby', KEYS[1], ARGV[2], -1); \
if (counter == 0) then \
redis.call('hdel', KEYS[1], ARGV[2]); \
end; \
redis.call('del', KEYS[3] .. ':' .. (counter+1)); \
if (redis.call('hlen', KEYS[1]) > 1) then \
local maxRemainTime = -3; \
local keys = redis.call('hkeys', KEYS[1]); \
for n, key in ipairs(keys) do \
counter = tonumber(redis.call('hget', KEYS[1], key)); \
if type(counter) == 'number' then \
for i=counter, 1, -1 do \
local remainTime = redis.call('pttl', KEYS[4] .. ':' .. key .. ':rwlock_timeout:' .. i); \
maxRemainTime = math.max(remainTime, maxRemainTime); \
end; \
end; \
end; \
if maxRemainTime > 0 then \
redis.call('pexpire', KEYS[1], maxRemainTime); \
return 0; \
end; \
if mode == 'write' then \
return 0; \
end; \
end; \
redis.call('del', KEYS[1]); \
redis.call(ARGV[3], KEYS[2], ARGV[1]); \
return 1;";

/// `RedissonWriteLock.tryLockInnerAsync`.
const WRITE_LOCK: &str = "\
local mode = redis.call('hget', KEYS[1], 'mode'); \
if (mode == false) then \
redis.call('hset', KEYS[1], 'mode', 'write'); \
redis.call('hset', KEYS[1], ARGV[2], 1); \
redis.call('pexpire', KEYS[1], ARGV[1]); \
return nil; \
end; \
if (mode == 'write') then \
if (redis.call('hexists', KEYS[1], ARGV[2]) == 1) then \
redis.call('hincrby', KEYS[1], ARGV[2], 1); \
local currentExpire = redis.call('pttl', KEYS[1]); \
redis.call('pexpire', KEYS[1], currentExpire + ARGV[1]); \
return nil; \
end; \
end; \
return redis.call('pttl', KEYS[1]);";

/// `RedissonWriteLock.unlockInnerAsync`.
const WRITE_UNLOCK: &str = "\
local mode = redis.call('hget', KEYS[1], 'mode'); \
if (mode == false) then \
redis.call(ARGV[4], KEYS[2], ARGV[1]); \
return nil; \
end; \
if (mode == 'write') then \
local lockExists = redis.call('hexists', KEYS[1], ARGV[3]); \
if (lockExists == 0) then \
return nil; \
else \
local counter = redis.call('hincrby', KEYS[1], ARGV[3], -1); \
if (counter > 0) then \
redis.call('pexpire', KEYS[1], ARGV[2]); \
return 0; \
else \
redis.call('hdel', KEYS[1], ARGV[3]); \
if (redis.call('hlen', KEYS[1]) == 1) then \
redis.call('del', KEYS[1]); \
redis.call(ARGV[4], KEYS[2], ARGV[1]); \
else \
redis.call('hset', KEYS[1], 'mode', 'read'); \
end; \
return 1; \
end; \
end; \
end; \
return nil;";

/// Where those listen who wait for it.
pub(super) fn rw_channel(name: &str) -> String {
    format!("redisson_rwlock:{{{name}}}")
}

impl Java<'_> {
    fn timeouts(&self, name: &str) -> String {
        format!("{{{name}}}:{}:rwlock_timeout", self.owner)
    }

    fn writer(&self) -> String {
        format!("{}:write", self.owner)
    }

    pub(super) fn try_read(&self, name: &str, lease: Duration) -> bool {
        let lease = lease.as_millis().to_string();
        let args: [&str; 3] = [&lease, &self.owner, &self.writer()];
        self.eval(READ_LOCK, &[name, &self.timeouts(name)], &args) == Reply::Nil
    }

    /// Whether it read: then 1 where nobody reads any more, else 0.
    pub(super) fn end_read(&self, name: &str) -> Option<i64> {
        let stem = format!("{{{name}}}");
        let keys = [name, &rw_channel(name), &self.timeouts(name), &stem];
        number(&self.eval(READ_UNLOCK, &keys, &["0", &self.owner, "publish"]))
    }

    pub(super) fn try_write(&self, name: &str, lease: Duration) -> bool {
        let lease = lease.as_millis().to_string();
        self.eval(WRITE_LOCK, &[name], &[&lease, &self.writer()]) == Reply::Nil
    }

    /// Whether it wrote: then 1 where that was the last of its entries, else 0.
    pub(super) fn end_write(&self, name: &str) -> Option<i64> {
        let args = ["1", "30000", &self.writer(), "publish"];
        number(&self.eval(WRITE_UNLOCK, &[name, &rw_channel(name)], &args))
    }
}

fn number(reply: &Reply) -> Option<i64> {
    match reply {
        Reply::Int(number) => Some(*number),
        Reply::Nil => None,
        other => panic!("no number: {other:?}"),
    }
}

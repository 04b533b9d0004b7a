package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// Until all who wait have asked.
	leadIn = 300 * time.Millisecond
	// So long that who asks again finds it taken, and has to wait as the others do.
	hold = 2 * time.Millisecond
	// For those whose waiting is cancelled.
	patience = time.Second
)

// Names that nothing has had.
var names atomic.Int64

// result is one line of whole numbers, times in microseconds.
type result struct {
	count, failed  int
	elapsed        time.Duration
	p50, p99, p999 time.Duration
	processor      time.Duration
	memory         int
}

func (r result) String() string {
	return fmt.Sprintf("ok %d %d %d %d %d %d %d %d", r.count, r.failed, r.elapsed.Microseconds(),
		r.p50.Microseconds(), r.p99.Microseconds(), r.p999.Microseconds(),
		r.processor.Microseconds(), r.memory)
}

// tally has times that were measured, and failures.
type tally struct {
	sync.Mutex
	times  []time.Duration
	failed int
}

func (t *tally) time(took time.Duration) {
	t.Lock()
	defer t.Unlock()
	t.times = append(t.times, took)
}

func (t *tally) fail() {
	t.Lock()
	defer t.Unlock()
	t.failed++
}

func (t *tally) result(elapsed, processor time.Duration) result {
	t.Lock()
	defer t.Unlock()
	slices.Sort(t.times)
	r := result{count: len(t.times), failed: t.failed, elapsed: elapsed, processor: processor}
	if r.count > 0 {
		permille := func(at int) time.Duration { return t.times[r.count*at/1000] }
		r.p50, r.p99, r.p999 = permille(500), permille(990), permille(999)
	}
	return r
}

// cycles has each task take and give back a lock of its own, again and again.
func cycles(locks locks, tasks int, within time.Duration) result {
	var over atomic.Bool
	all := make([]tally, tasks)
	name := newName()
	used, started := processor(), time.Now()
	done := together(tasks, func(task int) {
		for !over.Load() {
			started := time.Now()
			unlock, err := locks.lock(context.Background(), 0, fmt.Sprintf("%s:%d", name, task))
			if err == nil {
				err = unlock()
			}
			if err != nil {
				all[task].fail()
				continue
			}
			all[task].time(time.Since(started))
		}
	})
	time.Sleep(within)
	over.Store(true)
	<-done
	var sum tally
	for at := range all {
		sum.times = append(sum.times, all[at].times...)
		sum.failed += all[at].failed
	}
	return sum.result(time.Since(started), processor()-used)
}

// handoff has all want one lock, again and again; nobody asks again before another has had it. A
// time is from a release until the next one has the lock. Two holders at once are a failure.
func handoff(locks locks, waiters, clients int, within time.Duration) result {
	var (
		released, grants atomic.Int64
		held, measuring  atomic.Bool
		sum              tally
	)
	ctx, cancel := context.WithCancel(context.Background())
	name, began := newName(), time.Now()
	if err := locks.have(clients); err != nil {
		panic(err)
	}
	done := together(waiters, func(task int) {
		for ctx.Err() == nil {
			unlock, err := locks.lock(ctx, task%clients, name)
			if err == nil {
				now, grant := int64(time.Since(began)), grants.Add(1)
				before := released.Swap(0)
				if held.Swap(true) {
					sum.fail()
				}
				if before != 0 && measuring.Load() {
					sum.time(time.Duration(now - before))
				}
				time.Sleep(hold)
				held.Store(false)
				released.Store(int64(time.Since(began)))
				err = unlock()
				for err == nil && ctx.Err() == nil && grants.Load() == grant {
					time.Sleep(time.Millisecond)
				}
			}
			if err != nil && ctx.Err() == nil {
				sum.fail()
			}
		}
	})
	time.Sleep(leadIn)
	used, started := processor(), time.Now()
	measuring.Store(true)
	time.Sleep(within)
	measuring.Store(false)
	elapsed, used := time.Since(started), processor()-used
	cancel()
	wait(done, patience)
	return sum.result(elapsed, used)
}

// crowd has all want one lock once, at the same moment. A time is until one of them has it.
func crowd(locks locks, waiters, clients int, limit time.Duration) result {
	var sum tally
	ctx, cancel := context.WithCancel(context.Background())
	name := newName()
	if err := locks.have(clients); err != nil {
		panic(err)
	}
	used, began := processor(), time.Now()
	done := together(waiters, func(task int) {
		unlock, err := locks.lock(ctx, task%clients, name)
		took := time.Since(began)
		if err == nil {
			err = unlock()
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			sum.fail()
			return
		}
		sum.time(took)
	})
	wait(done, limit)
	elapsed := time.Since(began)
	cancel()
	wait(done, patience)
	return sum.result(elapsed, processor()-used)
}

func newName() string {
	return fmt.Sprintf("peers:%d", names.Add(1))
}

// together runs the tasks; the channel is closed when all have ended.
func together(tasks int, body func(task int)) <-chan struct{} {
	done := make(chan struct{})
	var running sync.WaitGroup
	for task := range tasks {
		running.Go(func() { body(task) })
	}
	go func() {
		running.Wait()
		close(done)
	}()
	return done
}

func wait(done <-chan struct{}, limit time.Duration) {
	select {
	case <-done:
	case <-time.After(limit):
	}
}

// processor is the processor time of this process.
func processor() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

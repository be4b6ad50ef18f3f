package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	pb "digital-human-provider/examples/adapter-go/gen/dhp/provider/v1"
)

const (
	busyRetry     = time.Second
	aftermathsMax = 10_000
)

// flights keeps one change in flight per key. A mutation that was sent goes on after its caller has
// left: it keeps its key, so that nobody acts on the same instance meanwhile, and what became of a
// create is remembered, so that the next caller does not make a second one.
type flights struct {
	mu         sync.Mutex
	held       map[string]chan struct{}
	aftermaths map[string]aftermath
}

// aftermath is what is known of a create whose instance may not be visible yet.
type aftermath struct {
	id     string    // empty: the create's answer was lost
	isSeen bool      // a read by id has shown it: should it be absent later, it is gone
	until  time.Time // till then the vendor may show nothing although it exists or will
}

func newFlights() *flights {
	return &flights{held: map[string]chan struct{}{}, aftermaths: map[string]aftermath{}}
}

// alone runs work as the only one on key; BUSY where the key is taken. It returns with the work, or,
// when the caller leaves after something was sent, with VENDOR_TIMEOUT and UNKNOWN while the work
// goes on. Work that has sent nothing hears ctx and ends by itself.
func alone[T any](
	ctx context.Context, f *flights, key string, hasSent func() bool, work func(context.Context) (T, error),
) (T, error) {
	var none T
	if !f.take(key) {
		busy := newProblem(pb.ErrorReason_ERROR_REASON_BUSY, "another call on this key is in flight")
		busy.retryAfter = busyRetry
		return none, busy
	}
	type result struct {
		value T
		err   error
	}
	results := make(chan result, 1)
	go func() {
		value, err := withoutPanic(ctx, work)
		f.release(key)
		results <- result{value, err}
	}()
	select {
	case done := <-results:
		return done.value, done.err
	case <-ctx.Done():
	}
	if !hasSent() {
		done := <-results
		return done.value, done.err
	}
	left := newProblem(pb.ErrorReason_ERROR_REASON_VENDOR_TIMEOUT,
		"the caller's deadline ended while the vendor was at it; the change goes on")
	left.outcome = pb.Outcome_OUTCOME_UNKNOWN
	return none, left
}

func withoutPanic[T any](ctx context.Context, work func(context.Context) (T, error)) (value T, err error) {
	defer func() {
		if bug := recover(); bug != nil {
			err = fmt.Errorf("panic: %v", bug)
		}
	}()
	return work(ctx)
}

func (f *flights) take(key string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held[key] != nil {
		return false
	}
	f.held[key] = make(chan struct{})
	return true
}

func (f *flights) release(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.held[key])
	delete(f.held, key)
}

// idle returns true when nothing is in flight, false when ctx ends before. Calls may still begin.
func (f *flights) idle(ctx context.Context) bool {
	for {
		one := f.anyHeld()
		if one == nil {
			return true
		}
		select {
		case <-one:
		case <-ctx.Done():
			return false
		}
	}
}

func (f *flights) anyHeld() chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, one := range f.held {
		return one
	}
	return nil
}

// remember drops what is over, and when there is too much of it anything: memory has a limit.
func (f *flights) remember(key string, after aftermath) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.aftermaths[key] = after
	if len(f.aftermaths) <= aftermathsMax {
		return
	}
	now := time.Now()
	for old, one := range f.aftermaths {
		if now.After(one.until) || (len(f.aftermaths) > aftermathsMax && old != key) {
			delete(f.aftermaths, old)
		}
	}
}

func (f *flights) forget(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.aftermaths, key)
}

// rememberedID is what a recent create brought; empty: none is remembered.
func (f *flights) rememberedID(key string) string {
	return f.current(key).id
}

// doubt is how long an instance may still come to be or to show; 0: not at all.
func (f *flights) doubt(key string) time.Duration {
	after := f.current(key)
	if after.isSeen {
		return 0
	}
	return max(time.Until(after.until), 0)
}

func (f *flights) current(key string) aftermath {
	f.mu.Lock()
	defer f.mu.Unlock()
	after := f.aftermaths[key]
	if time.Now().After(after.until) {
		return aftermath{}
	}
	return after
}

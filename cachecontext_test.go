//go:build cgo || ossl_nocgo

package ossl

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// An endingContext is a context for one call, and the function that stops it.
type endingContext struct {
	context.Context
	end func()
}

type cacheContextMaker func(parent context.Context) endingContext

// cacheContexts are the kinds of contexts that TestCacheContext compares.
var cacheContexts = map[string]cacheContextMaker{
	"context.WithTimeout": func(parent context.Context) endingContext {
		ctx, cancel := context.WithTimeout(parent, cacheTimeout)
		return endingContext{ctx, cancel}
	},
	"lazy": func(parent context.Context) endingContext {
		ctx := newCacheContext(parent)
		return endingContext{ctx, ctx.end}
	},
	"asked for Done": func(parent context.Context) endingContext {
		ctx := newCacheContext(parent)
		ctx.Done()
		return endingContext{ctx, ctx.end}
	},
}

type cacheContextKey struct{}

// TestCacheContext compares the context of cache calls with a context of context.WithTimeout, step
// by step.
func TestCacheContext(t *testing.T) {
	for name, start := range cacheContexts {
		t.Run(name, func(t *testing.T) {
			for _, test := range []struct {
				name string
				do   func(t *testing.T, start cacheContextMaker)
			}{
				{"end", testCacheContextEnd},
				{"deadline", testCacheContextDeadline},
				{"late", testCacheContextLate},
				{"parent", testCacheContextParent},
			} {
				t.Run(test.name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { test.do(t, start) })
				})
			}
		})
	}
}

// cacheContextParent returns a context with a value, and the function that cancels it.
func cacheContextParent(t *testing.T) (context.Context, context.CancelCauseFunc) {
	parent, cancel := context.WithCancelCause(context.WithValue(t.Context(), cacheContextKey{}, "value"))
	t.Cleanup(func() { cancel(nil) })
	return parent, cancel
}

// wantEnded checks that ctx is done with an error and for a cause, or is not done if they are nil.
func wantEnded(t *testing.T, state string, ctx context.Context, want, cause error) {
	t.Helper()
	synctest.Wait()
	if err := ctx.Err(); !errors.Is(err, want) || !errors.Is(context.Cause(ctx), cause) {
		t.Errorf("%s: %v, because of %v", state, err, context.Cause(ctx))
	}
	select {
	case <-ctx.Done():
		if want == nil {
			t.Errorf("%s: done", state)
		}
	default:
		if want != nil {
			t.Errorf("%s: not done", state)
		}
	}
}

// testCacheContextEnd stops a context before its parent is done.
func testCacheContextEnd(t *testing.T, start cacheContextMaker) {
	parent, _ := cacheContextParent(t)
	c := start(parent)
	if d, ok := c.Deadline(); !ok || time.Until(d) != cacheTimeout {
		t.Errorf("the deadline is %v, %v", d, ok)
	}
	if c.Err() != nil || c.Value(cacheContextKey{}) != "value" {
		t.Error("the context differs from its parent")
	}
	c.end()
	wantEnded(t, "ended", c, context.Canceled, context.Canceled)
	c.end()

	another, cancel := context.WithCancelCause(parent)
	c = start(another)
	c.end()
	cancel(errors.New("reason"))
	if err := c.Err(); err != context.Canceled || context.Cause(c) != err {
		t.Errorf("ended before its parent: %v, because of %v", err, context.Cause(c))
	}
}

// testCacheContextDeadline waits for a context's deadline.
func testCacheContextDeadline(t *testing.T, start cacheContextMaker) {
	parent, _ := cacheContextParent(t)
	c := start(parent)
	child, stop := context.WithCancel(c)
	defer stop()
	wantEnded(t, "new", c, nil, nil)
	wantEnded(t, "child", child, nil, nil)
	time.Sleep(cacheTimeout)
	wantEnded(t, "child of a late one", child, context.DeadlineExceeded, context.DeadlineExceeded)
	wantEnded(t, "late", c, context.DeadlineExceeded, context.DeadlineExceeded)
	c.end()
	wantEnded(t, "late and ended", c, context.DeadlineExceeded, context.DeadlineExceeded)

	c = start(parent)
	time.Sleep(cacheTimeout)
	wantEnded(t, "late, first asked now", c, context.DeadlineExceeded, context.DeadlineExceeded)
}

// testCacheContextLate checks that the error of a late context doesn't change.
func testCacheContextLate(t *testing.T, start cacheContextMaker) {
	parent, _ := cacheContextParent(t)
	for event, end := range map[string]func(c endingContext){
		"ended":                func(c endingContext) { c.end() },
		"its parent's ended":   func(endingContext) {},
		"asked for Done, late": func(c endingContext) { c.Done() },
	} {
		parent, cancel := context.WithCancelCause(parent)
		c := start(parent)
		time.Sleep(cacheTimeout)
		synctest.Wait()
		if err := c.Err(); err != context.DeadlineExceeded {
			t.Errorf("late, and only asked for Err: %v", err)
		}
		end(c)
		cancel(errors.New("reason"))
		if err := c.Err(); err != context.DeadlineExceeded || context.Cause(c) != err {
			t.Errorf("late, then %s: %v, because of %v", event, err, context.Cause(c))
		}
	}
}

// testCacheContextParent cancels the parent, by its deadline or with a cause.
func testCacheContextParent(t *testing.T, start cacheContextMaker) {
	parent, cancel := cacheContextParent(t)
	early, stop := context.WithTimeout(parent, time.Millisecond)
	defer stop()
	c := start(early)
	if d, _ := c.Deadline(); time.Until(d) != time.Millisecond {
		t.Errorf("the deadline is %v, which is later than the parent's", d)
	}
	time.Sleep(time.Millisecond)
	wantEnded(t, "of a late parent", c, context.DeadlineExceeded, context.DeadlineExceeded)

	reason := errors.New("reason")
	c = start(parent)
	cancel(reason)
	wantEnded(t, "of a parent that was canceled", c, context.Canceled, reason)
	if c.Value(cacheContextKey{}) != "value" {
		t.Error("the value is gone")
	}
	c.end()
}

// TestCacheContextLazy checks that the timer is made only for a caller of Done.
func TestCacheContextLazy(t *testing.T) {
	c := newCacheContext(t.Context())
	c.Deadline()
	if c.Err() != nil || c.Value("key") != nil || c.real != nil {
		t.Error("there is a timer")
	}
	c.Done()
	if c.real == nil {
		t.Error("there is no timer")
	}
	c.end()
}

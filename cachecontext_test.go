//go:build cgo

package ossl

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestCacheContext compares the context of cache calls with that of context.WithTimeout, step by step.
func TestCacheContext(t *testing.T) {
	type made struct {
		context.Context
		end func()
	}
	flavours := map[string]func(context.Context) made{
		"context.WithTimeout": func(parent context.Context) made {
			ctx, cancel := context.WithTimeout(parent, cacheTimeout)
			return made{ctx, cancel}
		},
		"lazy": func(parent context.Context) made {
			ctx := newCacheContext(parent)
			return made{ctx, ctx.end}
		},
		"asked for Done": func(parent context.Context) made {
			ctx := newCacheContext(parent)
			ctx.Done()
			return made{ctx, ctx.end}
		},
	}
	type key struct{}
	reason := errors.New("reason")
	for name, flavour := range flavours {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				parent, cancel := context.WithCancelCause(context.WithValue(t.Context(), key{}, "value"))
				defer cancel(nil)
				is := func(what string, ctx context.Context, want, cause error) {
					t.Helper()
					synctest.Wait()
					if err := ctx.Err(); !errors.Is(err, want) || !errors.Is(context.Cause(ctx), cause) {
						t.Errorf("%s: %v, because of %v", what, err, context.Cause(ctx))
					}
					select {
					case <-ctx.Done():
						if want == nil {
							t.Errorf("%s: done", what)
						}
					default:
						if want != nil {
							t.Errorf("%s: not done", what)
						}
					}
				}
				c := flavour(parent)
				if d, ok := c.Deadline(); !ok || time.Until(d) != cacheTimeout {
					t.Errorf("the deadline is %v, %v", d, ok)
				}
				if c.Err() != nil || c.Value(key{}) != "value" {
					t.Error("not as its parent")
				}
				c.end()
				is("ended", c, context.Canceled, context.Canceled)
				c.end()

				c = flavour(parent)
				child, stop := context.WithCancel(c)
				defer stop()
				is("new", c, nil, nil)
				is("child", child, nil, nil)
				time.Sleep(cacheTimeout)
				is("child of a late one", child, context.DeadlineExceeded, context.DeadlineExceeded)
				is("late", c, context.DeadlineExceeded, context.DeadlineExceeded)
				c.end()
				is("late and ended", c, context.DeadlineExceeded, context.DeadlineExceeded)

				c = flavour(parent)
				time.Sleep(cacheTimeout)
				is("late, unasked", c, context.DeadlineExceeded, context.DeadlineExceeded)

				for what, end := range map[string]func(c made){
					"ended":                func(c made) { c.end() },
					"its parent's ended":   func(made) {},
					"asked for Done, late": func(c made) { c.Done() },
				} {
					parent, cancel := context.WithCancelCause(parent)
					c = flavour(parent)
					time.Sleep(cacheTimeout)
					synctest.Wait()
					if err := c.Err(); err != context.DeadlineExceeded {
						t.Errorf("late, and only asked for Err: %v", err)
					}
					end(c)
					cancel(reason)
					if err := c.Err(); err != context.DeadlineExceeded || context.Cause(c) != err {
						t.Errorf("late, then %s: %v, because of %v", what, err, context.Cause(c))
					}
				}
				another, cancelAnother := context.WithCancelCause(parent)
				c = flavour(another)
				c.end()
				cancelAnother(reason)
				if err := c.Err(); err != context.Canceled || context.Cause(c) != err {
					t.Errorf("ended before its parent: %v, because of %v", err, context.Cause(c))
				}

				early, stop := context.WithTimeout(parent, time.Millisecond)
				defer stop()
				c = flavour(early)
				if d, _ := c.Deadline(); time.Until(d) != time.Millisecond {
					t.Errorf("the deadline is %v, which is later than the parent's", d)
				}
				time.Sleep(time.Millisecond)
				is("of a late parent", c, context.DeadlineExceeded, context.DeadlineExceeded)

				c = flavour(parent)
				cancel(reason)
				is("of a parent that was canceled", c, context.Canceled, reason)
				if c.Value(key{}) != "value" {
					t.Error("no value any more")
				}
				c.end()
			})
		})
	}
}

// TestCacheContextLazy: nothing is made for who doesn't wait.
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

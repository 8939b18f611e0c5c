package otelossl

import "github.com/ossl-go/ossl"

// Report makes the Instrumentation handle an event.
func (i *Instrumentation) Report(name string, e ossl.Event) { i.event(name, e) }

package httptls

import (
	"context"
	"crypto/tls"
	"log"
	"time"

	"github.com/ossl-go/ossl"
)

// report returns a function for a Watch's OnEvent. It passes errors to onError, or logs them if that is nil. explain
// adds the names of the files.
func report(onError *func(error), explain func(error) error) func(ossl.WatchEvent) {
	return func(e ossl.WatchEvent) {
		switch {
		case e.Err == nil:
		case *onError != nil:
			(*onError)(explain(e.Err))
		default:
			log.Print(explain(e.Err))
		}
	}
}

// lookPatience is how long a handshake waits for the file system.
const lookPatience = time.Second

// lookBriefly checks the files. It waits for the result until the handshake's context is done, at
// most for patience.
func lookBriefly(w *ossl.Watch, hello *tls.ClientHelloInfo, patience time.Duration) {
	ctx := context.Background()
	if hello != nil && hello.Context() != nil {
		ctx = hello.Context()
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	w.Check(ctx)
}

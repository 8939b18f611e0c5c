package recipes_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"connectrpc.com/connect"
	coder "github.com/coder/websocket"
	gorilla "github.com/gorilla/websocket"
	"github.com/valyala/fasthttp"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/ossl-go/ossl/examples/recipes"
	"github.com/ossl-go/ossl/internal/recipetest"
)

// serveOwn starts a server with the recipe Serve.
func serveOwn(handler http.Handler) func(*testing.T, *recipetest.Site) {
	return func(t *testing.T, site *recipetest.Site) {
		serving(t, site.Listener, func() error { return recipes.Serve(site.Listener, site.Config, handler) })
	}
}

func TestGorilla(t *testing.T) {
	recipetest.Recipe{
		Client: "gorilla/websocket", Server: "coder/websocket, ossl",
		Start: serveOwn(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			conn, err := coder.Accept(w, r, nil)
			if err != nil {
				return
			}
			defer conn.CloseNow()
			if kind, message, err := conn.Read(r.Context()); err == nil {
				conn.Write(r.Context(), kind, message)
			}
			conn.Close(coder.StatusNormalClosure, "")
		})),
		Use: func(ctx context.Context, config *tls.Config, addr string) error {
			conn, err := recipes.Gorilla(ctx, "wss://"+addr, recipes.Dialer(config))
			if err != nil {
				return err
			}
			defer conn.Close()
			if err := conn.WriteMessage(gorilla.TextMessage, []byte("hello")); err != nil {
				return err
			}
			_, got, err := conn.ReadMessage()
			return wantHello(got, err)
		},
	}.Run(t)
}

func TestCoder(t *testing.T) {
	upgrader := &gorilla.Upgrader{}
	recipetest.Recipe{
		Client: "coder/websocket", Server: "gorilla/websocket, ossl",
		Start: serveOwn(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			conn, err := upgrader.Upgrade(w, r, nil)
			if err != nil {
				return
			}
			defer conn.Close()
			if kind, message, err := conn.ReadMessage(); err == nil {
				conn.WriteMessage(kind, message)
			}
			conn.ReadMessage() // the client's Close
		})),
		Use: func(ctx context.Context, config *tls.Config, addr string) error {
			conn, err := recipes.Coder(ctx, "wss://"+addr, config)
			if err != nil {
				return err
			}
			defer conn.CloseNow()
			if err := conn.Write(ctx, coder.MessageText, []byte("hello")); err != nil {
				return err
			}
			_, got, err := conn.Read(ctx)
			return errors.Join(wantHello(got, err), conn.Close(coder.StatusNormalClosure, ""))
		},
	}.Run(t)
}

// TestConnect checks a stream with answers before the client is done, which needs HTTP/2.
func TestConnect(t *testing.T) {
	const procedure = "/greet.v1.GreetService/Greet"
	type message = wrapperspb.StringValue
	mux := http.NewServeMux()
	mux.Handle(procedure, connect.NewBidiStreamHandler(procedure,
		func(_ context.Context, stream *connect.BidiStream[message, message]) error {
			for {
				m, err := stream.Receive()
				if err != nil {
					return nil
				}
				if err := stream.Send(m); err != nil {
					return err
				}
			}
		}))
	recipetest.Recipe{
		Client: "connect-go", Server: "connect-go, ossl", Start: serveOwn(mux),
		Use: func(ctx context.Context, config *tls.Config, addr string) error {
			client, err := recipes.HTTPClient(config)
			if err != nil {
				return err
			}
			stream := connect.NewClient[message, message](client, "https://"+addr+procedure).CallBidiStream(ctx)
			if err := stream.Send(wrapperspb.String("hello")); err != nil {
				return err
			}
			got, err := stream.Receive()
			return errors.Join(wantHello([]byte(got.GetValue()), err), stream.CloseRequest(), stream.CloseResponse())
		},
	}.Run(t)
}

func TestFastHTTP(t *testing.T) {
	recipetest.Recipe{
		Client: "fasthttp", Server: "fasthttp, ossl",
		Start: func(t *testing.T, site *recipetest.Site) {
			serving(t, site.Listener, func() error {
				return recipes.FastHTTPServe(site.Listener, site.Config, func(ctx *fasthttp.RequestCtx) {
					if state := ctx.TLSConnectionState(); !ctx.IsTLS() || state == nil || len(state.PeerCertificates) == 0 {
						ctx.Error("no certificate of the client", fasthttp.StatusForbidden)
						return
					}
					ctx.SetBodyString("hello")
				})
			})
		},
		Use: func(ctx context.Context, config *tls.Config, addr string) error {
			client := recipes.FastHTTP(recipes.Dialer(config))
			defer client.CloseIdleConnections()
			deadline, _ := ctx.Deadline()
			_, got, err := client.GetDeadline(nil, "https://"+addr, deadline)
			return wantHello(got, err)
		},
	}.Run(t)
}

// TestFastHTTPPlain checks that the recipe's client doesn't use TLS if the URL's scheme is http.
func TestFastHTTPPlain(t *testing.T) {
	l := recipetest.Listen(t)
	server := &fasthttp.Server{Handler: func(ctx *fasthttp.RequestCtx) { ctx.SetBodyString("hello") }}
	serving(t, l, func() error { return server.Serve(l) })
	client := recipes.FastHTTP(recipes.Dialer(nil))
	defer client.CloseIdleConnections()
	_, got, err := client.GetTimeout(nil, "http://"+l.Addr().String(), time.Minute)
	if err := wantHello(got, err); err != nil {
		t.Fatal(err)
	}
}

func wantHello(got []byte, err error) error {
	if err == nil && string(got) != "hello" {
		return fmt.Errorf("received %q", got)
	}
	return err
}

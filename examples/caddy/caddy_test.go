package caddy_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
	_ "github.com/caddyserver/caddy/v2/modules/caddypki"
	_ "github.com/caddyserver/caddy/v2/modules/caddytls"
	_ "github.com/caddyserver/caddy/v2/modules/logging"

	_ "github.com/ossl-go/ossl/examples/caddy"
	"github.com/ossl-go/ossl/httptls"
	"github.com/ossl-go/ossl/internal/recipetest"
)

func TestMain(m *testing.M) { recipetest.Main(m, "examples/caddy", "../../docs/RECIPES.md") }

// start runs Caddy with a Caddyfile, until the test is done.
func start(t *testing.T, text string) {
	t.Helper()
	config, warnings, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), nil)
	if err != nil || len(warnings) > 0 {
		t.Fatalf("%v, %v\n%s", err, warnings, text)
	}
	parsed := &caddy.Config{}
	if err := json.Unmarshal(config, parsed); err != nil {
		t.Fatal(err)
	}
	if err := caddy.Run(parsed); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestListener: Caddy answers HTTP/2, and its placeholders have the client's certificate.
func TestListener(t *testing.T) {
	recipetest.Recipe{
		Client: "httptls", Server: "Caddy, listener wrapper",
		Start: func(t *testing.T, site *recipetest.Site) {
			port := recipetest.FreePort(t)
			start(t, fmt.Sprintf(`{
	admin off
	persist_config off
	auto_https off
	servers {
		protocols h1 h2c
		listener_wrappers {
			ossl %s %s %s
		}
	}
}
http://127.0.0.1:%s {
	bind 127.0.0.1
	respond "{http.request.scheme} {http.request.proto} {http.request.tls.client.subject}"
}
`, site.Files.Cert, site.Files.Key, site.Files.CA, port))
			recipetest.Forward(t, site.Listener, "127.0.0.1:"+port)
		},
		Use: func(ctx context.Context, config *tls.Config, addr string) error {
			client, err := httptls.NewClient(&http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true})
			if err != nil {
				return err
			}
			defer client.CloseIdleConnections()
			return get(ctx, client, "https://"+addr, "https HTTP/2.0 CN=client,O=tlstest")
		},
	}.Run(t)
}

// TestTransport: the upstream closes each connection, so that the reverse proxy makes another.
func TestTransport(t *testing.T) {
	var version atomic.Uint32 // the upstream's only version, if not 0
	var front string
	recipetest.Recipe{
		Client: "Caddy, reverse proxy", Server: "a stand-in, crypto/tls",
		Start: func(t *testing.T, site *recipetest.Site) {
			site.Config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
				config := site.Config.Clone()
				config.MaxVersion = uint16(version.Load())
				return config, nil
			}
			server := &http.Server{TLSConfig: site.Config, ErrorLog: recipetest.NoLog, Handler: http.HandlerFunc(
				func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Connection", "close")
					io.WriteString(w, "hello")
				})}
			done := make(chan error, 1)
			go func() { done <- server.ServeTLS(site.Listener, "", "") }()
			t.Cleanup(func() { server.Close(); <-done })
			front = "127.0.0.1:" + recipetest.FreePort(t)
			start(t, fmt.Sprintf(`{
	admin off
	persist_config off
	auto_https off
}
http://%s {
	bind 127.0.0.1
	reverse_proxy https://%s {
		transport ossl %s %s %s
	}
}
`, front, site.Addr, site.Files.CA, site.Files.Cert, site.Files.Key))
		},
		Use: func(ctx context.Context, config *tls.Config, _ string) error {
			version.Store(uint32(config.MaxVersion))
			defer version.Store(0)
			return get(ctx, http.DefaultClient, "http://"+front, "hello")
		},
	}.Run(t)
}

// get requests a URL, whose response must be as wanted.
func get(ctx context.Context, client *http.Client, url, want string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && string(body) != want {
		err = fmt.Errorf("received %q, want %q", body, want)
	}
	return err
}

package recipes_test

import (
	"context"
	"crypto/tls"
	"net/http"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/examples/recipes"
	"github.com/ossl-go/ossl/internal/recipetest"
)

func TestHook(t *testing.T) {
	recipetest.Recipe{
		Client: "go-redis, a Context", Server: "redis-server",
		Start: func(t *testing.T, site *recipetest.Site) { startRedis(t, site.Listener, site.Files) },
		Use: func(ctx context.Context, config *tls.Config, addr string) error {
			compiled, err := ossl.NewContext(config)
			if err != nil {
				return err
			}
			return talkRedis(ctx, redis.NewClient(&redis.Options{Addr: addr, Dialer: recipes.Hook(compiled)}))
		},
	}.Run(t)
}

const nobody = "127.0.0.1:1" // tcpmux; a port that was free a moment ago may be another process's now

// TestHookFails: a driver that compares the connection with nil isn't misled.
func TestHookFails(t *testing.T) {
	compiled, err := ossl.NewContext(&tls.Config{})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := recipes.Hook(compiled)(t.Context(), "tcp", nobody)
	if err == nil || conn != nil {
		t.Errorf("a connection to nobody: %v, %v", conn, err)
	}
}

// TestHTTPClient: the default transport can be in use already.
func TestHTTPClient(t *testing.T) {
	http.Get("http://" + nobody)
	if _, err := recipes.HTTPClient(nil); err != nil {
		t.Error(err)
	}
}

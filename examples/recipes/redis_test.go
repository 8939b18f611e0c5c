package recipes_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ossl-go/ossl/examples/recipes"
	"github.com/ossl-go/ossl/internal/recipetest"
)

const redisReady = "eady to accept connections"

// redisArgs are the arguments of a server with TLS at a port.
func redisArgs(files recipetest.Files, port string) []string {
	return []string{
		"--port", "0", "--tls-port", port, "--bind", "127.0.0.1", "--save", "", "--dir", files.Dir,
		"--tls-cert-file", files.Cert, "--tls-key-file", files.Key, "--tls-ca-cert-file", files.CA, "--tls-auth-clients", "yes",
		"--tls-replication", "yes", "--tls-cluster", "yes",
	}
}

func startRedis(t *testing.T, l net.Listener, files recipetest.Files, args ...string) {
	t.Helper()
	port := recipetest.FreePort(t)
	recipetest.Serve(t, redisReady, nil, recipetest.Program(t, "redis-server"), append(redisArgs(files, port), args...)...)
	recipetest.Forward(t, l, "127.0.0.1:"+port)
}

func TestRedis(t *testing.T) {
	recipetest.Recipe{
		Client: "go-redis", Server: "redis-server",
		Start: func(t *testing.T, site *recipetest.Site) { startRedis(t, site.Listener, site.Files) },
		Use: func(ctx context.Context, config *tls.Config, addr string) error {
			return talkRedis(ctx, recipes.Redis(addr, recipes.Dialer(config)))
		},
	}.Run(t)
}

// TestRedisCluster: the client dials the seed, and then the address that the cluster announces.
func TestRedisCluster(t *testing.T) {
	recipetest.Recipe{
		Client: "go-redis, cluster", Server: "redis-server",
		Start: func(t *testing.T, site *recipetest.Site) {
			announced := site.Another(t)
			_, port, err := net.SplitHostPort(announced.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			own := recipetest.FreePort(t)
			recipetest.Serve(t, redisReady, nil, recipetest.Program(t, "redis-server"),
				append(redisArgs(site.Files, own), "--cluster-enabled", "yes", "--cluster-port", recipetest.FreePort(t),
					"--cluster-announce-ip", "127.0.0.1", "--cluster-announce-tls-port", port)...)
			recipetest.Forward(t, site.Listener, "127.0.0.1:"+own)
			recipetest.Forward(t, announced, "127.0.0.1:"+own)
			claimSlots(t, site)
		},
		Use: func(ctx context.Context, config *tls.Config, addr string) error {
			return talkRedis(ctx, recipes.RedisCluster([]string{addr}, recipes.Dialer(config)))
		},
	}.Run(t)
}

// claimSlots makes a server a cluster of one.
func claimSlots(t *testing.T, site *recipetest.Site) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	admin := redis.NewClient(&redis.Options{Addr: site.Addr, TLSConfig: site.ClientConfig()})
	defer admin.Close()
	if err := admin.ClusterAddSlotsRange(ctx, 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	for { // Redis updates its state ten times a second, and tells nobody
		info, err := admin.ClusterInfo(ctx).Result()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(info, "cluster_state:ok") {
			return
		}
	}
}

func TestRedisSentinel(t *testing.T) {
	recipetest.Recipe{
		Client: "go-redis, sentinel", Server: "redis-server", Others: true,
		Start: func(t *testing.T, site *recipetest.Site) {
			master := site.Another(t)
			startRedis(t, master, site.Files)
			host, port, err := net.SplitHostPort(master.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			conf := filepath.Join(site.Files.Dir, "sentinel.conf")
			text := fmt.Sprintf("sentinel monitor main %s %s 1\n", host, port)
			if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			own := recipetest.FreePort(t)
			recipetest.Serve(t, "+monitor master main", nil, recipetest.Program(t, "redis-server"),
				append([]string{conf, "--sentinel"}, redisArgs(site.Files, own)...)...)
			recipetest.Forward(t, site.Listener, "127.0.0.1:"+own)
		},
		Use: func(ctx context.Context, config *tls.Config, addr string) error {
			return talkRedis(ctx, recipes.RedisSentinel("main", []string{addr}, recipes.Dialer(config)))
		},
	}.Run(t)
}

func talkRedis(ctx context.Context, client redis.UniversalClient) error {
	err := client.Set(ctx, "key", "value", 0).Err()
	if err == nil {
		var got string
		if got, err = client.Get(ctx, "key").Result(); err == nil && got != "value" {
			err = fmt.Errorf("got %q", got)
		}
	}
	return errors.Join(err, client.Close())
}

package recipes

import (
	"github.com/redis/go-redis/v9"

	"github.com/ossl-go/ossl"
)

// Redis returns a client of one server.
func Redis(addr string, dialer *ossl.Dialer) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, Dialer: dialer.DialContext})
}

// RedisCluster returns a client of a cluster.
func RedisCluster(addrs []string, dialer *ossl.Dialer) *redis.ClusterClient {
	return redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, Dialer: dialer.DialContext})
}

// RedisSentinel returns a client of the master that sentinels name.
func RedisSentinel(master string, sentinels []string, dialer *ossl.Dialer) *redis.Client {
	return redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: master, SentinelAddrs: sentinels, Dialer: dialer.DialContext,
	})
}

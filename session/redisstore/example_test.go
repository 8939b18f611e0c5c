package redisstore_test

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ossl-go/ossl/session"
	"github.com/ossl-go/ossl/session/redisstore"
)

// Servers of a fleet share sessions and ticket keys. In this example the store is down, so servers
// start but no session resumes until it is back.
func Example() {
	secret := session.Secret{1: 42} // 32 random bytes that all members are given, but not the store

	client := redisstore.NewClient(redis.UniversalOptions{Addrs: []string{"127.0.0.1:1"}}) // no server listens here
	defer client.Close()

	store, err := redisstore.New(client, redisstore.Config{Secrets: []session.Secret{secret}})
	if err != nil {
		fmt.Println(err)
		return
	}
	keys, err := redisstore.NewKeys(client, redisstore.KeysConfig{Secrets: []session.Secret{secret}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	keys.Sync(ctx) // gets the fleet's keys; none without the store
	go keys.Run(ctx)

	// store goes to ossl.WithSessionCache, keys.Ring() to ossl.WithTicketKeys.
	var cache session.Cache = store
	s, err := cache.Get(ctx, []byte("a session's ID"), false)
	fmt.Println(s == nil, err != nil)
	held, _ := keys.Ring().Snapshot()
	fmt.Println(len(held), "ticket keys")

	ending, stop := context.WithTimeout(ctx, time.Second)
	defer stop()
	fmt.Println(store.Close(ending))
	// Output:
	// true true
	// 0 ticket keys
	// <nil>
}

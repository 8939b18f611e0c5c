// Package redisstore shares TLS sessions, and the keys of session tickets, among the servers of a
// fleet through Redis or Valkey: a session made on one server resumes on the others.
//
// [New] returns a [session.Cache] for servers that keep sessions, [NewKeys] a [session.Ring] for
// servers that issue tickets. Either is enough; with both, clients without support for tickets
// resume too.
//
//	client := redisstore.NewClient(redis.UniversalOptions{Addrs: []string{"redis:6379"}})
//	store, err := redisstore.New(client, redisstore.Config{Secrets: []session.Secret{secret}})
//
// Sessions and keys are sealed before they are stored, under secrets that the members of the fleet
// share and that the store must not know. An attacker who can read and change the contents of the
// store learns how many sessions there are and when they are used. The attacker can destroy
// sessions, and can bring back one that was taken or removed, until it expires, but can neither read
// nor forge one: see [session.Seal].
//
// If the store is slow, hangs or is unreachable, that costs full handshakes and nothing else. No
// call waits longer than [Config.Timeout]. After a few failures a circuit breaker opens: calls then
// fail at once, except for one probe now and then.
//
// It needs Redis 6.2 or later, for GETDEL, or Valkey; clusters and sentinels are supported. The
// commands used are GET, GETDEL, SET and DEL, and for Keys TIME, WATCH, UNWATCH, MULTI and EXEC as
// well; clients of a cluster send CLUSTER SLOTS and ASKING too.
package redisstore

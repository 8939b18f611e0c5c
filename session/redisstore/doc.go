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
// Sessions and keys are stored sealed under secrets that the fleet's members have from elsewhere.
// The store, and anyone who reads or changes its contents, learns how many sessions there are and
// when they are used, and can destroy them, or bring back one that was taken or removed until it
// expires. It can neither read nor forge a session (see [session.Seal]).
//
// If the store is slow, hangs or is unreachable, that costs full handshakes and nothing else. No
// call waits longer than [Config.Timeout]. After a few failures a circuit breaker opens: calls then
// fail at once, except for one probe now and then.
//
// It needs Redis 6.2 or later, for GETDEL, or Valkey; clusters and sentinels are supported. The
// commands used are GET, GETDEL, SET and DEL, and for Keys TIME, WATCH, UNWATCH, MULTI and EXEC as
// well; clients of a cluster send CLUSTER SLOTS and ASKING too.
package redisstore

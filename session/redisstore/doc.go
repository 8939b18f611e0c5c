// Package redisstore shares TLS sessions, and the keys of session tickets, among the servers of a fleet through Redis or
// Valkey: a session made on one server resumes on the others.
//
// [New] gives a [session.Cache] for servers that keep sessions, [NewKeys] a [session.Ring] for servers that give out tickets.
// Either is enough; with both, clients that know no tickets resume too.
//
//	client := redisstore.NewClient(redis.UniversalOptions{Addrs: []string{"redis:6379"}})
//	store, err := redisstore.New(client, redisstore.Config{Secrets: []session.Secret{secret}})
//
// What is stored is sealed under secrets that the fleet's members have from elsewhere. The store, and whoever reads or changes
// what it holds, learns how many sessions there are and when they are used, and can destroy them, or bring back one that was
// taken or removed until it expires; it can read and forge none (see [session.Seal]).
//
// A store that is slow, hangs or is gone costs full handshakes and nothing else. No call waits longer than [Config.Timeout];
// after a few failures a circuit breaker lets none through but one that probes now and then, and the others return at once.
//
// Redis 6.2 or later, or Valkey, is needed, for GETDEL; a cluster or one with sentinels will do. The commands used are GET,
// GETDEL, SET and DEL, and for Keys TIME, WATCH, UNWATCH, MULTI and EXEC as well; clients of a cluster send CLUSTER SLOTS and
// ASKING too.
package redisstore

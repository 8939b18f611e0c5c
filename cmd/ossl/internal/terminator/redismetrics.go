package terminator

import "github.com/prometheus/client_golang/prometheus"

var (
	descRedisUp = describe("redis_up",
		"Whether the store of sessions answers: 1 if the last poll of the ticket keys succeeded, or 0.")
	descLookups = describe("redis_lookups_total", "Lookups of sessions in the store.", "result")
	descWrites  = describe("redis_writes_total", "Writes of sessions to the store.", "operation", "result")
	descQueued  = describe("redis_queued_writes", "Writes that wait for the store, or are under way.")
	descOpens   = describe("redis_pauses_total",
		"Times that the store was left alone for about a second, since calls failed.")
	descPolls    = describe("redis_polls_total", "Polls of the ticket keys in the store.", "result")
	descLastPoll = describe("redis_last_poll_timestamp_seconds",
		"The Unix time of the last poll of the ticket keys that succeeded.")
)

func describeRedis(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descRedisUp, descLookups, descWrites, descQueued, descOpens, descPolls, descLastPoll} {
		ch <- d
	}
}

// collect collects the metrics of a store.
func (r *redisStore) collect(
	gauge func(*prometheus.Desc, float64, ...string), count func(*prometheus.Desc, uint64, ...string),
) {
	up := 0.0
	if r.up.Load() {
		up = 1
	}
	gauge(descRedisUp, up)
	s, k := r.sessions.Stats(), r.keys.Stats()
	for result, n := range map[string]uint64{
		"hit": s.Hits - min(s.Forged, s.Hits), "miss": s.Misses, "forged": s.Forged,
		"timeout": s.Timeouts, "unavailable": s.Unavailable,
		"error": s.Errors - min(s.Timeouts+s.Unavailable, s.Errors), // the counts aren't from one moment
	} {
		count(descLookups, n, result)
	}
	count(descWrites, s.Puts, "put", "done")
	count(descWrites, s.PutsDropped, "put", "lost")
	count(descWrites, s.Removes, "remove", "done")
	count(descWrites, s.RemovesLost, "remove", "lost")
	gauge(descQueued, float64(s.Queued))
	count(descOpens, s.BreakerOpens)
	count(descPolls, k.Syncs, "succeeded")
	count(descPolls, k.Failures, "failed")
	if !k.LastSync.IsZero() {
		gauge(descLastPoll, float64(k.LastSync.UnixMilli())/1000)
	}
}

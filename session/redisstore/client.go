package redisstore

import (
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// NewClient returns a client with settings that suit this package, for those that options leave
// open: contexts bound its calls, there are no retries (each would wait while a handshake does),
// connecting takes 5 seconds at most, the timeouts of reading and writing are a second, maintenance
// notifications are off, and a reply that no store needs to send closes the connection
// ([LimitReplies]).
//
// Any other client works too. One without ContextTimeoutEnabled keeps calls that have timed out
// here until its own timeouts end them, and those count against [Config.Concurrency].
func NewClient(options redis.UniversalOptions) redis.UniversalClient {
	o := &options
	o.ContextTimeoutEnabled = true
	if o.MaxRetries == 0 {
		o.MaxRetries = -1
	}
	if o.DialTimeout == 0 {
		o.DialTimeout = 5 * time.Second
	}
	if o.DialerRetries == 0 {
		o.DialerRetries = 1
	}
	if o.ReadTimeout == 0 {
		o.ReadTimeout = time.Second
	}
	if o.WriteTimeout == 0 {
		o.WriteTimeout = time.Second
	}
	if o.MaintNotificationsConfig == nil { // its default looks up the server's name now, and lets the server send notifications
		o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	}
	if o.Dialer == nil {
		o.Dialer = redis.NewDialer(&redis.Options{DialTimeout: o.DialTimeout, TLSConfig: o.TLSConfig})
	}
	o.Dialer = LimitReplies(o.Dialer)
	return redis.NewUniversalClient(o)
}

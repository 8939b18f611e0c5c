//go:build ossl_unchanged

package ossl

import (
	"sync"
	"time"

	"github.com/ossl-go/ossl/internal/unchanged"
)

// ReadSettingsAgain makes the next connection read the settings, as in a new process. Files of ticket keys
// are read again after each period.
func ReadSettingsAgain(period time.Duration) {
	ringPeriod = period
	settingsInForce = sync.OnceValue(readSettings)
}

// SetKernelFile replaces the file in which the kernel reports its FIPS mode.
func SetKernelFile(name string) { kernelFIPS = name }

// CountOfServers returns the number of servers' connections that are ossl's.
func CountOfServers() uint64 {
	counter, _ := unchanged.Process()
	return counter.Counts().Ossl[unchanged.Server]
}

// RecordsByLibssl reports whether libssl keeps the records of the connection.
func (c *Conn) RecordsByLibssl() bool { return !c.context().directRecords }

// FollowsHost reports whether the host's policy applies to the connection.
func (c *Conn) FollowsHost() bool { return !c.context().opts.withoutHostPolicy }

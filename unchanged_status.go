//go:build ossl_unchanged

package ossl

import (
	"strings"
	"sync/atomic"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/status"
	"github.com/ossl-go/ossl/internal/unchanged"
)

// goEngine is crypto/tls in reports. In double quotes it would be rewritten as an import is.
const goEngine = `crypto/tls`

// statusReport is the answer to "ossl inspect --pid". It loads no library.
func statusReport() status.Report {
	r := status.Report{Version: unchanged.Built().Version, Mode: string(settingsInForce().reportedMode())}
	for _, s := range InForce() {
		r.Settings = append(r.Settings, status.Setting(s))
	}
	stats := ProcessStats()
	r.Records = status.Records(stats.Records)
	r.OpenSSL = statusOfLibrary()
	freed := contextCounts.freed.Load() // first, so that it is not above the other
	r.Contexts = status.Contexts{Compiled: contextCounts.compiled.Load()}
	r.Contexts.InUse = r.Contexts.Compiled - freed
	counter, _ := unchanged.Process()
	counts := counter.Counts()
	left := map[unchanged.Role]uint64{}
	for reason, n := range counts.Left {
		left[reason.Role] += n
		r.Left = append(r.Left, status.Reason{Text: string(reason.Role) + ": " + reason.Text, Count: n})
	}
	for reason, n := range counts.Refused {
		r.Refused = append(r.Refused, status.Reason{Text: string(reason.Role) + ": " + reason.Text, Count: n})
	}
	for _, role := range []unchanged.Role{unchanged.Client, unchanged.Server} {
		r.Connections = append(r.Connections, status.Connections{Engine: "ossl", Role: string(role), Count: counts.Ossl[role]},
			status.Connections{Engine: goEngine, Role: string(role), Count: left[role]})
	}
	r.Connections = append(r.Connections, status.Connections{Engine: goEngine, Role: "QUIC", Count: counts.QUIC})
	return r
}

// loadFailure is the last reason why OpenSSL was not available to a connection, or nil.
var loadFailure atomic.Pointer[error]

// statusOfLibrary describes OpenSSL if it is loaded.
func statusOfLibrary() (s status.OpenSSL) {
	lib := libssl.InUse()
	if lib == nil {
		if err := loadFailure.Load(); err != nil {
			s.Problem = strings.TrimPrefix((*err).Error(), "ossl: ")
		}
		return s
	}
	s.Version, s.Path = lib.Text, lib.Path
	if info, ok := libssl.FIPSModuleInfo(); ok {
		s.FIPS = info.Name + " " + info.Version
	}
	return s
}

// reportedMode returns the mode of servers and clients: the stricter one, if they have settings of their own.
// Without a mode, no connection can be made.
func (s *processSettings) reportedMode() unchanged.Mode {
	servers, err1 := s.mode(unchanged.Server)
	clients, err2 := s.mode(unchanged.Client)
	if err1 != nil || err2 != nil || servers == unchanged.Require {
		return unchanged.Require
	}
	return clients
}

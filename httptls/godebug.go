package httptls

import (
	"os"
	"runtime/debug"
	"strings"
	"sync"
)

// http2Enabled reports whether net/http speaks HTTP/2 in this program. setting is GODEBUG's
// http2client or http2server, which can turn it off in the environment or when the program is
// built. A build tag can turn it off too.
func http2Enabled(setting string) bool {
	built, tags := buildSettings()
	if value, ok := godebug(os.Getenv("GODEBUG"), setting); ok {
		return value != "0"
	}
	value, _ := godebug(built, setting)
	return value != "0" && !strings.Contains(","+tags+",", ",nethttpomithttp2,")
}

var buildSettings = sync.OnceValues(func() (godebug, tags string) {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "DefaultGODEBUG":
				godebug = s.Value
			case "-tags":
				tags = s.Value
			}
		}
	}
	return godebug, tags
})

// godebug returns the value of one setting in a list of the form of GODEBUG; the last one counts.
func godebug(list, setting string) (value string, ok bool) {
	for s := range strings.SplitSeq(list, ",") {
		if v, found := strings.CutPrefix(s, setting+"="); found {
			value, ok = v, true
		}
	}
	return value, ok
}

package terminator

import (
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// wellFormed reports whether the method, the target and the host of a request can be written as an
// HTTP/1.1 request that has one meaning. net/http accepts more: targets without a "/" and, over
// HTTP/2, methods and queries with spaces.
func wellFormed(r *http.Request) bool {
	if r.Host == "" && r.ProtoAtLeast(1, 1) || !lengthAgrees(r) {
		return false
	}
	if _, ok := hostName(r.Host); !ok || !httpguts.ValidHeaderFieldName(r.Method) { // which is a token, too
		return false
	}
	if r.Method == http.MethodConnect {
		return true // no handler answers it
	}
	if r.RequestURI == "*" {
		return r.Method == http.MethodOptions
	}
	path := r.URL.Path
	return r.URL.Opaque == "" && (path == "" || path[0] == '/') &&
		!strings.ContainsFunc(r.URL.RawQuery, func(c rune) bool { return c <= ' ' || c == 0x7f })
}

// lengthAgrees reports whether a request has no Content-Length, or the length of its body: RFC 9113,
// section 8.1.1. net/http doesn't check it for HTTP/2 requests without a body.
func lengthAgrees(r *http.Request) bool {
	lengths := r.Header["Content-Length"]
	if len(lengths) == 0 {
		return true
	}
	n, err := strconv.ParseUint(lengths[0], 10, 63)
	return len(lengths) == 1 && err == nil && int64(n) == r.ContentLength
}

// wellFormedResponse reports whether a backend's response can be written as a response that has one
// meaning. net/http accepts names with spaces, and doesn't write them: it would lose the length of
// "Content-Length : 2".
func wellFormedResponse(resp *http.Response) bool {
	if resp.StatusCode < 100 || resp.StatusCode > 999 { // net/http's server panics
		return false
	}
	for name := range resp.Header {
		if !httpguts.ValidHeaderFieldName(name) {
			return false
		}
	}
	return true
}

// hostName returns the name or the address in a Host header, which may be empty, and reports
// whether the header is well-formed: RFC 9110, section 7.2. Names are in ASCII, as in DNS. A backend
// could take another form for the name of another site.
func hostName(host string) (name string, ok bool) {
	if host == "" {
		return "", true // an HTTP/1.0 response
	}
	var port string
	if rest, bracket := strings.CutPrefix(host, "["); bracket {
		if name, port, ok = strings.Cut(rest, "]"); !ok {
			return "", false
		}
		if ip, err := netip.ParseAddr(name); err != nil || !ip.Is6() || ip.Zone() != "" {
			return "", false
		}
		if port, ok = strings.CutPrefix(port, ":"); !ok && port != "" {
			return "", false
		}
	} else {
		name, port, _ = strings.Cut(host, ":")
		for label := range strings.SplitSeq(strings.TrimSuffix(name, "."), ".") {
			if label == "" || strings.ContainsFunc(label, notInLabel) {
				return "", false
			}
		}
	}
	return name, !strings.ContainsFunc(port, func(c rune) bool { return c < '0' || c > '9' })
}

func notInLabel(c rune) bool {
	return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_')
}

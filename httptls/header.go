package httptls

import "net/http"

// WithHeaders returns a RoundTripper that calls edit with the header of each request before rt
// sends it. The header is a copy: the caller's request stays as it is. The Host field of a request
// is not in its header; set [http.Request.Host].
//
// edit is also called for requests that follow a redirect. If one goes to another host, or from https
// to http, what edit did to Authorization, Cookie, Proxy-Authorization and Www-Authenticate is
// undone. Other headers must not hold credentials.
func WithHeaders(rt http.RoundTripper, edit func(http.Header)) http.RoundTripper {
	if rt == nil || edit == nil {
		panic("httptls: WithHeaders needs a RoundTripper and a function")
	}
	return &headerTransport{rt, edit}
}

type headerTransport struct {
	next http.RoundTripper
	edit func(http.Header)
}

func (t *headerTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	sent := req.WithContext(req.Context()) // a shallow copy
	sent.Header = req.Header.Clone()
	if sent.Header == nil {
		sent.Header = make(http.Header)
	}
	t.edit(sent.Header)
	if redirectedAway(req) {
		for name := range sent.Header {
			if isCredential(name) {
				delete(sent.Header, name)
			}
		}
		for name, values := range req.Header {
			if isCredential(name) {
				sent.Header[name] = values
			}
		}
	}
	return t.next.RoundTrip(sent)
}

// isCredential reports whether http.Client removes a header from requests that a redirect leads to another host.
func isCredential(name string) bool {
	switch http.CanonicalHeaderKey(name) {
	case "Authorization", "Cookie", "Proxy-Authorization", "Www-Authenticate":
		return true
	}
	return false
}

// redirectedAway reports whether a request follows a redirect to another host, or to http.
func redirectedAway(req *http.Request) bool {
	for r := req; r.Response != nil && r.Response.Request != nil; {
		before := r.Response.Request
		if before.URL.Hostname() != r.URL.Hostname() || before.URL.Scheme == "https" && r.URL.Scheme != "https" {
			return true
		}
		r = before
	}
	return false
}

// CloseIdleConnections makes [http.Client.CloseIdleConnections] reach the transport beneath.
func (t *headerTransport) CloseIdleConnections() {
	if next, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		next.CloseIdleConnections()
	}
}
